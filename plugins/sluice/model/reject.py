"""Objects that could not be taken in, with the address of their raw bytes."""

from datetime import datetime
from enum import StrEnum

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


class DeadLetterStatus(StrEnum):
    """What became of a dead letter."""

    OPEN = "open"
    CLOSED = "closed"


class DeadLetter(Frozen):
    """A reject as state keeps it, until the object comes right."""

    id: int
    sync: str
    run: RunId
    shard: ShardKey
    reject: Reject
    attempts: int
    status: DeadLetterStatus
    first_seen: datetime
    last_seen: datetime
