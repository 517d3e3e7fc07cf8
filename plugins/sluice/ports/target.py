"""The published table and the ledger beside it: read, compared, published."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import BinaryIO, Protocol

from sluice.model.artifact import Pointer
from sluice.model.base import ObjectKey, PublicationId, ReviewId, RunId, ShardKey, Token
from sluice.model.evidence import FieldChange, ObjectSample, Profile, VersionCount
from sluice.model.ledger import LedgerObject, ObjectEvent, Outcome, Publication, Remembered
from sluice.model.quality import ExpectationResult, SuiteExpectation
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.undo import Conflict


class Ledger(Protocol):
    """What the target holds of each object; read only, it is written by publications alone."""

    def remembered(self, sync: str, transformer_version: int, keys: Sequence[ObjectKey]) -> dict[ObjectKey, Remembered]:
        """Return what is remembered of those live objects under that transformer version."""

    def object(self, sync: str, key: ObjectKey) -> LedgerObject | None:
        """Return the ledger's row of one object."""

    def known(self, sync: str, keys: Sequence[ObjectKey]) -> dict[ObjectKey, LedgerObject]:
        """Return the ledger's rows of those objects that it knows."""

    def near(self, sync: str, key: ObjectKey, limit: int) -> list[ObjectKey]:
        """Return known keys that come before and after this one in key order, up to `limit` on either side."""

    def events(self, sync: str, key: ObjectKey) -> list[ObjectEvent]:
        """Return all that became of one object, oldest first."""

    def publications(self, sync: str, limit: int, before: PublicationId | None = None) -> list[Publication]:
        """Return the newest publications first; only those made before one, where that is given."""

    def publication(self, publication: PublicationId) -> Publication | None:
        """Return the publication of that id, of whichever sync it is."""

    def publication_of(self, review: ReviewId) -> Publication | None:
        """Return the publication of that review, if it was applied."""


@dataclass(frozen=True)
class Held:
    """A row that the target really holds, whoever wrote it."""

    key: ObjectKey | None
    """None: no object can have the values of its key columns."""
    row_hash: bytes | None
    """As the mapper would hash it; None: it holds a value that no publication can have written."""
    is_live: bool
    """Whether it is not deleted softly."""
    values: Mapping[str, str | None]
    """The fields of the spec, as Postgres spells them."""


class Target(Protocol):
    """The table that one sync keeps in step, in one database with its ledger."""

    def check(self) -> tuple[str, ...]:
        """Return the statements by which the next publication will make the table, or alter it, each with its reason.

        Raises `TargetMismatch`, naming every difference that it may not mend with the statement that does.
        """

    def held(self, keys: Sequence[ObjectKey] | None = None) -> "AbstractContextManager[Iterator[Held]]":
        """Open the rows the table holds, of these objects or of all; of an object with a history, the current one.

        They are read while the context lasts. A table that is not there holds none. Raises `TargetMismatch` if it lacks
        columns of the spec.
        """

    def missing(self) -> "AbstractContextManager[Iterator[ObjectKey]]":
        """Open the objects that the ledger says are live, and of which the table has no row, in key order.

        They are read while the context lasts. Raises `TargetMismatch` if there is no table.
        """

    def diffing(self) -> "AbstractContextManager[Diffing]":
        """Open a staging area of its own, which ends with the context."""

    def undo_of(self, publication: PublicationId, images: BinaryIO, diff: BinaryIO) -> "Undo":
        """Hold the before-images of a publication against table and ledger, which are not written, and write the diff.

        That is as of any review; with the place of its before-image for a row that is put back, without one for one taken out.
        Of all that grows with the publication, the conflicts alone are in memory.

        Raises `TargetMismatch`, naming them, if the table has lost columns that the publication had written.
        """

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
    """Whether every shard of a full run came through: only then are absent objects gone."""
    transformer_version: int
    """What made the rows of the shards that `versions` does not name."""
    versions: Mapping[ShardKey, int] = field(default_factory=dict)
    """The versions that made the shards of a canary."""
    newer: Sequence[RunId] = ()
    """Runs whose data is newer than that of a replay: what they have written is stale if it comes again, unless its version
    says otherwise."""
    deletes: bool = True
    """Whether what is gone is to be deleted; else it is counted alone."""


@dataclass(frozen=True)
class DiffCounts:
    """A diff, counted."""

    seen: int
    unchanged: int
    live_before: int
    first_loaded: int
    vanished: int
    """Objects the target holds and a complete run did not deliver, deletions or not; or that are ignored as said to be gone."""
    moved: int
    """Objects another shard delivered than the last time."""
    noted: int
    """Objects that leave the table alone, and of which the ledger has something to learn."""
    outcomes: Mapping[Outcome, int]
    versions: tuple[VersionCount, ...] = ()
    """What each version of the transformation has made, where there are several."""


@dataclass(frozen=True)
class Undo:
    """What taking a publication back would do."""

    objects: int
    """Objects of the publication."""
    restored: int
    """Those that nobody changed since."""
    live_before: int
    live_after: int
    conflicts: Sequence[Conflict]
    """Those that somebody did, in key order: they are left alone."""
    changes: Sequence[FieldChange]
    samples: Sequence[ObjectSample]


