"""A table, the spec of its sync, and a request, in; the conditions that its rows have to meet out."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from sluice.adapters.sources.sql.fragments import MARK, Fragment, column_of
from sluice.adapters.sources.sql.slots import in_bucket
from sluice.adapters.sources.sql.tables import Column, FoundTable
from sluice.errors import SpecInvalid
from sluice.model.scalars import spell_instant
from sluice.model.sharding import BucketShards, FileShards, ListedShards, RangeShards, ShardValues, WindowShards
from sluice.model.source import SqlSource
from sluice.model.spec import SyncSpec
from sluice.model.watermark import WATERMARK_TYPES, WatermarkSpec, WatermarkType
from sluice.ports import PageRequest

_TEXTS: Final = "S"
_NUMBERS: Final = "N"
_SMALLER_THAN_BIGINT: Final = frozenset({"smallint", "integer"})
_WHOLE: Final = _SMALLER_THAN_BIGINT | {"bigint"}
_WITHOUT_ZONE: Final = frozenset({"date", "timestamp without time zone"})
_DATES: Final = _WITHOUT_ZONE | {"timestamp with time zone"}
_WITH_OFFSET: Final = re.compile(r":.*(?:[Zz]|[+-]\d{2}(?::?\d{2})?)")
_WHOLE_NUMBER: Final = "^[+-]?[0-9]+$"
_WITH_FRACTION: Final = re.compile(r"[+-]?\d+\.\d+", re.ASCII)


@dataclass(frozen=True)
class _Ordered:
    """What the rows of a table are held against: its first column, for the type, and the text that stands for its value."""

    column: Column
    text: str
    zone: str = "UTC"
    """Where a column has no time zone of its own: the one that its values are in."""

    @property
    def is_date(self) -> bool:
        """Whether values are dates or instants."""
        return self.column.base in _DATES

    def compared(self, sign: str, bound: str) -> Fragment:
        """Return the condition that the value is so to a bound; one without an offset is in the time zone of the column."""
        if self.column.base in _WITHOUT_ZONE and _WITH_OFFSET.search(bound):
            return Fragment(f"{self.text} {sign} {MARK}::timestamptz at time zone {MARK}", (bound, self.zone))
        return Fragment(f"{self.text} {sign} {MARK}", (bound,))


def wanted(table: FoundTable, source: SqlSource, sync: SyncSpec, request: PageRequest) -> Iterator[Fragment]:
    """Yield the conditions of a request; raise `SpecInvalid` where a column is none that can be held against it.

    There is none for `until`: the snapshot has an end of its own, and what is dated later is taken in as well.
    """
    mark = source.watermark
    if mark is not None:
        values = _of_watermark(table, sync, mark)
        if request.watermark is not None:
            yield from _at_or_above(values, sync, mark, request.watermark)
        if not isinstance(sync.shards, WindowShards):
            yield from _within(values, "source.watermark", request.window_start, request.window_end)
    yield from _of_shard(table, source, sync, request)


def _of_watermark(table: FoundTable, sync: SyncSpec, mark: WatermarkSpec) -> _Ordered:
    columns = []
    for name in mark.fields:
        column, *inside = sync.field(name).paths[0]
        if inside:
            raise SpecInvalid([f"source.watermark: {name!r} stands inside column {column!r}: read the table by a query"])
        columns.append(table.column("source.watermark", str(column)))
    sorts = {(column.category, column.base in _DATES) for column in columns}
    if len(sorts) > 1:
        told = ", ".join(f"{column.name} is {column.type}" for column in columns)
        raise SpecInvalid([f"source.watermark: {told}, and these do not compare: read the table by a query"])
    named = [column_of(column.name) for column in columns]
    text = named[0] if len(named) == 1 else f"coalesce({', '.join(named)})"
    return _Ordered(columns[0], text, mark.zone or "UTC")


def _at_or_above(values: _Ordered, sync: SyncSpec, mark: WatermarkSpec, bound: str) -> Iterator[Fragment]:
    """Yield the condition that a row is not below a watermark, in the order in which watermarks are compared."""
    column = values.column
    if column.base in _WHOLE and _WITH_FRACTION.fullmatch(bound):
        bound = str(math.floor(Decimal(bound)))
    if values.is_date or column.category == _NUMBERS:
        yield values.compared(">=", bound)
        return
    order = mark.type or WATERMARK_TYPES[sync.field(mark.fields[0]).type.name]
    if column.category != _TEXTS or order is WatermarkType.INSTANT:
        problem = (
            f"source.watermark: column {column.name} is {column.type}, which does not order as {order}: read it by a query"
        )
        raise SpecInvalid([problem])
    if order is WatermarkType.INTEGER or mark.collation == "numeric":
        # What is no number is wanted as well, since it cannot be told to be below.
        is_number = f"{values.text} ~ {MARK}"
        number = f"{values.text}::numeric >= {MARK}::numeric"
        yield Fragment(f"case when {is_number} then {number} else {values.text} is not null end", (_WHOLE_NUMBER, bound))
        return
    yield Fragment(f'{values.text} collate "C" >= {MARK}', (bound,))


def _within(values: _Ordered, place: str, start: datetime | str | None, end: datetime | str | None) -> Iterator[Fragment]:
    """Yield the conditions that a row is of a window, whose end is not part of it."""
    if (start or end) and not values.is_date:
        raise SpecInvalid(
            [f"{place}: column {values.column.name} is {values.column.type}, so it has no place in a span of time"]
        )
    if start:
        yield values.compared(">=", _instant(start))
    if end:
        yield values.compared("<", _instant(end))


def _of_shard(table: FoundTable, source: SqlSource, sync: SyncSpec, request: PageRequest) -> Iterator[Fragment]:
    shard = request.shard
    match sync.sharding:
        case None:
            return
        case ListedShards(buckets=int()) as listed:
            column = table.column("shards.name", listed.name)
            value = shard[listed.name]
            yield Fragment(f"{column_of(column.name)} = any(string_to_array({MARK}, ',')::{column.type}[])", (value,))
        case ShardValues() | ListedShards() as values:
            column = table.column("shards.name", values.name)
            yield Fragment(f"{column_of(column.name)} = {MARK}", (shard[values.name],))
        case RangeShards() as ranges:
            column = _declared(table, ranges.column)
            if column.category != _NUMBERS:
                raise SpecInvalid([f"shards.column: {column.name} is {column.type}, and no number"])
            text = column_of(column.name)
            # A range may end, or lie, beyond what the column can hold.
            number = f"{MARK}::bigint" if column.base in _SMALLER_THAN_BIGINT else MARK
            yield Fragment(f"{text} >= {number} and {text} < {number}", (shard["start"], shard["end"]))
        case WindowShards() as windows:
            column = _declared(table, windows.column)
            zone = source.watermark.zone if source.watermark else None
            spans = _Ordered(column, column_of(column.name), zone or "UTC")
            yield from _within(spans, "shards.column", shard["start"], shard["end"])
        case BucketShards() as buckets:
            yield in_bucket(source.key, int(shard["bucket"]), buckets)
        case FileShards():
            raise SpecInvalid(["shards.kind: a table is not made of files"])


def _declared(table: FoundTable, column: str | None) -> Column:
    if column is None:
        raise SpecInvalid(["shards.column: is needed for a table: the column that is cut"])
    return table.column("shards.column", column)


def _instant(moment: datetime | str) -> str:
    return moment if isinstance(moment, str) else spell_instant(moment)
