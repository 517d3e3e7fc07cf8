"""What the flow needs from the world, one small Protocol for each need, and `Services`, the bundle of them all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from pydantic import JsonValue

from sluice.model.alert import Alert
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import ObjectKey, ReviewId, RunId, ShardKey, Token
from sluice.model.breaker import Breaker
from sluice.model.call import Call, CallResult
from sluice.model.garbage import Garbage, Needed
from sluice.model.ledger import LedgerObject, ObjectEvent, Outcome, Publication, Remembered
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.progress import Progress
from sluice.model.reject import DeadLetter, Reject
from sluice.model.review import Decision, Review
from sluice.model.run import Failure, Run
from sluice.model.shard import Shard, ShardPlan
from sluice.model.spec import SyncSpec, WebhookSpec
from sluice.model.stage import StagePolicy


class Clock(Protocol):
    """Time."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""

    def elapsed(self) -> float:
        """Return seconds since some moment, which no change of the computer's clock affects: for measuring spans."""

    def wait(self, span: timedelta) -> None:
        """Return after that span."""

    def wait_until(self, instant: datetime) -> None:
        """Return once that instant has come."""


@dataclass(frozen=True)
class ConnectionInfo:
    """An Airflow connection, without Airflow. `extra` is its decoded JSON."""

    conn_id: str
    conn_type: str
    host: str | None
    port: int | None
    login: str | None
    password: str | None = field(repr=False)
    schema: str | None
    extra: Mapping[str, JsonValue] = field(repr=False)


class Connections(Protocol):
    """Looks Airflow connections up; `airflow_glue` and `cli` each supply one."""

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return the connection; raise `ConnectionInvalid`, saying how to define it, if there is none."""


class Metrics(Protocol):
    """Counts for whoever watches; `airflow_glue` supplies Airflow's own. Names and labels come from closed lists."""

    def count(self, name: str, number: int = 1, **labels: str) -> None:
        """Count so many more; never raises, never waits."""


class RunStore(Protocol):
    """The runs. Each write is one transaction, with its event in it."""

    def open(self, run: Run, policy: StagePolicy) -> Run:
        """Insert the run, and decide by `guard.flight` what becomes of it: return it with a new token.

        It has the flight of its request key and is `pending`; or it follows another run that is alive, and is `waiting`; or
        it has an earlier run's result, and has `succeeded`. Idempotent by run id: a run that works itself, or has succeeded, is
        returned as it is. Opening a follower again is how it looks what has become of its owner.
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

    def renew(self, run: Run, lease_ttl: timedelta) -> None:
        """Let the run's flight last for another `lease_ttl`; `Fenced` on an older token, or if another run has it.

        A run that does not run any more, since it ended or waits, takes no flight back.
        """

    def next_token(self, run: Run) -> Run:
        """Exchange the token that `run` carries for a newer one; `Fenced` unless it still is the run's."""

    def recent(self, sync: str | None, statuses: Sequence[RunStatus], limit: int) -> list[Run]:
        """Return the newest runs first, filtered where a filter is given."""


class ShardStore(Protocol):
    """The shards of runs, and the pointers that belong to their checkpoints."""

    def plan(self, run: Run, plans: Sequence[ShardPlan], watermarks: Mapping[ShardKey, str]) -> list[Shard]:
        """Insert the shards, `pending`; those that exist stay as they are. Return all shards of the run by key."""

    def of(self, run: RunId) -> list[Shard]:
        """Return the run's shards, ordered by key."""

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

    def fail(self, shard: Shard, failure: Failure) -> Shard:
        """The shard gave up; its cursor stands. `Fenced` on an older token."""


class PointerStore(Protocol):
    """Pointers to artifacts, apart from those a checkpoint commits."""

    def add(self, pointer: Pointer, token: Token | None = None) -> None:
        """Record a pointer. Idempotent by ref: the same bytes change nothing, other bytes replace the pointer.

        With a token, raises `Fenced` unless it is the token of the ref's shard (or of its run, without a shard).
        """

    def of(self, run: RunId, kind: ArtifactKind, shard: ShardKey | None = None) -> list[Pointer]:
        """Return the pointers of one kind, ordered by shard and seq."""


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


class ReviewStore(Protocol):
    """Reviews and the decisions about them."""

    def save(self, review: Review, run: Run) -> Review:
        """Insert the review; the same id is returned as stored, decision and all. `Fenced` on an older run token.

        Earlier reviews of the same run that still wait are superseded.
        """

    def get(self, review: ReviewId) -> Review:
        """Return the review; raise `NotFound` naming it."""

    def latest(self, run: RunId) -> Review | None:
        """Return the newest review of the run."""

    def waiting(self, sync: str | None = None) -> list[Review]:
        """Return the reviews that wait for a decision, oldest first."""

    def decide(self, review: ReviewId, decision: Decision) -> Review:
        """Record the decision and move the verdict; the same choice again changes nothing.

        Raises `IllegalTransition`, naming the present verdict and who gave it, if the review no longer waits.
        """


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


