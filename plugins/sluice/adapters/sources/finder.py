"""A spec whose supplier lists what there is to be cut into shards comes in; the shards go out, the same for the same list."""

from collections import defaultdict
from collections.abc import Callable
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import CursorExpired, ShardsUnusable, SpecInvalid
from sluice.mapping.buckets import bucket_of
from sluice.mapping.shard_values import ShardValueReader
from sluice.model.base import ShardKey
from sluice.model.shard import ShardPlan
from sluice.model.sharding import MOST_SHARDS, FileShards, ListedShards, bucket_key
from sluice.model.source import SourceSpec
from sluice.model.spec import SyncSpec
from sluice.ports import PageRequest, ShardQuestion, Source

MOST_LISTED: Final = 100_000
"""More records than so many are read of no list, whatever becomes of their values."""

LARGEST_BUCKET: Final = 64_000
"""Bytes; the values of a bucket stand in its shard's row, and travel in each of its requests."""

_log = structlog.get_logger(__name__)


class SourceShardFinder:
    """Asks the source that lists the shards of a sync."""

    def __init__(self, spec: SyncSpec, source: Callable[[SourceSpec], Source]) -> None:
        """Say how to open a source."""
        self._spec = spec
        self._source = source

    def find(self, question: ShardQuestion, moved: Callable[[], None]) -> list[ShardPlan]:
        """Return the shards, each key once; call `moved` whenever the supplier has answered."""
        match self._spec.sharding:
            case ListedShards() as listed:
                values = self._patiently_listed(listed, question, moved)
                if not values:
                    raise ShardsUnusable(
                        f"shards.source ({listed.source}) lists nothing: that is an outage, and no empty supplier"
                    )
                return _plans(listed, values) if listed.buckets is None else _bucketed(listed, listed.buckets, values)
            case FileShards() as files:
                return self._files(files.split, question, moved)
            case sharding:
                raise SpecInvalid([f"shards.kind: no supplier lists shards of kind {sharding.kind if sharding else None}"])

    def _files(self, split: int | None, question: ShardQuestion, moved: Callable[[], None]) -> list[ShardPlan]:
        from sluice.adapters.sources.files.shards import FileFinder
        from sluice.adapters.sources.files.source import FilesSource

        source = self._source(self._spec.source)
        if not isinstance(source, FilesSource):
            raise SpecInvalid([f"shards.kind: files are no shards of a source of kind {self._spec.source.kind}"])
        return FileFinder(source, split).find(question, moved)

    def _patiently_listed(self, listed: ListedShards, question: ShardQuestion, moved: Callable[[], None]) -> set[str]:
        """Return what is listed, once more from the beginning if the supplier has forgotten where its list was read."""
        try:
            return self._listed(listed, question, moved)
        except CursorExpired as error:
            _log.warning(log_events.SHARDS_LISTED_AGAIN, message=error.message)
            return self._listed(listed, question, moved)

    def _listed(self, listed: ListedShards, question: ShardQuestion, moved: Callable[[], None]) -> set[str]:
        window = question.window
        asked = PageRequest(
            shard={},
            cursor=None,
            watermark=None,
            window_start=window.start if window else None,
            window_end=window.end if window else None,
        )
        reader = ShardValueReader(listed.source.stored_records, listed.value)
        values: set[str] = set()
        records = 0
        for page in self._source(listed.source).pages(asked):
            for value in reader.values(page.body):
                values.add(value)
                records += 1
            moved()
            if listed.buckets is None and len(values) > MOST_SHARDS:
                raise ShardsUnusable(
                    f"shards.source ({listed.source}) lists more than {MOST_SHARDS:,} values, each of which would be a shard: "
                    "spread them over fewer with shards.buckets"
                )
            if records > MOST_LISTED:
                raise ShardsUnusable(f"shards.source ({listed.source}) lists more than {MOST_LISTED:,} records")
        return values


def _plans(listed: ListedShards, values: set[str]) -> list[ShardPlan]:
    return [ShardPlan(key=ShardKey(value), params={listed.name: value}) for value in sorted(values)]


def _bucketed(listed: ListedShards, count: int, values: set[str]) -> list[ShardPlan]:
    """Return the buckets that have values; to ask for an empty one would be to ask for nothing, or for everything."""
    buckets: dict[int, list[str]] = defaultdict(list)
    for value in sorted(values):
        if "," in value:
            raise ShardsUnusable(
                f"shards.source ({listed.source}) lists {value!r}: the values of a bucket are joined by commas, so leave "
                "shards.buckets out"
            )
        buckets[bucket_of(value, count, listed.salt)].append(value)
    return [_bucket(listed, number, count, ",".join(members)) for number, members in sorted(buckets.items())]


def _bucket(listed: ListedShards, number: int, count: int, values: str) -> ShardPlan:
    key, size = bucket_key(number, count, listed.salt), len(values.encode())
    if size > LARGEST_BUCKET:
        raise ShardsUnusable(
            f"shards.source ({listed.source}): the values of bucket {key} have {size:,} bytes, and {LARGEST_BUCKET:,} at most "
            "can be asked for at once: raise shards.buckets"
        )
    return ShardPlan(key=key, params={listed.name: values})
