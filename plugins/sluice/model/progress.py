"""How far an open chunk has come, for whoever watches: it may be lost at any time, and nothing is decided by it."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from pydantic import Field

from sluice.model.base import Frozen, RunId, ShardKey, Token
from sluice.model.lifecycle import ShardStatus
from sluice.model.shard import Shard

TOLD_EVERY: Final = timedelta(seconds=2)
"""At most so often is the progress of a shard written, however fast its pages come."""


class Progress(Frozen):
    """What the open chunk of a shard holds beyond the last checkpoint."""

    run: RunId
    shard: ShardKey
    token: Token = Field(description="the shard's, of whoever tells it")
    chunk: int = Field(description="the seq of the open chunk")
    pages: int = 0
    records: int = 0
    bytes: int = 0

    def is_of(self, shard: Shard) -> bool:
        """Whether it is of the chunk that the shard has open now; what was told of an earlier one is checkpointed, or lost."""
        return (
            shard.status is ShardStatus.RUNNING
            and not shard.exhausted
            and (self.token, self.chunk) == (shard.token, shard.chunks)
        )


def shown(shards: Iterable[Shard], told: Mapping[ShardKey, Progress]) -> list[Shard]:
    """Return the shards with what their open chunks are known to hold added to their figures, for people to look at."""
    return [_with(shard, told.get(shard.key)) for shard in shards]


def _with(shard: Shard, told: Progress | None) -> Shard:
    if told is None or not told.is_of(shard):
        return shard
    return shard.model_copy(update={"pages": shard.pages + told.pages, "records": shard.records + told.records})