class DeadLetterStore(Protocol):
    """Objects that could not be taken in."""

    def record(self, run: Run, shard: ShardKey, rejects: Sequence[Reject]) -> None:
        """Open a dead letter for each reject, or count one more attempt of an open one of the same object."""

    def close(self, sync: str, keys: Sequence[ObjectKey]) -> int:
        """Close the open dead letters of objects that came right; return how many there were."""

    def open_for(self, sync: str, limit: int) -> list[DeadLetter]:
        """Return open dead letters, newest first."""


class ProgressStore(Protocol):
    """How far open chunks have come, for whoever watches."""

    def tell(self, progress: Progress) -> None:
        """Keep what a shard's open chunk holds; whoever no longer has the shard changes nothing."""

    def of(self, run: RunId) -> dict[ShardKey, Progress]:
        """Return what was told last of each shard of the run; `model.progress.shown` says what of it still counts."""


class WatermarkStore(Protocol):
    """How far incremental fetching has been published, per sync and shard."""

    def of(self, sync: str) -> dict[ShardKey, str]:
        """Return the watermark of each shard that has one."""

    def advance(self, sync: str, marks: Mapping[ShardKey, str], run: Run) -> None:
        """Move watermarks forward to what `run` published; `Fenced` on an older run token."""


class CallStore(Protocol):
    """Calls with side effects. A record expires after its `ttl`, by the database's clock; then it counts as absent.

    `run` is the run that works: each write is `Fenced` unless its token still is the run's.
    """

    def prepare(self, calls: Sequence[Call], run: Run, ttl: timedelta) -> None:
        """Note calls that are due once something else has happened; what is known of one of them stays."""

    def begin(self, call: Call, run: Run, ttl: timedelta) -> Call:
        """Commit the intent to make the call, noting it if it is not; return it with all that is known.

        One that has a result is returned as it is.
        """

    def answer(self, call: Call, run: Run, result: CallResult) -> None:
        """Keep the result of a call that was begun, and tell it in the journal of the call's run. The first result stands."""

    def leave(self, call: Call, run: Run, trouble: str) -> None:
        """Note why a try brought no result, and tell it in the journal of the call's run."""

    def of(self, run: RunId) -> list[Call]:
        """Return the calls of a run, oldest first."""

    def left(self, sync: str) -> list[Call]:
        """Return the calls without a result that runs of the sync have left behind which are over, oldest first."""


class Webhook(Protocol):
    """Somebody who wants to be told."""

    def post(self, key: str, body: Mapping[str, JsonValue]) -> CallResult:
        """Tell them once, under an idempotency key.

        Raises `ReceiverUnavailable` or `RateLimited` where nobody can say what they made of it.
        """


class AlertStore(Protocol):
    """Runs that keep failing."""

    def failed_in_a_row(self, run: RunId) -> int:
        """Return how many runs of the sync, up to this one, have failed or were partial since one succeeded.

        Runs that took another's outcome, that were called off or are not over do not count either way.
        """

    def note(self, run: Run, alert: Alert) -> bool:
        """Tell the alert in the run's journal; return whether it is the run's first."""


class BreakerStore(Protocol):
    """What all workers of a stage know together of the health of a supplier's host. Its instants are of its own clock."""

    def look(self, host: str, stage: str) -> Breaker:
        """Return the breaker; one that nobody has counted for is closed."""

    def count(self, host: str, stage: str, *, tries: int, failures: int, window: timedelta) -> Breaker:
        """Add tries, and return the breaker with all that were counted within the window."""

    def open(
        self, host: str, stage: str, *, open_for: timedelta, reason: str, probe: datetime | None = None
    ) -> Breaker | None:
        """Leave the supplier alone from now on: a closed breaker opens, or one that `probe` failed on opens again.

        None, and nothing is changed, if somebody else opened it, or makes the one try by now.
        """

    def claim_probe(self, host: str, stage: str, within: timedelta) -> Breaker | None:
        """Take the one try after a rest; its `probed_until` says which it is, and when another worker may have it instead.

        None if the rest is not over, or somebody else makes the try.
        """

    def close(self, host: str, stage: str, probe: datetime) -> Breaker | None:
        """Let all tries pass again, counting anew; None if another worker has the one try by now."""


