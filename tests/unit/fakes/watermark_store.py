"""Watermarks in memory."""

from collections.abc import Mapping

from sluice.errors import Fenced
from sluice.model.base import ShardKey, Token
from sluice.model.run import Run
from tests.unit.fakes.memory import Memory


class MemoryWatermarkStore:
    """The port `WatermarkStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def of(self, sync: str) -> dict[ShardKey, str]:
        """Return the watermark of each shard that has one."""
        with self._memory.lock:
            return {shard: value for (of, shard), (value, _) in self._memory.watermarks.items() if of == sync}

    def advance(self, sync: str, marks: Mapping[ShardKey, str], run: Run) -> None:
        """Move the watermarks, all or none."""
        with self._memory.lock:
            self._memory.still_run(run.id, run.token)
            held = {shard: self._memory.watermarks.get((sync, shard), ("", Token(0)))[1] for shard in marks}
            if younger := sorted(shard for shard, token in held.items() if token > run.token):
                raise Fenced(f"a younger run has moved the watermark of {', '.join(younger)}")
            for shard, value in marks.items():
                self._memory.watermarks[sync, shard] = (value, run.token)
