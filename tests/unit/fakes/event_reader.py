"""Journals in memory, as the other fakes keep them."""

from sluice.model.base import RunId
from sluice.model.journal import JournalEvent, Subject
from sluice.model.lifecycle import ShardStatus
from sluice.model.progress import shown
from sluice.model.standing import Brought, Standing
from tests.unit.fakes.memory import Memory


class MemoryEventReader:
    """The port `EventReader`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def after(self, run: RunId, seq: int, limit: int) -> list[JournalEvent]:
        """Return the events behind a number."""
        with self._memory.lock:
            return [event for event in self._memory.journals.get(run, []) if event.seq > seq][:limit]

    def newest(self, run: RunId, limit: int) -> list[JournalEvent]:
        """Return the newest events first."""
        with self._memory.lock:
            return self._memory.journals.get(run, [])[::-1][:limit]

    def standing(self, run: RunId) -> Standing:
        """Add the shards up."""
        memory = self._memory
        with memory.lock:
            present = memory.run(run)
            told = {key: progress for (of, key), progress in memory.progress.items() if of == run}
            shards = shown(memory.of_run(run), told)
            brought = {
                status: Brought(shards=len(some), pages=sum(s.pages for s in some), records=sum(s.records for s in some))
                for status in ShardStatus
                if (some := [shard for shard in shards if shard.status is status])
            }
            claims = (
                event.at for event in memory.journals.get(run, []) if (event.subject, event.event) == (Subject.SHARD, "claim")
            )
            return Standing(
                at=memory.clock.now(), began=next(claims, None), status=present.status, step=present.step, brought=brought
            )