class RateStore(Protocol):
    """The slots for requests to a supplier's host, shared by all workers of a stage."""

    def reserve(self, host: str, stage: str, *, spacing: timedelta, patience: timedelta) -> timedelta:
        """Take the next free slot, `spacing` behind the last one, and return how far off it is.

        Raises `RateLimited`, and takes none, if it is further off than `patience`.
        """


class ArtifactStore(Protocol):
    """Bytes in the object store."""

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        """Store and verify the bytes, and return their pointer. Idempotent: the key derives from `ref` alone."""

    def get(self, pointer: Pointer) -> bytes:
        """Return the bytes; raise `ArtifactCorrupt` if they are missing or do not match the pointer's sha-256."""

    def remove(self, pointer: Pointer) -> None:
        """Remove the bytes; nothing happens if they are gone."""


class ChunkCodec(Protocol):
    """Raw chunks: the bodies of consecutive pages, byte for byte, one compressed frame a page."""

    def pack(self, pages: Sequence[bytes], level: int) -> bytes:
        """Return one artifact that holds the pages; `level` is zstd's."""

    def pages(self, data: bytes) -> Iterator[bytes]:
        """Yield the pages, in order; raise `ArtifactCorrupt` if the layout is broken."""


@dataclass(frozen=True)
class Page:
    """One response of a source."""

    body: bytes
    records: int
    cursor: JsonValue
    """Where to go on after this page; None: nothing follows."""


@dataclass(frozen=True)
class PageRequest:
    """Which pages of a shard to yield."""

    shard: Mapping[str, str]
    cursor: JsonValue
    """None: from the beginning."""
    watermark: str | None
    window_start: datetime | None
    window_end: datetime | None


class Source(Protocol):
    """A supplier."""

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages behind `request.cursor`, in order, until nothing follows.

        Raises `SupplierUnavailable`, `RateLimited` (both after its own bounded retries), `SupplierRefused` or a kind of
        `AnswerUnusable`.
        """


class GarbageStore(Protocol):
    """What has outlived its time. Everything is done in steps that may be killed at any point, and done again."""

    def syncs(self) -> list[str]:
        """Return the syncs that have ended runs."""

    def estimate(self, needed: Needed, quiet: timedelta) -> Garbage:
        """Return what all of the below would remove now, without removing it."""

    def sweep_control(self, quiet: timedelta) -> dict[str, int]:
        """Remove control state whose time is over; what is known of suppliers, once nobody has asked them for `quiet`."""

    def sweep_session(self) -> dict[str, int]:
        """Remove events and progress of runs that ended longer ago than their `session_ttl`."""

    def condemn(self, needed: Needed) -> list[str]:
        """Let expired pointers count no more that nobody needs; return the keys of their bytes.

        Never one that is pinned, of a run that has not ended, or whose bytes a pointer names that has not expired.
        """

    def removing(self, keys: Sequence[str], needed: Needed) -> AbstractContextManager[list[Pointer]]:
        """Yield a pointer to each of the condemned bytes that nobody has come to need since.

        What points to them is removed when the block ends without an error. Until then no run of theirs can be gone on with.
        """

    def sweep_runs(self, needed: Needed) -> int:
        """Remove ended runs whose `state_ttl` is over, whose artifacts are gone, and which nobody needs."""


class SpecReader(Protocol):
    """The files a team edits."""

    def names(self) -> list[str]:
        """Return the names of all syncs."""

    def stages(self) -> list[str]:
        """Return the names of all stages."""

    def sync(self, name: str) -> SyncSpec:
        """Return the spec of a sync; raise `SpecInvalid` with all that is wrong with it."""

    def policy(self, stage: str) -> StagePolicy:
        """Return the policy of a stage; raise `SpecInvalid` with all that is wrong with it."""

    def check(self) -> list[str]:
        """Return every problem of every file."""


class DatabaseProbe(Protocol):
    """A look at a database that may not be there. Raises what its stores would."""

    def now(self) -> datetime:
        """Return the instant by its clock."""

    def revision(self) -> tuple[str | None, str]:
        """Return the revision its schema is at, None if there is none, and the one this release needs."""


class Ledger(Protocol):
    """What the target holds of each object; read only, it is written by publications alone."""

    def remembered(self, sync: str, transformer_version: int, keys: Sequence[ObjectKey]) -> dict[ObjectKey, Remembered]:
        """Return what is remembered of those live objects under that transformer version."""

    def object(self, sync: str, key: ObjectKey) -> LedgerObject | None:
        """Return the ledger's row of one object."""

    def events(self, sync: str, key: ObjectKey) -> list[ObjectEvent]:
        """Return all that became of one object, oldest first."""

    def publications(self, sync: str, limit: int) -> list[Publication]:
        """Return the newest publications first."""

    def publication_of(self, review: ReviewId) -> Publication | None:
        """Return the publication of that review, if it was applied."""