class Diffing(Protocol):
    """The staged keys and hashes of one run, held against the ledger set-wise."""

    def stage(self, shard: ShardKey, seq: int, rows: bytes) -> None:
        """Copy keys, hashes and versions of one rows artifact (Parquet) into the staging area."""

    def stage_rejected(self, keys: Iterable[ObjectKey], version: int | None = None) -> None:
        """Note objects that were delivered but rejected, by a version of the transformation: they are no deletions."""

    def leave_out(self, keys: Sequence[ObjectKey]) -> None:
        """Take objects for not delivered, however often they are staged."""

    def compare(self, scope: DiffScope) -> list[tuple[ShardKey, int]]:
        """Compare what is staged with the ledger, which is not written.

        Returns (shard, seq) of the rows artifacts that lack a row the diff needs, since the ledger changed after they were
        made: their chunks have to be mapped again, in full, and staged in their place.
        """

    def unstage(self, shard: ShardKey, seq: int) -> None:
        """Forget one rows artifact, to stage a better one."""

    def counts(self) -> DiffCounts:
        """Return what the last comparison has come to."""

    def write_diff(self, file: BinaryIO) -> None:
        """Write the diff of the last comparison (Parquet, ordered by key, see `model.rows`); little is in memory at a time."""

    def expecting(self, columns: Collection[str], patience: timedelta, moved: Callable[[], object]) -> "Expecting":
        """Hold what the table would be by the last comparison against expectations that read these columns, once.

        No statement of theirs goes on for longer than `patience`, and after each of them `moved` is called.
        """

    def inspecting(self, samples: int = 20) -> "Inspecting":
        """Take a closer look at the last comparison, once; nothing is staged or compared after it.

        Of each outcome `samples` objects are shown.
        """


@dataclass(frozen=True)
class Refused:
    """An object that came in and does not meet an expectation: where its row stands, and what offends."""

    shard: ShardKey
    seq: int
    position: int
    key: ObjectKey
    expectation: int
    """Its place in the suite."""
    value: str | None
    """As Postgres spells it, cut."""


class Expecting(Protocol):
    """All rows that the table would hold by a comparison, in the columns that a suite needs."""

    def needed(self) -> list[tuple[ShardKey, int]]:
        """Return (shard, seq) of the rows artifacts that hold rows that come in: to be loaded before anything else is asked."""

    def load_rows(self, shard: ShardKey, seq: int, rows: bytes) -> None:
        """Load the rows of one rows artifact that come in."""

    def complete(self) -> int:
        """Add the rows that stay; return how many the table would hold."""

    def check(self, expectations: Sequence[SuiteExpectation]) -> list[ExpectationResult]:
        """Return what is found of some expectations, which are checked together: one that raises may take others with it."""

    @property
    def engine(self) -> str | None:
        """What has checked, with its version; None: nothing could, or has yet."""

    @property
    def import_seconds(self) -> float:
        """How long loading it took."""

    def refuse(self, expectation: SuiteExpectation, place: int) -> None:
        """Note the objects that come in and do not meet an expectation, by its place in the suite.

        Its kind is one that can reject, and it was checked.
        """

    def refused(self) -> Iterator[Refused]:
        """Yield them, one rows artifact after the other."""

    def reject(self) -> int:
        """Take them for rejected, which the next comparison shows; the rows in whose place they would have come stay.

        Returns how many rows the table would hold then.
        """


class Inspecting(Protocol):
    """The rows of a comparison, laid beside those whose place they would take in the table, as others have left it."""

    def needed(self) -> list[tuple[ShardKey, int]]:
        """Return (shard, seq) of the rows artifacts that hold rows to look at: to be loaded before anything else is asked."""

    def load_rows(self, shard: ShardKey, seq: int, rows: bytes) -> None:
        """Load what has to be looked at of one rows artifact."""

    def differences(self) -> tuple[tuple[FieldChange, ...], tuple[ObjectSample, ...]]:
        """Return how often each field would change, the most frequent first, and some objects of each outcome in key order."""

    def profile(self, baseline: Profile | None, counted: Collection[str] = ()) -> Profile:
        """Sum up what the table would hold, in the bins and categories of the baseline, so that the two can be compared.

        Of the fields that are `counted`, the nulls of all rows are, even where the rest is summed up of a sample.
        """


class Publishing(Protocol):
    """The transaction of a publication."""

    def find(self, review: ReviewId) -> Publication | None:
        """Return the publication of that review if it is there already."""

    def load(self, diff: BinaryIO, *, with_deletes: bool) -> list[tuple[ShardKey, int]]:
        """Load the reviewed diff, and return (shard, seq) of the rows artifacts it needs. Makes the table if it is missing.

        Where the ledger of an object moved since the review, what was approved can only shrink: it is dropped if the
        ledger now holds something newer, or the same. Raises `LedgerMoved` if versions cannot tell, and `TargetMismatch` as
        `Target.check` does.
        """

    def load_rows(self, shard: ShardKey, seq: int, rows: bytes) -> None:
        """Load the rows of one rows artifact that the diff asks for."""

    def load_undo(self, diff: BinaryIO, undone: PublicationId, images: BinaryIO, *, with_deletes: bool) -> None:
        """Load the reviewed diff of a rollback, and the before-images of the publication it takes back.

        Without deletions no row is taken out. The table itself stays as it is.
        Raises `NotUndoable` if the publication has been taken back meanwhile, and `LedgerMoved` if one of the objects has been
        changed.
        """

    def before_images(self, file: BinaryIO) -> int:
        """Write the target's and the ledger's rows that would change or go, as they are (Parquet); return their number."""

    def apply(self, run: Run, review: Review, undo: Pointer) -> Publication:
        """Alter the table where its spec wants that, unless it is a rollback; write rows, ledger, events and the publication.

        Raises `ApprovalVoid` if a row is missing or not as reviewed, and `TargetMismatch`, also if the table takes a row not.
        """


Remember = Callable[[Sequence[ObjectKey]], Mapping[ObjectKey, Remembered]]
"""Looks up what the ledger remembers of some objects."""
