"""The shards of a run in; what they come to, and those of them that people look at, out: thousands are no table to read."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sluice.model.lifecycle import ShardStatus
from sluice.model.shard import Shard

_SHOWN: Final = 50
"""So many shards are a table; of more, so many are shown."""
_NUMBERS: Final = re.compile(r"([0-9]+)")
_URGENCY: Final = (ShardStatus.FAILED, ShardStatus.RUNNING, ShardStatus.PENDING, ShardStatus.SKIPPED, ShardStatus.SUCCEEDED)


@dataclass(frozen=True)
class Tally:
    """What the shards of one status come to."""

    status: ShardStatus
    shards: int
    pages: int
    records: int


def tallied(shards: Sequence[Shard]) -> list[Tally]:
    """Return what the shards of each status come to, those first that are not done."""
    by_status = {status: [shard for shard in shards if shard.status is status] for status in _URGENCY}
    return [
        Tally(status, len(found), sum(shard.pages for shard in found), sum(shard.records for shard in found))
        for status, found in by_status.items()
        if found
    ]


def tallies(shards: Sequence[Shard]) -> list[Tally]:
    """Return what the shards of each status come to; nothing where they are few enough to be shown one by one."""
    return [] if len(shards) <= _SHOWN else tallied(shards)


def by_key(shards: Iterable[Shard]) -> list[Shard]:
    """Return the shards by key, numbers in keys by their value."""
    return sorted(shards, key=lambda shard: _parts(shard.key))


def by_urgency(shards: Iterable[Shard]) -> list[Shard]:
    """Return the shards, those first that are not done; among those of a status their order stays."""
    return sorted(shards, key=lambda shard: _URGENCY.index(shard.status))


def worth_showing(shards: Sequence[Shard]) -> list[Shard]:
    """Return the shards to show, by key; of many, those first that are not done."""
    ordered = by_key(shards)
    return ordered if len(shards) <= _SHOWN else by_urgency(ordered)[:_SHOWN]


def _parts(key: str) -> list[str | int]:
    """Return the texts and numbers of a key, by turns, so that two keys always compare."""
    return [int(part) if place % 2 else part for place, part in enumerate(_NUMBERS.split(key))]
