"""What a run knows of itself: task state, written synchronously at checkpoints."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.audit import Actor
from sluice.model.base import ReviewId, RunId, ShardKey, Token
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.review import Decision, Review
from sluice.model.run import Failure, Mode, Run, Window
from sluice.model.shard import Shard, ShardPlan
from sluice.model.stage import StagePolicy


class RunStore(Protocol):
    """The runs. Each write is one transaction, with its event in it."""

    def open(self, run: Run, policy: StagePolicy, by: Actor | None = None) -> Run:
        """Insert the run, and decide by `guard.flight` what becomes of it: return it with a new token.

        It has the flight of its request key and is `pending`; or it follows another run that is alive, and is `waiting`; or
        it has an earlier run's result, and has `succeeded`. Idempotent by run id: a run that works itself, or has succeeded, is
        returned as it is. Opening a follower again is how it looks what has become of its owner. `by` is who has asked for it:
        of a new run that is forced, or rests on what others have brought, the audit trail tells.
        """

    def get(self, run: RunId) -> Run:
        """Return the run; raise `NotFound` naming it."""

    def enter(self, run: RunId, step: Step, lease_ttl: timedelta) -> Run:
        """Put the run at `step`, `running`, with a new token that fences every earlier one; renew its lease.

        Reopens a failed, partial or cancelled run. A run that succeeded is returned unchanged. Raises `FlightTaken` while
        another run of the same request has a lease that has not expired.
        """

    def end(self, run: Run, event: RunEvent, failure: Failure | None = None) -> Run:
        """Let `event` (park, succeed, end-partial, fail, cancel) happen to the run; raise `Fenced` on an older token.

        An event that ends or parks the run releases its flight.
        """

    def renew(self, run: Run, lease_ttl: timedelta) -> bool:
        """Let the run's flight last for another `lease_ttl`; `Fenced` on an older token, or if another run has it.

        A run that does not run any more, since it ended or waits, takes no flight back: False.
        """

    def next_token(self, run: Run) -> Run:
        """Exchange the token that `run` carries for a newer one; `Fenced` unless it still is the run's, and the run runs."""

    def reach(self, run: Run, step: Step) -> None:
        """Note that the step the run is at has come to its end, so that `step` is next; `Fenced` on an older token."""

    def fetched_within(self, sync: str, window: Window) -> list[Run]:
        """Return the runs that have asked the supplier of a sync, and were begun within a window, oldest first."""

    def asked_within(self, sync: str, span: Window, modes: Sequence[Mode]) -> list[Run]:
        """Return the runs of a sync in some modes whose windows lie within a span of time, the newest first."""

    def newer_than(self, run: Run) -> list[RunId]:
        """Return the runs of the sync whose data is newer than that of a replay, and of which nobody can tell any more.

        Data is as old as the run that has fetched it: of a replay, the newest one that it has replayed.
        """

    def recent(self, sync: str | None, statuses: Sequence[RunStatus], limit: int, before: RunId | None = None) -> list[Run]:
        """Return the newest runs first, filtered where a filter is given; only those admitted before one, if it is there."""

    def followed_by(self, run: RunId, limit: int) -> list[Run]:
        """Return the runs that wait for that one, or have ended with its outcome, the newest first."""


