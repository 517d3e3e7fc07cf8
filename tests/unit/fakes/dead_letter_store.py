"""Dead letters in memory."""

from collections.abc import Sequence

from sluice.model.base import ObjectKey
from sluice.model.reject import DeadLetter, DeadLetterStatus, Reject
from sluice.model.run import Run
from sluice.model.shard import Shard
from tests.unit.fakes.memory import Memory


class MemoryDeadLetterStore:
    """The port `DeadLetterStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def record(self, run: Run, shard: Shard, rejects: Sequence[Reject]) -> None:
        """Open a dead letter for each object, or count one more delivery of it."""
        now = self._memory.clock.now()
        last = {reject.key or reject.address: reject for reject in rejects}
        with self._memory.lock:
            self._memory.still_shard(run.id, shard.key, shard.token)
            for reject in last.values():
                index = self._index(run.sync, reject)
                if index is None:
                    self._memory.dead_letters.append(
                        DeadLetter(
                            id=len(self._memory.dead_letters) + 1,
                            sync=run.sync,
                            run=run.id,
                            shard=shard.key,
                            reject=reject,
                            attempts=1,
                            status=DeadLetterStatus.OPEN,
                            first_seen=now,
                            last_seen=now,
                        )
                    )
                    continue
                held = self._memory.dead_letters[index]
                if held.reject.address != reject.address:
                    again = {
                        "run": run.id,
                        "shard": shard.key,
                        "reject": reject,
                        "attempts": held.attempts + 1,
                        "last_seen": now,
                    }
                    self._memory.dead_letters[index] = held.model_copy(update=again)

    def close(self, run: Run, keys: Sequence[ObjectKey]) -> int:
        """Close the open dead letters of objects that came right."""
        closed = 0
        with self._memory.lock:
            self._memory.still_run(run.id, run.token)
            for index, letter in enumerate(self._memory.dead_letters):
                is_known = run.replays is None or letter.run in (run.replays, run.id)
                if _is_open(letter, run.sync) and letter.reject.key in keys and is_known:
                    self._memory.dead_letters[index] = letter.model_copy(update={"status": DeadLetterStatus.CLOSED})
                    closed += 1
        return closed

    def open_for(self, sync: str, limit: int) -> list[DeadLetter]:
        """Return open dead letters, newest first."""
        with self._memory.lock:
            found = [letter for letter in self._memory.dead_letters if _is_open(letter, sync)]
        return sorted(found, key=lambda letter: (letter.last_seen, letter.id), reverse=True)[:limit]

    def _index(self, sync: str, reject: Reject) -> int | None:
        identity = reject.key or reject.address
        for index, letter in enumerate(self._memory.dead_letters):
            if _is_open(letter, sync) and (letter.reject.key or letter.reject.address) == identity:
                return index
        return None


def _is_open(letter: DeadLetter, sync: str) -> bool:
    return letter.sync == sync and letter.status is DeadLetterStatus.OPEN
