"""Rows written anew in memory, where none is ever unreadable unless a test says so."""

from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import ShardStatus
from sluice.model.run import Run
from sluice.model.shard import ShardPlan
from tests.unit.fakes.memory import Memory


class MemoryRebuildStore:
    """The port `RebuildStore`; a row is unreadable while its name is in `unreadable`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def run(self, admitted: Run) -> None:
        """Write the run as it was admitted, keeping its status."""
        with self._memory.lock:
            if self._is_mended(("run", admitted.id)):
                return
            kept = self._memory.runs[admitted.id]
            update = {"status": kept.status, "step": kept.step, "failure": kept.failure, "finished_at": kept.finished_at}
            self._memory.runs[admitted.id] = admitted.model_copy(update={**update, "token": self._memory.next_token()})

    def shard(self, run: RunId, plan: ShardPlan) -> None:
        """Begin the shard again."""
        memory = self._memory
        with memory.lock:
            memory.take_flight(memory.run(run))
            if self._is_mended(("shard", plan.key)):
                return
            planned = {"params": plan.params, "transformer_version": plan.transformer_version}
            begun = {**planned, "status": ShardStatus.PENDING, "cursor": None, "exhausted": False, "failure": None}
            zero = {"chunks": 0, "pages": 0, "records": 0, "high_mark": None, "token": memory.next_token()}
            shard = memory.shards[run, plan.key]
            memory.shards[run, plan.key] = shard.model_copy(update={**begun, **zero, "epoch": shard.epoch + 1})
            for ref in [ref for ref in memory.pointers if (ref.run, ref.shard) == (run, plan.key)]:
                del memory.pointers[ref]

    def review(self, run: RunId, review: ReviewId) -> None:
        """Remove the review."""
        with self._memory.lock:
            if not self._is_mended(("review", review)) and self._memory.reviews[review].run == run:
                del self._memory.reviews[review]

    def _is_mended(self, row: tuple[str, str]) -> bool:
        if row not in self._memory.unreadable:
            return True
        self._memory.unreadable.remove(row)
        return False
