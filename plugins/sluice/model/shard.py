"""A shard: the unit of scheduling, retry and resume."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pydantic import Field, JsonValue

from sluice.model.base import Frozen, RunId, ShardKey, Token
from sluice.model.lifecycle import ShardStatus
from sluice.model.run import Failure, Run

SHARD_STATE_VERSION: Final = 4

_NAMED: Final = 10
"""How many of many shards are named where a person reads about them."""


class ShardPlan(Frozen):
    """A shard as the sharder yields it: its key, and the values its requests are made with."""

    key: ShardKey = Field(min_length=1, max_length=200)
    params: dict[str, str]
    transformer_version: int | None = Field(default=None, description="of the transformation; None: its run's")


class Shard(Frozen):
    """A shard of a run, and how far it has come.

    `cursor` is opaque to all but the paginator; it points behind the last checkpointed page. `exhausted` says that no
    page follows. `chunks` is the number of raw chunks with a committed pointer, and the `seq` of the next one.
    """

    run: RunId
    key: ShardKey
    params: dict[str, str]
    status: ShardStatus
    transformer_version: int | None = Field(
        default=None, description="of the transformation that makes its rows; None: its run's, planned by an older release"
    )
    epoch: int = Field(default=0, ge=0, description="how often it was begun again from its first page")
    cursor: JsonValue = None
    exhausted: bool = False
    watermark: str | None = Field(default=None, description="the lower bound its requests use, fixed when it was planned")
    until: datetime | None = Field(
        default=None, description="the supplier's own time when it was begun, less the margin: no mark above it is published"
    )
    supplied_at: datetime | None = Field(default=None, description="the supplier's own time at its last page")
    high_mark: str | None = Field(default=None, description="the highest watermark value seen, to be published")
    chunks: int = 0
    pages: int = 0
    records: int = 0
    attempt: int = Field(default=0, description="how many times its fetching was begun or gone on with")
    token: Token
    failure: Failure | None = None
    state_version: int = SHARD_STATE_VERSION
    progress_at: datetime | None = None

    def version_in(self, run: Run) -> int:
        """Return the version of the transformation that makes its rows."""
        return self.transformer_version or run.transformer_version


def some_of(names: Sequence[str], between: str = ", ") -> str:
    """Return the names joined; of thousands no more than a person reads, and how many more there are."""
    shown = between.join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown}{between}and {len(names) - _NAMED:,} more"
