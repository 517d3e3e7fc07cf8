"""Dead letters: kept by the steps, taken up again by redrives, looked at and given up by people."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from sluice.model.audit import Actor
from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.reject import Counted, DeadLetter, DeadLetterGroup, DeadLetterLines, RawAddress, Reject, Seen
from sluice.model.run import Redrive, Run
from sluice.model.shard import Shard


class DeadLetterStore(Protocol):
    """Objects that could not be taken in. Each write is `Fenced` on an older token.

    Of one sync and cause some have a letter each; the rest are lines of rejects artifacts, which are kept for that long.
    """

    def record(self, run: Run, shard: Shard, rejects: Iterable[Reject], artifact: str) -> None:
        """Open a dead letter for each reject, or count one more attempt of an open one of the same object.

        `artifact` is the rejects artifact that they are the lines of. Those of a cause that has letters enough are left to
        the rest. An object without a key is known by its bytes. What was discarded stays so as long as its bytes are the same.
        A letter whose bytes came later than these is left as it is, and so is one that has ended since a redrive took it up.
        """

    def open_keys(self, sync: str) -> set[ObjectKey]:
        """Return the objects that have an open letter: there are few."""

    def close(self, run: Run, keys: Sequence[ObjectKey]) -> int:
        """Close the open dead letters of objects of the run's sync that came right; return how many there were.

        A replay, whose data may be old, closes those alone that it has recorded, or the run that it replays.
        """

    def close_absent(self, run: Run) -> int:
        """Close what was met before the run, which has seen all there is, and not in it; return how many letters there were."""

    def lines(self, sync: str) -> list[DeadLetterLines]:
        """Return what has no letter of its own, what was discarded of it included, oldest first."""

    def settle(self, run: Run, seen: Iterable[Seen], counted: Iterable[Counted]) -> None:
        """Take objects that were seen again out of the rest in which they stand; doing so again changes nothing.

        What is seen wrong and is `counted` in a discarded rest, with the same bytes, is discarded where it was seen.
        """


class RedriveStore(Protocol):
    """What redrives take up of the open dead letters, and what becomes of it. Each write is `Fenced` on an older token."""

    def shards(self, sync: str, redrive: Redrive) -> dict[ShardKey, int]:
        """Return how many objects there are to be taken up, by the shard that delivered them."""

    def state(self, sync: str, redrive: Redrive) -> str:
        """Return what is another text once other objects are selected."""

    def letters(self, run: Run, shard: ShardKey, after: RawAddress | None, limit: int) -> list[DeadLetter]:
        """Return the letters of a shard that the run is to take up, ordered by the address of their bytes, behind one."""

    def lines(self, run: Run, shard: ShardKey, after: int) -> list[DeadLetterLines]:
        """Return what of a shard the run is to take up that has no letter of its own, by number, behind one."""

    def take_up(self, shard: Shard, letters: Mapping[int, str]) -> None:
        """Note that the shard's run has the bytes of these letters, by number, and what the hash of each is."""

    def take_up_lines(self, shard: Shard, row: int, lines: Sequence[int]) -> None:
        """Note that the shard's run has the bytes of these lines, in order; of others it has not."""

    def taken(self, run: RunId) -> list[DeadLetter]:
        """Return the letters that the run has taken up, whatever has become of them since, by number."""

    def taken_lines(self, run: RunId) -> list[DeadLetterLines]:
        """Return what the run has taken up that has no letter of its own and has not come again since, by number."""

    def close(self, run: Run, shards: Sequence[ShardKey], overtaken: Sequence[ObjectKey], hashes: Sequence[str]) -> int:
        """Close what the run has taken up in these shards and not rejected again; return how many letters there were.

        Of objects that are `overtaken`, or have no key and one of these `hashes`, it is told that they did not come right by
        this run.
        """


class LetterDesk(Protocol):
    """Dead letters as people deal with them."""

    def groups(self, sync: str | None) -> list[DeadLetterGroup]:
        """Return the open letters of a sync, or of all, summed up by cause; by sync, those first that have most objects."""

    def get(self, letter: int) -> DeadLetter:
        """Return one letter, whatever has become of it; raise `NotFound` naming it."""

    def of_object(self, sync: str, key: ObjectKey, limit: int) -> list[DeadLetter]:
        """Return the letters of an object, the newest first."""

    def selected(self, sync: str, redrive: Redrive, limit: int, before: int | None = None) -> list[DeadLetter]:
        """Return open letters by number, by cause or all of them, the newest first; only those before a number, if given."""

    def discard(self, sync: str, redrive: Redrive, by: Actor) -> int:
        """Give up what is selected and open, letter or not, for the actor's reason; return how many objects that are."""
