"""Acts by hand, in memory."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sluice.errors import CalledOff, NotFound, StoppedByHand
from sluice.guard import by_hand
from sluice.model.audit import Act, Actor
from sluice.model.base import RunId, ShardKey
from sluice.model.lease import Lease
from sluice.model.lifecycle import RUN_TRANSITIONS, SHARD_TRANSITIONS, RunEvent, RunStatus, ShardEvent, ShardStatus, advance
from sluice.model.review import Choice, Decision
from sluice.model.run import Failure, Run
from sluice.model.shard import Shard
from tests.unit.fakes.memory import Memory
from tests.unit.fakes.redo_store import MemoryRedoStore
from tests.unit.fakes.review_store import MemoryReviewStore


class MemoryByHandStore:
    """The port `ByHandStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def reset_shard(self, run: RunId, shard: ShardKey, by: Actor) -> Shard:
        """Let the shard begin again."""
        memory = self._memory
        with memory.lock:
            present, before = memory.run(run), memory.shard(run, shard)
            if by_hand.is_reset_due(present, before):
                MemoryRedoStore(memory).begin_again(run, shard, ShardEvent.RESET)
                memory.stopped.pop((run, shard), None)
                self._note(Act.RESET_SHARD, by, present, before)
            return memory.shard(run, shard)

    def skip_shard(self, run: RunId, shard: ShardKey, by: Actor) -> Shard:
        """Let the run do without the shard."""
        memory = self._memory
        with memory.lock:
            present, before = memory.run(run), memory.shard(run, shard)
            if by_hand.is_skip_due(present, before):
                memory.stopped.pop((run, shard), None)
                self._let_happen(before, ShardEvent.SKIP, None)
                self._note(Act.SKIP_SHARD, by, present, before)
            return memory.shard(run, shard)

    def stop_shard(self, run: RunId, shard: ShardKey, by: Actor) -> Shard:
        """Let the shard fail where it stands."""
        memory = self._memory
        with memory.lock:
            present, before = memory.run(run), memory.shard(run, shard)
            clearing = memory.clearings.get(run, 0)
            if by_hand.is_stop_due(present, before, is_stopped=memory.stopped.get((run, shard)) == clearing):
                memory.stopped[run, shard] = clearing
                self._let_happen(before, ShardEvent.STOP, Failure.of(StoppedByHand(f"stopped by {by}")))
                self._note(Act.STOP_SHARD, by, present, before)
            return memory.shard(run, shard)

    def cancel_run(self, run: RunId, by: Actor) -> Run:
        """End the run."""
        memory = self._memory
        with memory.lock:
            before = memory.run(run)
            clearing = memory.clearings.get(run, 0)
            if not by_hand.is_cancel_due(before, is_cleared=memory.called_off.get(run, clearing) < clearing):
                return before
            failure, now = Failure.of(CalledOff(f"cancelled by {by}")), memory.clock.now()
            ended = {
                "status": RunStatus.CANCELLED
                if before.status is RunStatus.CANCELLED
                else advance(RUN_TRANSITIONS, before.status, RunEvent.CANCEL),
                "token": memory.next_token(),
                "follows": None,
                "failure": failure,
                "finished_at": now,
                "expires_at": now + memory.state_ttls[run],
            }
            memory.runs[run] = before.model_copy(update=ended)
            memory.called_off[run] = clearing
            self._end_shards(run, failure)
            memory.note_act(Act.CANCEL_RUN, by, sync=before.sync, run=run, status=before.status, step=before.step)
            self._reject_waiting(run, by)
            self._release(before.request_key, run)
            return memory.runs[run]

    def leases(self) -> list[Lease]:
        """Return all leases."""
        with self._memory.lock:
            return sorted((self._lease(key) for key in self._memory.leases), key=lambda lease: (lease.sync, lease.key))

    def release_lease(self, key: str, heartbeat: Callable[[str], timedelta], by: Actor) -> Lease | None:
        """Take a flight back."""
        memory = self._memory
        with memory.lock:
            if key not in memory.leases:
                if all(run.request_key != key for run in memory.runs.values()):
                    raise NotFound(f"no run has ever asked for {key}")
                return None
            lease = self._lease(key)
            by_hand.require_silent(lease, memory.clock.now() - lease.seen_at, heartbeat(lease.stage))
            memory.runs[lease.owner] = memory.runs[lease.owner].model_copy(update={"token": memory.next_token()})
            for shard in memory.of_run(lease.owner):
                memory.shards[lease.owner, shard.key] = shard.model_copy(update={"token": memory.next_token()})
            self._release(key, lease.owner)
            memory.note_act(Act.RELEASE_LEASE, by, sync=lease.sync, run=lease.owner, subject=key)
            return lease

    def note_clearing(self, run: RunId, times: int) -> None:
        """Note how often the DagRun has been cleared."""
        with self._memory.lock:
            self._memory.clearings[run] = max(times, self._memory.clearings.get(run, 0))

    def _end_shards(self, run: RunId, failure: Failure) -> None:
        memory = self._memory
        for shard in memory.of_run(run):
            failed: dict[str, Any] = {"status": ShardStatus.FAILED, "failure": failure}
            changes = failed if shard.status is ShardStatus.RUNNING else {}
            memory.shards[run, shard.key] = shard.model_copy(update={"token": memory.next_token(), **changes})

    def _reject_waiting(self, run: RunId, by: Actor) -> None:
        reviews, now = MemoryReviewStore(self._memory), self._memory.clock.now()
        comment = f"its run was cancelled: {by.reason}"
        for review in reviews.waiting():
            if review.run == run:
                reviews.decide(review.id, Decision(choice=Choice.REJECT, by=by.name, via=by.via, comment=comment, at=now))

    def _release(self, key: str, owner: RunId) -> None:
        held = self._memory.leases.get(key)
        if held is not None and held.owner == owner:
            del self._memory.leases[key]

    def _lease(self, key: str) -> Lease:
        memory = self._memory
        held = memory.leases[key]
        owner = memory.run(held.owner)
        return Lease(
            key=key,
            owner=owner.id,
            sync=owner.sync,
            stage=owner.stage,
            status=owner.status,
            seen_at=held.seen_at or memory.clock.now(),
            expires_at=held.expires_at,
            is_expired=held.expires_at <= memory.clock.now(),
        )

    def _let_happen(self, shard: Shard, event: ShardEvent, failure: Failure | None) -> None:
        status = advance(SHARD_TRANSITIONS, shard.status, event)
        changes = {"status": status, "failure": failure, "token": self._memory.next_token()}
        self._memory.shards[shard.run, shard.key] = shard.model_copy(update=changes)

    def _note(self, act: Act, by: Actor, run: Run, before: Shard) -> None:
        facts = {"status": before.status, "pages": before.pages, "records": before.records}
        self._memory.note_act(act, by, sync=run.sync, run=run.id, subject=before.key, **facts)