class Target(Protocol):
    """The table that one sync keeps in step, in one database with its ledger."""

    def check(self) -> None:
        """Raise `TargetMismatch`, naming every difference and its mend, if the table is there and does not fit the spec."""

    def prepare(self) -> None:
        """Create the table if it is missing; raise as `check` does."""

    def diffing(self) -> "AbstractContextManager[Diffing]":
        """Open a staging area of its own, which ends with the context."""

    def publishing(self, token: Token, patience: timedelta) -> "AbstractContextManager[Publishing]":
        """Open the one transaction of a publication, with the target locked and the token checked against its fence.

        Commits when the context ends without an error. The database rolls it back if it hears nothing for `patience`, so that
        a worker who hangs does not hold up the others. Raises `Fenced` on an older token and `CommitUnconfirmed` if the
        answer to the commit was lost.
        """


@dataclass(frozen=True)
class DiffScope:
    """What the absence of an object means in this run."""

    complete: bool
    """Whether every shard of a full run came through: only then are absent objects deletions."""
    transformer_version: int


@dataclass(frozen=True)
class DiffCounts:
    """A diff, counted."""

    seen: int
    unchanged: int
    live_before: int
    first_loaded: int
    outcomes: Mapping[Outcome, int]


class Diffing(Protocol):
    """The staged keys and hashes of one run, held against the ledger set-wise."""

    def stage(self, shard: ShardKey, seq: int, rows: bytes) -> None:
        """Copy keys, hashes and versions of one rows artifact (Parquet) into the staging area."""

    def stage_rejected(self, keys: Sequence[ObjectKey]) -> None:
        """Note objects that were delivered but rejected: they are no deletions."""

    def compare(self, scope: DiffScope) -> list[tuple[ShardKey, int]]:
        """Compare what is staged with the ledger, which is not written.

        Returns (shard, seq) of the rows artifacts that lack a row the diff needs, since the ledger changed after they were
        made: their chunks have to be mapped again, in full, and staged in their place.
        """

    def unstage(self, shard: ShardKey, seq: int) -> None:
        """Forget one rows artifact, to stage a better one."""

    def result(self) -> tuple[bytes, DiffCounts]:
        """Return the last comparison: the diff (Parquet, ordered by key, see `model.rows`) and its counts."""


class Publishing(Protocol):
    """The transaction of a publication."""

    def find(self, review: ReviewId) -> Publication | None:
        """Return the publication of that review if it is there already."""

    def load(self, diff: bytes, *, with_deletes: bool) -> list[tuple[ShardKey, int]]:
        """Load the reviewed diff, and return (shard, seq) of the rows artifacts it needs.

        Where the ledger of an object moved since the review, what was approved can only shrink: it is dropped if the
        ledger now holds something newer, or the same. Raises `LedgerMoved` if versions cannot tell.
        """

    def load_rows(self, shard: ShardKey, seq: int, rows: bytes) -> None:
        """Load the rows of one rows artifact that the diff asks for."""

    def before_images(self) -> tuple[bytes, int]:
        """Return the target's and the ledger's rows that would change or go, as they are (Parquet), and their number."""

    def apply(self, run: Run, review: Review, undo: Pointer) -> Publication:
        """Write rows, ledger, events and the publication; raise `ApprovalVoid` if a row is missing or not as reviewed."""


@dataclass(frozen=True)
class Services:
    """Everything a step may use. Built by `wiring` alone."""

    clock: Clock
    metrics: Metrics
    runs: RunStore
    shards: ShardStore
    pointers: PointerStore
    redos: RedoStore
    reviews: ReviewStore
    rebuilds: RebuildStore
    dead_letters: DeadLetterStore
    watermarks: WatermarkStore
    progress: ProgressStore
    garbage: GarbageStore
    artifacts: ArtifactStore
    codec: ChunkCodec
    source: Callable[[SyncSpec, StagePolicy], Source]
    ledger: Callable[[SyncSpec], Ledger]
    target: Callable[[SyncSpec], Target]
    spec: Callable[[str], SyncSpec]
    """Reads the spec of a sync by name, as it stands in `include/syncs` now."""
    policy: Callable[[str], StagePolicy]
    """Reads the policy of a stage by name."""
    calls: CallStore
    webhook: Callable[[WebhookSpec, StagePolicy], Webhook]
    alerts: AlertStore


Remember = Callable[[Sequence[ObjectKey]], Mapping[ObjectKey, Remembered]]
"""Looks up what the ledger remembers of some objects."""
