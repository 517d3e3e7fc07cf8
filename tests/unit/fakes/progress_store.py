"""Progress in memory."""

from sluice.model.base import RunId, ShardKey
from sluice.model.progress import Progress
from tests.unit.fakes.memory import Memory


class MemoryProgressStore:
    """The port `ProgressStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def tell(self, progress: Progress) -> None:
        """Keep it, if the shard still is the caller's."""
        with self._memory.lock:
            shard = self._memory.shards.get((progress.run, progress.shard))
            if shard is not None and shard.token == progress.token:
                self._memory.progress[progress.run, progress.shard] = progress

    def of(self, run: RunId) -> dict[ShardKey, Progress]:
        """Return what was told last of each shard."""
        with self._memory.lock:
            return {key: told for (of, key), told in self._memory.progress.items() if of == run}
