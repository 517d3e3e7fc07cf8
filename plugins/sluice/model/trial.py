"""A trial: what a run of a spec would ask for, map and change, without changing anything.

Everything in it that the supplier or the table holds is text, to be escaped wherever it is shown.
"""

from typing import Final

from pydantic import Field

from sluice.model.base import Frozen, ObjectKey, ShardKey
from sluice.model.evidence import ObjectSample
from sluice.model.ledger import Outcome
from sluice.model.run import Failure, Mode, Window

MOST_RECORDS: Final = 1_000
"""More than so many are no trial but a run."""


class TrialQuestion(Frozen):
    """What is to be tried of a spec."""

    shard: ShardKey | None = Field(default=None, description="None: the first")
    limit: int = Field(default=10, ge=1, le=MOST_RECORDS, description="how many records to take at most")
    mode: Mode | None = Field(default=None, description="None: incremental where the sync can, else full")
    window: Window | None = None


class TrialRow(Frozen):
    """A row as it would stand in the target."""

    key: ObjectKey
    is_gone: bool = Field(description="whether its record says that the object is gone: it has no values then")
    values: dict[str, str | None]


class TrialReject(Frozen):
    """A record that would not be taken in."""

    record: int = Field(ge=0, description="its place among the records, counted from 0")
    key: ObjectKey | None
    field: str | None
    error: str
    message: str


class Hint(Frozen):
    """Something in the spec that is not wrong, but looks like it, now that the supplier has answered."""

    path: tuple[str | int, ...] = Field(description="the key of the spec, from its root")
    message: str


class Comparison(Frozen):
    """What the rows would change in the target, as far as the records go: what is absent is no deletion."""

    table_changes: tuple[str, ...] = Field(description="what publication would do to the table itself: statements")
    outcomes: dict[Outcome, int]
    unchanged: int
    objects: tuple[ObjectSample, ...] = Field(description="each object that is not unchanged, and what of it would change")


class Trial(Frozen):
    """All that came of it; where it failed, what came of it until then."""

    sync: str
    mode: Mode
    window: Window | None
    shard: ShardKey
    params: dict[str, str]
    shards: int = Field(ge=1, description="how many shards a run would have")
    watermark: str | None
    until: str | None
    pages: int
    records: tuple[str, ...]
    is_cut: bool = Field(description="whether there are more records than were asked for")
    columns: dict[str, str] = Field(description="the columns of the target, each with its type")
    rows: tuple[TrialRow, ...]
    rejects: tuple[TrialReject, ...]
    paths: str | None = Field(description="what stands in the records, as people read it; None: there is no record")
    hints: tuple[Hint, ...]
    comparison: Comparison | None
    incomparable: str | None = Field(default=None, description="why there is no comparison")
    failure: Failure | None = Field(default=None, description="what a run would fail with")
