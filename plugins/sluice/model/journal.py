"""What a run's journal tells of it: each transition of the run, its shards, its reviews and its calls, in order."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field, JsonValue

from sluice.model.base import Frozen, RunId


class Subject(StrEnum):
    """What an event happened to."""

    RUN = "run"
    SHARD = "shard"
    REVIEW = "review"
    CALL = "call"


class JournalEvent(Frozen):
    """One event. Those of a run are numbered without a gap, in the order in which they became visible to others."""

    run: RunId
    seq: int = Field(ge=1)
    at: datetime
    subject: Subject
    name: str = Field(description="the id of the run or review, the key of the shard, the name of who is called")
    event: str
    status: str = Field(description="the status or verdict after it")
    facts: dict[str, JsonValue]
