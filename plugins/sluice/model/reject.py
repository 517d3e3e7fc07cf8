"""Objects that could not be taken in, with the address of their raw bytes."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from sluice.model.base import Frozen, ObjectKey, RunId, ShardKey


class RawAddress(Frozen):
    """Where an object's raw bytes are: page `frame` of a raw chunk, record `index` of that page."""

    artifact: str = Field(description="the key of the raw artifact")
    frame: int = Field(ge=0)
    index: int = Field(ge=0)


class Reject(Frozen):
    """One object that breaks a rule of its spec."""

    key: ObjectKey | None = Field(description="None: not even the key could be read")
    address: RawAddress
    error: str = Field(description="what kind of rule it breaks: `type`, `required`, `out-of-range`, `not-an-object` …")
    field: str | None = None
    message: str
    raw_hash: str | None = Field(
        default=None, pattern="^[0-9a-f]{32}$", description="xxh3-128 of its bytes, in hex; None: an older release wrote it"
    )

    @property
    def cause(self) -> "Cause":
        """What it has in common with others."""
        return Cause(error=self.error, field=self.field)

    @property
    def identity(self) -> str:
        """What says that two deliveries are of one object: its key; its bytes, or their address, where it has none."""
        if self.key is not None:
            return identity_of(self.key)
        address = self.address
        return f"bytes {self.raw_hash or f'{address.artifact} {address.frame} {address.index}'}"


def identity_of(key: ObjectKey) -> str:
    """Return the identity of an object whose key is known."""
    return f"key {key}"


class Cause(Frozen):
    """Why objects could not be taken in: the rule, and the field that breaks it."""

    error: str
    field: str | None = Field(default=None, description="None: the whole object does")

    def __str__(self) -> str:
        """Return it as people name it: `type:rooms`, or `malformed` where no field is to blame."""
        return self.error if self.field is None else f"{self.error}:{self.field}"

    @classmethod
    def named(cls, written: str) -> "Cause":
        """Return the cause that people name so."""
        error, is_of_a_field, field = written.partition(":")
        return cls(error=error, field=field if is_of_a_field else None)


class DeadLetterStatus(StrEnum):
    """What became of a dead letter."""

    OPEN = "open"
    CLOSED = "closed"
    DISCARDED = "discarded"
    """A person has given it up. The same bytes of the same object do not open it again."""


class DeadLetter(Frozen):
    """A reject as state keeps it, until the object comes right or a person discards it."""

    id: int
    sync: str
    run: RunId
    shard: ShardKey
    reject: Reject
    transformer_version: int | None = Field(default=None, description="that rejected it; None: an older release has met it")
    attempts: int
    status: DeadLetterStatus
    first_seen: datetime
    last_seen: datetime
    delivered_at: datetime = Field(description="when the run was admitted that fetched its bytes from the supplier")
    redriven_by: tuple[RunId, ...] = Field(default=(), description="the redrives that have taken up these bytes")
    ended_at: datetime | None = None
    ended_by: str | None = Field(default=None, description="the run that closed it, or who discarded it")
    reason: str | None = Field(default=None, description="why it was discarded, or closed though the object is not right")


class DeadLetterLines(Frozen):
    """Objects of one cause that are too many for letters of their own: lines of a rejects artifact."""

    id: int
    sync: str
    cause: Cause
    message: str = Field(description="what is wrong with one of them")
    run: RunId
    shard: ShardKey
    artifact: str = Field(description="the key of the rejects artifact")
    raw_artifact: str
    lines: tuple[tuple[int, int], ...] = Field(description="of those that are still wrong: half-open spans, counted from 0")
    taken: tuple[tuple[int, int], ...] = Field(default=(), description="those that the redrive that asks has taken up")
    status: DeadLetterStatus
    delivered_at: datetime = Field(description="when the run was admitted that fetched their bytes from the supplier")
    seen_at: datetime

    @property
    def objects(self) -> int:
        """How many they are."""
        return sum(end - start for start, end in self.lines)

    def holds(self, line: int) -> bool:
        """Whether the object of a line is one of them."""
        return any(start <= line < end for start, end in self.lines)


class DeadLetterGroup(Frozen):
    """All open dead letters of one cause, summed up."""

    sync: str
    cause: Cause
    objects: int = Field(ge=1, description="all of them, those without a letter of their own included")
    letters: int = Field(ge=0, description="those with a letter of their own")
    attempts: int = Field(description="the most that one of the letters has")
    first_seen: datetime
    last_seen: datetime
    sample: str = Field(description="what is wrong with one of them")


class Seen(NamedTuple):
    """An object that came again, and where; without a place, it came right."""

    identity: str
    raw_hash: str | None = None
    artifact: str | None = None
    """The key of the rejects artifact."""
    line: int | None = None
    address: RawAddress | None = None


class Counted(NamedTuple):
    """An object that stands among the rest of its cause."""

    row: int
    """Of which `DeadLetterLines` its line is, by number."""
    line: int
    identity: str
    raw_hash: str | None