class ShardStore(Protocol):
    """The shards of runs, and the pointers that belong to their checkpoints."""

    def plan(self, run: Run, plans: Sequence[ShardPlan], watermarks: Mapping[ShardKey, str]) -> list[Shard]:
        """Insert the shards, `pending`; those that exist stay as they are. Return all shards of the run by key."""

    def adopt(self, run: Run, donors: Sequence[RunId], versions: Mapping[ShardKey, int], expires_at: datetime) -> list[Shard]:
        """Give a replay the shards of the runs it replays: those it asks for that were fetched to their end, `pending`.

        The raw chunks of all donors, those of the first one first, are the run's own from then on, and kept until `expires_at`
        at least; a chunk that one has taken over from another comes once. A shard of which a chunk is not kept any more is left
        out; those that exist stay as they are. `versions` are those of the transformation that make them, where that is not
        the run's. Return all shards of the run by key.
        """

    def of(self, run: RunId) -> list[Shard]:
        """Return the run's shards, ordered by key."""

    def get(self, run: RunId, key: ShardKey) -> Shard:
        """Return one shard of the run; raise `NotFound` naming it."""

    def delivered(self, sync: str, runs: int) -> dict[ShardKey, tuple[int, ...]]:
        """Return how many records each shard had in the last so many full runs that succeeded, newest first."""

    def claim(self, run: RunId, key: ShardKey) -> Shard:
        """Make the shard `running` with a new token, and one more attempt unless it is fetched already.

        Returns it unchanged if it has succeeded or is skipped. Raises `NotFound` if the run has no such shard, and
        `FlightTaken` while another run of the same request has a lease that has not expired.
        """

    def claim_next(self, run: RunId) -> Shard | None:
        """Claim some pending shard that nobody else is claiming (SKIP LOCKED); None if there is none left."""

    def checkpoint(self, shard: Shard, pointer: Pointer, lease_ttl: timedelta) -> Shard:
        """Commit a raw chunk's pointer together with the cursor, counters and marks of `shard`, and renew the run's lease.

        `shard` carries the new cursor; its token must still be the row's, else `Fenced`. Returns the row.
        """

    def renew(self, shard: Shard, lease_ttl: timedelta) -> None:
        """Let the flight of the shard's run last for another `lease_ttl`; `Fenced` on an older token."""

    def succeed(self, shard: Shard) -> Shard:
        """The shard is fetched and transformed; its high mark is kept. `Fenced` on an older token."""

    def fail(self, shard: Shard, failure: Failure, silence: timedelta | None = None) -> Shard:
        """The shard gave up; its cursor stands. `Fenced` on an older token.

        It goes on after some `silence`, if that is given: the flight of its run lasts for so long at least.
        """


class PointerStore(Protocol):
    """Pointers to artifacts, apart from those a checkpoint commits."""

    def add(self, pointer: Pointer, token: Token | None = None) -> None:
        """Record a pointer. Idempotent by ref: the same bytes change nothing, other bytes replace the pointer.

        With a token, raises `Fenced` unless it is the token of the ref's shard (or of its run, without a shard).
        """

    def rows_elsewhere(self, raw: Pointer, made_by: str) -> Pointer | None:
        """Return the rows that another run has made of the very same raw chunk, and that count; None if there are none.

        Those whose variant begins with `made_by`; the fullest of them, and of those the newest.
        """

    def named(self, keys: Sequence[str]) -> dict[str, Pointer]:
        """Return a pointer to each of these artifacts, by key; one that counts no more leads to its bytes, too."""

    def of(self, run: RunId, kind: ArtifactKind, shard: ShardKey | None = None) -> list[Pointer]:
        """Return the pointers of one kind that count, ordered by shard, seq and variant."""


class ReviewStore(Protocol):
    """Reviews and the decisions about them."""

    def save(self, review: Review, run: Run) -> Review:
        """Insert the review; the same id is returned as stored, decision and all. `Fenced` on an older run token.

        Reviews that still wait are superseded by it: those of the same run, and those of older runs of the sync that it
        covers (see `guard.supersession`).
        """

    def get(self, review: ReviewId) -> Review:
        """Return the review; raise `NotFound` naming it."""

    def latest(self, run: RunId) -> Review | None:
        """Return the newest review of the run."""

    def of(self, run: RunId) -> list[Review]:
        """Return the reviews of the run, the newest first."""

    def waiting(self, sync: str | None = None) -> list[Review]:
        """Return the reviews that wait for a decision, oldest first."""

    def count_waiting(self) -> int:
        """Return how many reviews wait for a decision."""

    def superseded_by(self, review: ReviewId) -> list[Review]:
        """Return the reviews whose place that one has taken, oldest first."""

    def decide(self, review: ReviewId, decision: Decision) -> Review:
        """Record the decision and move the verdict; the same choice again changes nothing.

        Raises `IllegalTransition`, naming the present verdict and whose it is, if the review no longer waits.
        """


class WatermarkStore(Protocol):
    """How far incremental fetching has been published, per sync and shard."""

    def of(self, sync: str) -> dict[ShardKey, str]:
        """Return the watermark of each shard that has one."""

    def advance(self, sync: str, marks: Mapping[ShardKey, str], run: Run) -> None:
        """Move watermarks forward to what `run` published; `Fenced` on an older run token."""
