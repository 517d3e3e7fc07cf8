"""Shards in memory."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sluice.errors import IllegalTransition, StoppedByHand
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import RunId, ShardKey, Token
from sluice.model.journal import Subject
from sluice.model.lifecycle import SHARD_TRANSITIONS, RunStatus, ShardEvent, ShardStatus, advance, sources
from sluice.model.run import Failure, Mode, Run
from sluice.model.shard import Shard, ShardPlan
from tests.unit.fakes.memory import Memory

_WHOLE: Final = (Mode.FULL, RunStatus.SUCCEEDED)


class MemoryShardStore:
    """The port `ShardStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def plan(self, run: Run, plans: Sequence[ShardPlan], watermarks: Mapping[ShardKey, str]) -> list[Shard]:
        """Insert the shards that are not there yet."""
        with self._memory.lock:
            self._memory.still_run(run.id, run.token)
            for plan in plans:
                shard = Shard(
                    run=run.id,
                    key=plan.key,
                    params=plan.params,
                    transformer_version=plan.transformer_version,
                    status=ShardStatus.PENDING,
                    watermark=watermarks.get(plan.key),
                    token=Token(0),
                )
                self._memory.shards.setdefault((run.id, plan.key), shard)
            self._memory.tell(run.id, Subject.RUN, run.id, "plan", run.status, shards=len(plans))
            return self._memory.of_run(run.id)

    def adopt(self, run: Run, donors: Sequence[RunId], versions: Mapping[ShardKey, int], expires_at: datetime) -> list[Shard]:
        """Give a replay the shards that were fetched to their end, with their raw chunks."""
        memory = self._memory
        with memory.lock:
            memory.still_run(run.id, run.token)
            before, seen = set(memory.shards), set[str]()
            for shard in (shard for donor in donors for shard in memory.of_run(donor)):
                raws = [
                    pointer
                    for ref, pointer in sorted(memory.pointers.items(), key=lambda item: item[0].seq)
                    if (ref.run, ref.shard, ref.kind) == (shard.run, shard.key, ArtifactKind.RAW)
                ]
                is_asked = shard.exhausted and (not run.shards or shard.key in run.shards)
                is_there = (run.id, shard.key) in before or not seen.isdisjoint(raw.key for raw in raws)
                if is_asked and len(raws) == shard.chunks and not is_there:
                    seen.update(raw.key for raw in raws)
                    self._replay(run, shard, raws, versions.get(shard.key), expires_at)
            return memory.of_run(run.id)

    def _replay(self, run: Run, shard: Shard, raws: list[Pointer], version: int | None, expires_at: datetime) -> None:
        """Add what an older run has of a shard to what the replay has of it."""
        memory = self._memory
        held = memory.shards.get((run.id, shard.key))
        for seq, raw in enumerate(raws, start=held.chunks if held else 0):
            ref = raw.ref.model_copy(update={"run": run.id, "seq": seq})
            until = None if raw.expires_at is None else max(raw.expires_at, expires_at)
            memory.put(raw.model_copy(update={"ref": ref, "expires_at": until}))
        fetched = {"run": run.id, "status": ShardStatus.PENDING, "epoch": 0, "watermark": None, "high_mark": None}
        fresh = {"attempt": 0, "token": Token(0), "failure": None, "progress_at": memory.clock.now()}
        counted = {name: getattr(shard, name) + (getattr(held, name) if held else 0) for name in ("chunks", "pages", "records")}
        told = [(held.until, held.supplied_at)] if held else []
        latest = {
            name: max((moment for moment in moments if moment is not None), default=None)
            for name, moments in zip(
                ("until", "supplied_at"), zip((shard.until, shard.supplied_at), *told, strict=True), strict=True
            )
        }
        changes = fetched | fresh | counted | latest | {"transformer_version": version}
        memory.shards[run.id, shard.key] = shard.model_copy(update=changes)

    def of(self, run: RunId) -> list[Shard]:
        """Return the run's shards, ordered by key."""
        with self._memory.lock:
            return self._memory.of_run(run)

    def get(self, run: RunId, key: ShardKey) -> Shard:
        """Return one shard of the run."""
        with self._memory.lock:
            return self._memory.shard(run, key)

    def delivered(self, sync: str, runs: int) -> dict[ShardKey, tuple[int, ...]]:
        """Return what each shard had in the last full runs."""
        with self._memory.lock:
            full = [run for run in self._memory.runs.values() if (run.sync, run.mode, run.status) == (sync, *_WHOLE)]
            recent = [run for run in reversed(full) if run.window is None and run.follows is None][:runs]
            found: dict[ShardKey, tuple[int, ...]] = {}
            for run in recent:
                for shard in self._memory.of_run(run.id):
                    if shard.status is ShardStatus.SUCCEEDED:
                        found[shard.key] = (*found.get(shard.key, ()), shard.records)
            return found

    def claim(self, run: RunId, key: ShardKey) -> Shard:
        """Claim the shard."""
        memory = self._memory
        with memory.lock:
            shard = memory.shard(run, key)
            if shard.status not in sources(SHARD_TRANSITIONS, ShardEvent.CLAIM):
                return shard
            memory.take_flight(memory.run(run))
            if memory.stopped.get((run, key)) == memory.clearings.get(run, 0) and shard.failure is not None:
                raise StoppedByHand(f"shard {key} of run {run}: {shard.failure.message}", run=run, shard=key)
            attempt = shard.attempt + (not shard.exhausted)
            memory.tell(run, Subject.SHARD, key, ShardEvent.CLAIM, ShardStatus.RUNNING, attempt=attempt)
            return self._keep(
                shard,
                status=advance(SHARD_TRANSITIONS, shard.status, ShardEvent.CLAIM),
                token=memory.next_token(),
                attempt=attempt,
                failure=None,
            )

    def claim_next(self, run: RunId) -> Shard | None:
        """Claim the first pending shard."""
        with self._memory.lock:
            pending = (shard for shard in self._memory.of_run(run) if shard.status is ShardStatus.PENDING)
            first = next(pending, None)
            return self.claim(run, first.key) if first else None

    def checkpoint(self, shard: Shard, pointer: Pointer, lease_ttl: timedelta) -> Shard:
        """Keep the pointer and the cursor behind it."""
        memory = self._memory
        with memory.lock:
            memory.still_shard(shard.run, shard.key, shard.token, lease_ttl)
            present = memory.shard(shard.run, shard.key)
            if present.status is not ShardStatus.RUNNING:
                raise IllegalTransition(f"shard {shard.key} is {present.status}: only a running one gets further")
            memory.require_place(pointer.ref)
            memory.put(pointer)
            return self._keep(
                present,
                cursor=shard.cursor,
                exhausted=shard.exhausted,
                until=shard.until,
                supplied_at=shard.supplied_at,
                high_mark=shard.high_mark,
                chunks=shard.chunks,
                pages=shard.pages,
                records=shard.records,
                progress_at=memory.clock.now(),
            )

    def renew(self, shard: Shard, lease_ttl: timedelta) -> None:
        """Extend the flight of the run."""
        with self._memory.lock:
            self._memory.still_shard(shard.run, shard.key, shard.token, lease_ttl)
            self._memory.keep(shard.run)

    def succeed(self, shard: Shard) -> Shard:
        """The shard is fetched and transformed."""
        with self._memory.lock:
            present, status = self._after(shard, ShardEvent.SUCCEED)
            if not present.exhausted:
                raise IllegalTransition(f"shard {shard.key} has pages left to fetch: it has not succeeded")
            self._memory.tell(shard.run, Subject.SHARD, shard.key, ShardEvent.SUCCEED, status)
            return self._keep(present, status=status, high_mark=shard.high_mark, progress_at=self._memory.clock.now())

    def fail(self, shard: Shard, failure: Failure, silence: timedelta | None = None) -> Shard:
        """The shard gave up."""
        with self._memory.lock:
            present, status = self._after(shard, ShardEvent.FAIL)
            if silence is not None:
                self._memory.hold_out(shard.run, silence)
            told = {"error": failure.error, "message": failure.message}
            self._memory.tell(shard.run, Subject.SHARD, shard.key, ShardEvent.FAIL, status, **told)
            return self._keep(present, status=status, failure=failure)

    def _after(self, shard: Shard, event: ShardEvent) -> tuple[Shard, ShardStatus]:
        self._memory.still_shard(shard.run, shard.key, shard.token)
        present = self._memory.shard(shard.run, shard.key)
        return present, advance(SHARD_TRANSITIONS, present.status, event)

    def _keep(self, shard: Shard, **changes: Any) -> Shard:
        kept = shard.model_copy(update=changes)
        self._memory.shards[shard.run, shard.key] = kept
        return kept
