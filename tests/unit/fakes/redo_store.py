"""Marks for steps that are due again, in memory."""

from collections.abc import Callable, Sequence
from typing import Any

from sluice.errors import IllegalTransition
from sluice.model.artifact import ArtifactKind, ArtifactRef
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import SHARD_TRANSITIONS, ShardEvent, destination, sources
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.ports import Holder
from tests.unit.fakes.memory import Memory

_MAPPED = (ArtifactKind.ROWS, ArtifactKind.REJECTS)


class MemoryRedoStore:
    """The port `RedoStore`; a pointer that counts no more is gone."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def fetch_again(self, shard: ShardKey, holder: Holder) -> None:
        """Begin the shard again."""
        with self._memory.lock:
            self.begin_again(self._checked(holder), shard, ShardEvent.RESTART)

    def begin_again(self, run: RunId, shard: ShardKey, event: ShardEvent) -> None:
        """Begin the shard again, whoever has it."""
        begun = {"cursor": None, "exhausted": False, "high_mark": None, "until": None, "supplied_at": None}
        begun |= {"chunks": 0, "pages": 0, "records": 0}
        epoch = self._memory.shards[run, shard].epoch + 1 if (run, shard) in self._memory.shards else 0
        self._mark(run, shard, event, epoch=epoch, **begun)
        self._supersede(run, lambda ref: ref.shard == shard or ref.kind is ArtifactKind.DIFF)

    def map_again(self, shard: ShardKey, chunks: Sequence[int], holder: Holder) -> None:
        """Let some chunks be mapped again."""
        with self._memory.lock:
            run = self._checked(holder)
            self._mark(run, shard, ShardEvent.REDO)
            self._supersede(run, lambda ref: ref.shard == shard and ref.kind in _MAPPED and ref.seq in chunks)

    def review_again(self, run: Run) -> None:
        """Let the run be reviewed again."""
        with self._memory.lock:
            self._memory.still_run(run.id, run.token)
            self._supersede(run.id, lambda ref: ref.kind is ArtifactKind.DIFF)

    def _checked(self, holder: Holder) -> RunId:
        if isinstance(holder, Shard):
            self._memory.still_shard(holder.run, holder.key, holder.token)
            return holder.run
        self._memory.still_run(holder.id, holder.token)
        return holder.id

    def _mark(self, run: RunId, key: ShardKey, event: ShardEvent, **changes: Any) -> None:
        memory = self._memory
        shard = memory.shards.get((run, key))
        if shard is None or shard.status not in sources(SHARD_TRANSITIONS, event):
            raise IllegalTransition(f"shard {key}: {event} may not happen now")
        status = destination(SHARD_TRANSITIONS, event)
        marked = {"status": status, "token": memory.next_token(), "failure": None, **changes}
        memory.shards[run, key] = shard.model_copy(update=marked)

    def _supersede(self, run: RunId, is_meant: Callable[[ArtifactRef], bool]) -> None:
        for ref in [ref for ref in self._memory.pointers if ref.run == run and is_meant(ref)]:
            del self._memory.pointers[ref]
