"""Redrives in memory."""

from collections.abc import Mapping, Sequence

from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.reject import Cause, DeadLetter, DeadLetterLines, DeadLetterStatus, RawAddress
from sluice.model.run import Redrive, Run
from sluice.model.shard import Shard
from tests.unit.fakes.dead_letter_store import spans
from tests.unit.fakes.memory import Memory


class MemoryRedriveStore:
    """The port `RedriveStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def shards(self, sync: str, redrive: Redrive) -> dict[ShardKey, int]:
        """Return how many objects there are, by shard."""
        found: dict[ShardKey, int] = {}
        for letter in selected(self._memory, sync, redrive):
            found[letter.shard] = found.get(letter.shard, 0) + 1
        for rest in selected_lines(self._memory, sync, redrive):
            found[rest.shard] = found.get(rest.shard, 0) + rest.objects
        return dict(sorted(found.items()))

    def state(self, sync: str, redrive: Redrive) -> str:
        """Return what is another text once other objects are selected."""
        letters = [(letter.id, letter.reject.raw_hash) for letter in selected(self._memory, sync, redrive)]
        rest = [row.id for row in selected_lines(self._memory, sync, redrive)]
        return f"{letters} {max(rest, default=0)}"

    def letters(self, run: Run, shard: ShardKey, after: RawAddress | None, limit: int) -> list[DeadLetter]:
        """Return letters of a shard behind an address."""
        found = [letter for letter in selected(self._memory, run.sync, run.redrives or Redrive()) if letter.shard == shard]
        found = [letter for letter in found if after is None or _place(letter.reject.address) > _place(after)]
        return sorted(found, key=lambda letter: _place(letter.reject.address))[:limit]

    def lines(self, run: Run, shard: ShardKey, after: int) -> list[DeadLetterLines]:
        """Return the rest of a shard, behind a row."""
        found = selected_lines(self._memory, run.sync, run.redrives or Redrive())
        return [
            rest.model_copy(update={"taken": self._memory.lines_taken.get((rest.id, run.id), ())})
            for rest in found
            if rest.shard == shard and rest.id > after
        ]

    def take_up(self, shard: Shard, letters: Mapping[int, str]) -> None:
        """Note whose bytes the run has."""
        self._memory.still_shard(shard.run, shard.key, shard.token)
        for index, letter in enumerate(self._memory.dead_letters):
            if letter.id in letters and letter.status is DeadLetterStatus.OPEN:
                raw_hash = letter.reject.raw_hash or letters[letter.id]
                if letter.reject.raw_hash is None and letter.reject.key is None and self._is_known(letter.sync, raw_hash):
                    raw_hash = None
                known = letter.reject.model_copy(update={"raw_hash": raw_hash})
                others = tuple(run for run in letter.redriven_by if run != shard.run)
                taken = {"redriven_by": (*others, shard.run), "reject": known}
                self._memory.dead_letters[index] = letter.model_copy(update=taken)

    def take_up_lines(self, shard: Shard, row: int, lines: Sequence[int]) -> None:
        """Note which lines the run has."""
        self._memory.still_shard(shard.run, shard.key, shard.token)
        self._memory.lines_taken[row, shard.run] = spans(lines)

    def taken(self, run: RunId) -> list[DeadLetter]:
        """Return the letters that were taken up."""
        return [letter for letter in self._memory.dead_letters if run in letter.redriven_by]

    def taken_lines(self, run: RunId) -> list[DeadLetterLines]:
        """Return what was taken up without a letter."""
        return [rest.model_copy(update={"taken": self._memory.lines_taken[rest.id, run]}) for rest in self._taken_lines(run)]

    def close(self, run: Run, shards: Sequence[ShardKey], overtaken: Sequence[ObjectKey], hashes: Sequence[str]) -> int:
        """Close what was taken up and not rejected again."""
        self._memory.still_run(run.id, run.token)
        for rest in [row for row in self._taken_lines(run.id) if row.shard in shards and row.status is DeadLetterStatus.OPEN]:
            gone = {line for start, end in self._memory.lines_taken[rest.id, run.id] for line in range(start, end)}
            left = spans(line for start, end in rest.lines for line in range(start, end) if line not in gone)
            if left:
                self._memory.lines[rest.id] = rest.model_copy(update={"lines": left})
            else:
                del self._memory.lines[rest.id]
        closed = 0
        for index, letter in enumerate(self._memory.dead_letters):
            is_taken = run.id in letter.redriven_by and letter.status is DeadLetterStatus.OPEN
            if is_taken and letter.shard in shards:
                is_late = letter.reject.key in overtaken or (letter.reject.key is None and letter.reject.raw_hash in hashes)
                why = "a later delivery of it was published" if is_late else None
                if letter.reject.key is None and letter.reject.raw_hash is None:
                    why = "another letter is of the same bytes"
                ended = {"status": DeadLetterStatus.CLOSED, "ended_by": run.id, "reason": why}
                self._memory.dead_letters[index] = letter.model_copy(update={**ended, "ended_at": self._memory.clock.now()})
                closed += 1
        return closed

    def _taken_lines(self, run: RunId) -> list[DeadLetterLines]:
        return [rest for rest in self._memory.lines.values() if (rest.id, run) in self._memory.lines_taken]

    def _is_known(self, sync: str, raw_hash: str) -> bool:
        """Whether an open letter is known by these bytes alone."""
        return any(
            letter.sync == sync
            and letter.status is DeadLetterStatus.OPEN
            and letter.reject.key is None
            and letter.reject.raw_hash == raw_hash
            for letter in self._memory.dead_letters
        )


def selected(memory: Memory, sync: str, redrive: Redrive) -> list[DeadLetter]:
    """Return open letters by number or cause."""
    return [
        letter
        for letter in memory.dead_letters
        if letter.sync == sync
        and letter.status is DeadLetterStatus.OPEN
        and (not redrive.letters or letter.id in redrive.letters)
        and (redrive.cause is None or letter.reject.cause == Cause.named(redrive.cause))
    ]


def selected_lines(memory: Memory, sync: str, redrive: Redrive) -> list[DeadLetterLines]:
    """Return what has no letter of its own, of a cause or of all."""
    return [
        rest
        for _, rest in sorted(memory.lines.items())
        if rest.sync == sync
        and rest.status is DeadLetterStatus.OPEN
        and not redrive.letters
        and (redrive.cause is None or rest.cause == Cause.named(redrive.cause))
    ]


def _place(address: RawAddress) -> tuple[str, int, int]:
    return (address.artifact, address.frame, address.index)
