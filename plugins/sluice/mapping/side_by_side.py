"""What two versions have made of one chunk comes in; what becomes of each of its objects by both goes out.

An object is known by where its record stands in the chunk: so it is compared with itself, whatever either version makes of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from sluice.mapping.columns import readable
from sluice.mapping.mapper import MappedChunk
from sluice.mapping.spelling import spelled
from sluice.mapping.traces import Values, canonical
from sluice.model import rows
from sluice.model.base import ObjectKey
from sluice.model.reject import Reject
from sluice.model.spec import SyncSpec

_AT_A_TIME: Final = 1_000
GONE: Final = "(the object is gone)"
"""The name under which objects differ that one version alone takes for gone."""


@dataclass(frozen=True)
class Differing:
    """An object that the two do not make the same row of, and the fields in which it differs, with both values."""

    key: ObjectKey
    fields: Mapping[str, tuple[str | None, str | None]]


@dataclass(frozen=True)
class SideBySide:
    """The objects of one chunk, by two versions."""

    made_by_both: int
    differing: tuple[Differing, ...]
    rejected_by_both: int
    rejected_by_one: tuple[tuple[Reject, ...], tuple[Reject, ...]]
    """What the first version alone rejects, and what the second one alone does."""


def side_by_side(specs: tuple[SyncSpec, SyncSpec], chunks: tuple[MappedChunk, MappedChunk]) -> SideBySide:
    """Lay two mappings of a chunk side by side, in the fields that both specs have."""
    first, second = (_table(chunk) for chunk in chunks)
    others = _by_place(second)
    pairs = [(at, others[place]) for place, at in _by_place(first).items() if place in others]
    if [field.name for field in specs[0].fields] == [field.name for field in specs[1].fields]:
        pairs_to_look_at = list(_unlike(first, second, pairs))
    else:
        pairs_to_look_at = pairs
    found = [
        differing
        for start in range(0, len(pairs_to_look_at), _AT_A_TIME)
        for differing in _differing(specs, (first, second), pairs_to_look_at[start : start + _AT_A_TIME])
    ]
    rejects = [{(reject.address.frame, reject.address.index): reject for reject in chunk.rejects} for chunk in chunks]
    only = tuple(
        tuple(mine[place] for place in sorted(mine.keys() - theirs.keys())) for mine, theirs in (rejects, rejects[::-1])
    )
    return SideBySide(
        made_by_both=len(pairs),
        differing=tuple(found),
        rejected_by_both=len(rejects[0].keys() & rejects[1].keys()),
        rejected_by_one=(only[0], only[1]),
    )


def _table(chunk: MappedChunk) -> pa.Table:
    with readable():
        return pq.read_table(pa.BufferReader(chunk.rows))


def _by_place(table: pa.Table) -> dict[tuple[int, int], int]:
    places = zip(table[rows.FRAME].to_pylist(), table[rows.INDEX].to_pylist(), strict=True)
    return {place: at for at, place in enumerate(places)}


def _unlike(first: pa.Table, second: pa.Table, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of rows that are not the same, by their hashes: of the same fields, in one order."""
    hashes = [
        list(zip(table[rows.ROW_HASH].to_pylist(), table[rows.DELETED].to_pylist(), strict=True)) for table in (first, second)
    ]
    return ((one, other) for one, other in pairs if hashes[0][one] != hashes[1][other])


def _differing(
    specs: tuple[SyncSpec, SyncSpec], tables: tuple[pa.Table, pa.Table], pairs: Sequence[tuple[int, int]]
) -> Iterator[Differing]:
    """Yield the objects of some pairs of rows that differ in a field that both have."""
    sides = [
        _rows(spec, table.take(list(places)))
        for spec, table, places in zip(specs, tables, zip(*pairs, strict=True), strict=True)
    ]
    for (key, is_gone, values), (_, is_other_gone, others) in zip(*sides, strict=True):
        if is_gone != is_other_gone:
            yield Differing(key, {GONE: (str(is_gone).lower(), str(is_other_gone).lower())})
            continue
        fields = {name: (value, others[name]) for name, value in values.items() if name in others and others[name] != value}
        if fields:
            yield Differing(key, fields)


def _rows(spec: SyncSpec, table: pa.Table) -> Iterator[tuple[ObjectKey, bool, Values]]:
    columns = {field.name: spelled(table[field.name].combine_chunks()).to_pylist() for field in spec.fields}
    heads = zip(table[rows.KEY].to_pylist(), table[rows.DELETED].to_pylist(), strict=True)
    for at, (key, is_gone) in enumerate(heads):
        yield key, is_gone, canonical(spec, {name: column[at] for name, column in columns.items()})
