"""What mends and removes state: rows made again, artifacts made again, and what has outlived its time."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Protocol

from sluice.model.artifact import Pointer, StoredObject
from sluice.model.base import ReviewId, RunId, ShardKey
from sluice.model.garbage import Garbage, Heap, Holding, Needed, Retired, Undoing
from sluice.model.run import Run
from sluice.model.shard import Shard, ShardPlan

Holder = Run | Shard
"""Who works, and shows a token for it: a run at one of its steps, or a shard that was claimed."""


class RedoStore(Protocol):
    """Steps that are due again, since what they stored is lost. Each mark is one transaction; `Fenced` on an older token."""

    def fetch_again(self, shard: ShardKey, holder: Holder) -> None:
        """Let a shard begin again from its first page, `pending`, in a new epoch; its watermark stays.

        Its artifacts and the run's diffs count no more. Raises `IllegalTransition` for a shard that is skipped.
        """

    def map_again(self, shard: ShardKey, chunks: Sequence[int], holder: Holder) -> None:
        """Let some chunks of a shard be mapped again; their rows and rejects count no more. The shard is `pending`.

        What was fetched stays. Raises `IllegalTransition` for a shard that is skipped.
        """

    def review_again(self, run: Run) -> None:
        """Let the run be reviewed again; its diffs count no more."""


class RebuildStore(Protocol):
    """Writes rows anew that no release can read. One that can be read by then stays as it is."""

    def run(self, admitted: Run) -> None:
        """Write the run's row as it was admitted, its token spent; it has failed, unless its status can be read."""

    def shard(self, run: RunId, plan: ShardPlan) -> None:
        """Begin the shard again from its first page, in a new epoch; what was fetched and made of it counts no more.

        Raises `FlightTaken` while another run of the same request has a lease that has not expired.
        """

    def review(self, run: RunId, review: ReviewId) -> None:
        """Remove the review and the decision about it, so that the run is reviewed again."""


class GarbageStore(Protocol):
    """What has outlived its time. Everything is done in steps that may be killed at any point, and done again."""

    def syncs(self) -> list[str]:
        """Return the syncs that have ended runs."""

    def undoing(self) -> list[Undoing]:
        """Return the publications that are being taken back by runs which have not ended."""

    def estimate(self, needed: Needed, quiet: timedelta, grace: timedelta) -> Garbage:
        """Return what all of the below would remove now, without removing it; but orphans, which state does not know."""

    def close_silent(self, grace: timedelta) -> int:
        """Let runs fail that are at work, and that nobody has heard of for so long; return how many.

        Never one that waits for a person. Their flights are free; they can be gone on with as any failed run.
        """

    def sweep_control(self, quiet: timedelta) -> dict[str, int]:
        """Remove control state whose time is over; what is known of suppliers, once nobody has asked them for `quiet`."""

    def sweep_session(self) -> dict[str, int]:
        """Remove events and progress of runs that ended longer ago than their `session_ttl`."""

    def telling(self) -> AbstractContextManager[list[Retired]]:
        """Yield the events of some of those runs, none if there are no more; they are removed when the block ends."""

    def condemn(self, needed: Needed) -> tuple[list[Pointer], dict[Holding, Heap]]:
        """Let expired pointers count no more that nobody needs; return one to each of their bytes, and what stays and why.

        Never one that is pinned, of a run that has not ended, or whose bytes a pointer names that has not expired.
        """

    def removing(self, keys: Sequence[str], needed: Needed) -> AbstractContextManager[list[Pointer]]:
        """Yield a pointer to each of the condemned bytes that nobody has come to need since.

        What points to them is removed when the block ends without an error. Until then no run of theirs can be gone on with.
        """

    def orphans(
        self, found: Sequence[StoredObject], grace: timedelta
    ) -> AbstractContextManager[tuple[list[StoredObject], Heap]]:
        """Yield those of some objects that nothing points to, of runs that ended that long ago; and what is of no known run.

        Until the block ends none of these runs can be gone on with: nobody is about to point to them.
        """

    def retiring(self, needed: Needed, grace: timedelta) -> AbstractContextManager[tuple[list[Retired], dict[str, int]]]:
        """Yield some ended runs, none if there are no more, and the number of other rows by table; they go when the block ends.

        Those whose `state_ttl` and `grace` are over, whose artifacts are gone, and which nobody needs.
        """
