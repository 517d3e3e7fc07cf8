"""What the target holds of each object, and what became of it when."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from sluice.model.base import Frozen, ObjectKey, PublicationId, ReviewId, RunId, ShardKey


class Outcome(StrEnum):
    """What a run makes of one object."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    REAPPEARED = "reappeared"
    STALE = "stale"
    REJECTED = "rejected"
    ROLLED_BACK = "rolled-back"
    """Its row was put back, or taken out, by the publication that undid another."""
    REFRESHED = "refreshed"
    """Its raw bytes differ but its row does not: only the raw hash is noted, and no event is written."""


WRITING_OUTCOMES = frozenset({Outcome.CREATED, Outcome.CHANGED, Outcome.DELETED, Outcome.REAPPEARED, Outcome.ROLLED_BACK})
"""The outcomes that change the target table."""


class ObjectState(StrEnum):
    """Whether the target holds the object."""

    LIVE = "live"
    DELETED = "deleted"


class Remembered(NamedTuple):
    """What the ledger remembers of an object's bytes; hashes are 16 bytes. There is one for each object of a chunk."""

    raw_hash: bytes
    row_hash: bytes
    source_version: int | None


class LedgerObject(Frozen):
    """The ledger's row of one object."""

    sync: str
    key: ObjectKey
    shard: ShardKey
    raw_hash: bytes
    row_hash: bytes
    transformer_version: int
    source_version: int | None = Field(description="as an integer that orders: the number itself, or microseconds since 1970")
    state: ObjectState
    first_seen: datetime
    last_changed_run: RunId
    publication: PublicationId


class ObjectEvent(Frozen):
    """One thing that became of an object, as the ledger tells it."""

    at: datetime
    run: RunId
    outcome: Outcome
    old_hash: bytes | None
    new_hash: bytes | None
    source_version: int | None
    publication: PublicationId | None
    transformer_version: int | None = Field(default=None, description="by which it happened; None: an older release wrote it")


class Publication(Frozen):
    """One applied review."""

    id: PublicationId
    sync: str
    review: ReviewId
    run: RunId
    counts: dict[Outcome, int]
    approved_by: str | None = Field(default=None, description="who let it pass, or `policy`; None: published by an old release")
    undo_key: str | None = Field(default=None, description="the artifact that holds what was before")
    undoes: PublicationId | None = Field(default=None, description="the publication it took back")
    rolled_back_by: PublicationId | None = Field(default=None, description="the publication that took it back")
    transformer_versions: tuple[int, ...] = Field(
        default=(), description="by which what it wrote was made; none: it wrote nothing, or an older release did"
    )
    applied_at: datetime

    @property
    def writes(self) -> int:
        """How many rows of the target it changed; none where only the ledger had something to learn."""
        return sum(self.counts.get(outcome, 0) for outcome in WRITING_OUTCOMES)
