"""The shards of a run in; the strip of all of them, and the page of a table that a person asked for, out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sluice.model.lifecycle import ShardStatus
from sluice.model.shard import Shard
from sluice.model.shard_tally import Tally, by_key, by_urgency, tallied

_A_PAGE: Final = 20


@dataclass(frozen=True)
class ShardList:
    """What the page of a run shows of its shards."""

    strip: list[Shard]
    """All of them, by key."""
    tallies: list[Tally]
    rows: list[Shard]
    """Those of the table."""
    status: ShardStatus | None
    """Which the table was asked for; None: any, those first that are not done."""
    page: int
    pages: int
    found: int
    """How many the table would have, were it one page."""


def shard_list(shards: Sequence[Shard], status: ShardStatus | None, page: int) -> ShardList:
    """Lay out the shards; a page behind the last one is the last one."""
    strip = by_key(shards)
    found = by_urgency(strip) if status is None else [shard for shard in strip if shard.status is status]
    pages = max(1, -(-len(found) // _A_PAGE))
    page = min(page, pages)
    rows = found[(page - 1) * _A_PAGE : page * _A_PAGE]
    return ShardList(strip, tallied(shards), rows, status, page, pages, len(found))
