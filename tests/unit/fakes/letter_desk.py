"""Dead letters as people deal with them, in memory."""

from collections import defaultdict

from sluice.errors import NotFound
from sluice.model.audit import Act, Actor
from sluice.model.base import ObjectKey
from sluice.model.reject import Cause, DeadLetter, DeadLetterGroup, DeadLetterLines, DeadLetterStatus
from sluice.model.run import Redrive
from tests.unit.fakes.memory import Memory
from tests.unit.fakes.redrive_store import selected, selected_lines


class MemoryLetterDesk:
    """The port `LetterDesk`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def groups(self, sync: str | None) -> list[DeadLetterGroup]:
        """Return the open letters, summed up by cause."""
        letters: dict[tuple[str, Cause], list[DeadLetter]] = defaultdict(list)
        rests: dict[tuple[str, Cause], list[DeadLetterLines]] = defaultdict(list)
        for letter in self._memory.dead_letters:
            if letter.status is DeadLetterStatus.OPEN and sync in (None, letter.sync):
                letters[letter.sync, letter.reject.cause].append(letter)
        for rest in self._memory.lines.values():
            if rest.status is DeadLetterStatus.OPEN and sync in (None, rest.sync):
                rests[rest.sync, rest.cause].append(rest)
        found = [_group(name, cause, letters[name, cause], rests[name, cause]) for name, cause in {*letters, *rests}]
        return sorted(found, key=lambda group: (group.sync, -group.objects, str(group.cause)))

    def get(self, letter: int) -> DeadLetter:
        """Return one letter."""
        for found in self._memory.dead_letters:
            if found.id == letter:
                return found
        raise NotFound(f"there is no dead letter {letter}", letter=letter)

    def of_object(self, sync: str, key: ObjectKey, limit: int) -> list[DeadLetter]:
        """Return the letters of an object, the newest first."""
        found = [letter for letter in self._memory.dead_letters if letter.sync == sync and letter.reject.key == key]
        return found[::-1][:limit]

    def selected(self, sync: str, redrive: Redrive, limit: int, before: int | None = None) -> list[DeadLetter]:
        """Return open letters, the newest first."""
        found = selected(self._memory, sync, redrive)[::-1]
        return [letter for letter in found if before is None or letter.id < before][:limit]

    def discard(self, sync: str, redrive: Redrive, by: Actor) -> int:
        """Give up what is selected."""
        said = {"ended_by": by.name, "reason": by.reason, "ended_at": self._memory.clock.now()}
        ended = {"status": DeadLetterStatus.DISCARDED, **said}
        letters = {letter.id: letter for letter in selected(self._memory, sync, redrive)}
        rest = selected_lines(self._memory, sync, redrive)
        self._memory.dead_letters[:] = [
            letter.model_copy(update=ended) if letter.id in letters else letter for letter in self._memory.dead_letters
        ]
        for row in rest:
            self._memory.lines[row.id] = row.model_copy(update={"status": DeadLetterStatus.DISCARDED})
        objects = len(letters) + sum(row.objects for row in rest)
        if objects:
            self._memory.note_act(Act.DISCARD, by, sync=sync, objects=objects, **redrive.model_dump(mode="json"))
        return objects


def _group(sync: str, cause: Cause, letters: list[DeadLetter], rest: list[DeadLetterLines]) -> DeadLetterGroup:
    newest = max(letters, key=lambda letter: letter.id, default=None)
    return DeadLetterGroup(
        sync=sync,
        cause=cause,
        objects=len(letters) + sum(row.objects for row in rest),
        letters=len(letters),
        attempts=max((letter.attempts for letter in letters), default=1),
        first_seen=min([letter.first_seen for letter in letters] + [row.seen_at for row in rest]),
        last_seen=max([letter.last_seen for letter in letters] + [row.seen_at for row in rest]),
        sample=newest.reject.message if newest is not None else min(row.message for row in rest),
    )
