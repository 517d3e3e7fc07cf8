"""Runs in memory."""

from collections.abc import Sequence
from datetime import timedelta

from sluice.errors import Fenced
from sluice.guard import takeover
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, Token
from sluice.model.lifecycle import (
    FINAL_RUN_STATUSES,
    RUN_TRANSITIONS,
    RunEvent,
    RunStatus,
    ShardStatus,
    Step,
    advance,
)
from sluice.model.run import Failure, Run
from tests.unit.fakes.memory import Memory


class MemoryRunStore:
    """The port `RunStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def open(self, run: Run, lease_ttl: timedelta) -> Run:
        """Take the flight and insert the run."""
        memory = self._memory
        with memory.lock:
            if run.id in memory.runs:
                return memory.runs[run.id]
            memory.take_flight(run, lease_ttl)
            opened = run.model_copy(update={"status": RunStatus.PENDING, "token": memory.next_token()})
            earlier = [other for other in memory.runs.values() if other.request_key == run.request_key]
            dead = [self._end_dead(other, run.id) for other in earlier if other.status in ("pending", "running")]
            memory.runs[run.id] = opened
            memory.lease_ttls[run.id] = lease_ttl
            if earlier and not self._outrun(earlier[-1]) and takeover.is_due(memory.runs[earlier[-1].id], opened, dead):
                self._adopt(earlier[-1].id, run.id)
            return opened

    def get(self, run: RunId) -> Run:
        """Return the run."""
        with self._memory.lock:
            return self._memory.run(run)

    def enter(self, run: RunId, step: Step, lease_ttl: timedelta) -> Run:
        """Put the run at `step`."""
        memory = self._memory
        with memory.lock:
            present = memory.run(run)
            if present.status is RunStatus.SUCCEEDED:
                return present
            event = RunEvent.REOPEN if present.status in FINAL_RUN_STATUSES else RunEvent.ENTER
            status = advance(RUN_TRANSITIONS, present.status, event)
            memory.take_flight(present, lease_ttl)
            memory.lease_ttls[run] = lease_ttl
            return self._keep(present, status, None, step=step, token=memory.next_token())

    def end(self, run: Run, event: RunEvent, failure: Failure | None = None) -> Run:
        """Let `event` happen to the run."""
        memory = self._memory
        with memory.lock:
            present = memory.run(run.id)
            if present.token != run.token:
                raise Fenced(f"run {run.id} holds token {present.token}, not {run.token}", token=present.token)
            status = advance(RUN_TRANSITIONS, present.status, event)
            lease = memory.leases.get(run.request_key)
            if lease and lease.owner == run.id:
                del memory.leases[run.request_key]
            return self._keep(present, status, failure)

    def recent(self, sync: str | None, statuses: Sequence[RunStatus], limit: int) -> list[Run]:
        """Return the newest runs first."""
        with self._memory.lock:
            found = [
                run
                for run in self._memory.runs.values()
                if (sync is None or run.sync == sync) and (not statuses or run.status in statuses)
            ]
            return found[::-1][:limit]

    def _keep(
        self, run: Run, status: RunStatus, failure: Failure | None, step: Step | None = None, token: Token | None = None
    ) -> Run:
        kept = run.model_copy(
            update={
                "status": status,
                "failure": failure,
                "step": step or run.step,
                "token": token or run.token,
                "finished_at": self._memory.clock.now() if status in FINAL_RUN_STATUSES else None,
            }
        )
        self._memory.runs[run.id] = kept
        return kept

    def _end_dead(self, run: Run, successor: RunId) -> Run:
        memory = self._memory
        failure = takeover.taken_over_by(successor)
        for shard in memory.of_run(run.id):
            failed = {"status": ShardStatus.FAILED, "failure": failure} if shard.status is ShardStatus.RUNNING else {}
            memory.shards[run.id, shard.key] = shard.model_copy(update={"token": memory.next_token(), **failed})
        status = advance(RUN_TRANSITIONS, run.status, RunEvent.FAIL)
        return self._keep(run, status, failure, token=memory.next_token())

    def _outrun(self, run: Run) -> bool:
        """Whether a later run of the sync has published."""
        runs = list(self._memory.runs.values())
        later = runs[[other.id for other in runs].index(run.id) + 1 :]
        return any(other.sync == run.sync and other.status in (RunStatus.SUCCEEDED, RunStatus.PARTIAL) for other in later)

    def _adopt(self, donor: RunId, run: RunId) -> None:
        memory = self._memory
        for shard in memory.of_run(donor):
            if shard.progress_at is None or shard.progress_at <= memory.clock.now() - takeover.FRESH:
                continue
            status = shard.status if shard.status is ShardStatus.SUCCEEDED else ShardStatus.PENDING
            anew = {"run": run, "status": status, "failure": None, "token": Token(0), "attempt": 0}
            memory.shards[run, shard.key] = shard.model_copy(update=anew)
            for pointer in list(memory.pointers.values()):
                ref = pointer.ref
                of_shard = ref.kind in (ArtifactKind.RAW, ArtifactKind.ROWS, ArtifactKind.REJECTS)
                if of_shard and (ref.run, ref.shard) == (donor, shard.key):
                    memory.put(pointer.model_copy(update={"ref": ref.model_copy(update={"run": run})}))
