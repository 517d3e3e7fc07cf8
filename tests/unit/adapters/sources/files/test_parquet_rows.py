"""parquet_rows: rows of every type come out with every digit, group by group, from any row on."""

import decimal
import errno
import gzip
import io
import json
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from sluice.adapters.sources.files.reading import Start
from sluice.errors import AnswerTooLarge, FileUnreadable, SupplierUnavailable
from tests.support.stored_files import MemoryStorage, raws_of

PARQUET = "parquet"


def file_of(table: Any, **more: Any) -> bytes:
    """Write a table as Parquet."""
    out = io.BytesIO()
    parquet.write_table(table, out, **more)
    return out.getvalue()


def column(values: list[Any], kind: Any) -> list[bytes]:
    """Return what the values of one column become, as written."""
    raws = raws_of(file_of(pa.table({"x": pa.array(values, kind)})), PARQUET)
    assert all(raw.startswith(b'{"x":') for raw in raws)
    return [raw[5:-1] for raw in raws]


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        (pa.int64(), 2**63 - 1, b"9223372036854775807"),
        (pa.uint64(), 2**64 - 1, b"18446744073709551615"),
        (pa.int8(), -128, b"-128"),
        (pa.bool_(), True, b"true"),
        (pa.float64(), 0.1, b"0.1"),
        (pa.float64(), float("nan"), b'"nan"'),
        (pa.float64(), float("-inf"), b'"-inf"'),
        (
            pa.decimal128(38, 4),
            decimal.Decimal("1234567890123456789012345678901234.5600"),
            b"1234567890123456789012345678901234.5600",
        ),
        (pa.decimal256(50, 2), decimal.Decimal("-0.10"), b"-0.10"),
        (pa.timestamp("ns", "Europe/Berlin"), 1, b'"1970-01-01T00:00:00.000000001Z"'),
        (pa.timestamp("us"), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), b'"9999-12-31T23:59:59.999999"'),
        (pa.timestamp("us", "UTC"), datetime(1, 1, 1, tzinfo=UTC), b'"0001-01-01T00:00:00Z"'),
        (pa.timestamp("ms"), -1, b'"1969-12-31T23:59:59.999"'),
        (pa.timestamp("ms"), 2**60, b'"1152921504606846976 ms since 1970"'),
        (pa.date32(), date(1, 1, 1), b'"0001-01-01"'),
        (pa.date64(), date(9999, 12, 31), b'"9999-12-31"'),
        (pa.time32("ms"), time(1, 2, 3, 4000), b'"01:02:03.004"'),
        (pa.time64("ns"), 1, b'"00:00:00.000000001"'),
        (pa.duration("us"), timedelta(seconds=1), b"1000000"),
        (pa.string(), 'a"é\n', '"a\\"é\\n"'.encode()),
        (pa.large_string(), "x", b'"x"'),
        (pa.binary(), b"\xff\x00", b'"/wA="'),
        (pa.binary(2), b"ab", b'"YWI="'),
        (pa.dictionary(pa.int8(), pa.string()), "x", b'"x"'),
        (pa.list_(pa.int64()), [1, None], b"[1,null]"),
        (pa.list_(pa.int8(), 2), [1, 2], b"[1,2]"),
        (pa.large_list(pa.list_(pa.string())), [["a"], [], None], b'[["a"],[],null]'),
        (
            pa.struct([("a", pa.decimal128(9, 2)), ("b", pa.timestamp("ns"))]),
            {"a": decimal.Decimal("1.50"), "b": None},
            b'{"a":1.50,"b":null}',
        ),
        (pa.map_(pa.string(), pa.int64()), [("k", 1)], b'{"k":1}'),
        (pa.map_(pa.int64(), pa.string()), [(1, "v")], b'[[1,"v"]]'),
        (pa.map_(pa.string(), pa.int64()), [("k", 1), ("k", 2)], b'[["k",1],["k",2]]'),
        (pa.uuid(), UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11").bytes, b'"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"'),
        (pa.float32(), 0.1, b"0.10000000149011612"),
        (pa.float16(), -65504.0, b"-65504.0"),
        (pa.float64(), -0.0, b"-0.0"),
        (pa.float64(), 5e-324, b"5e-324"),
        (pa.decimal128(10, 7), decimal.Decimal("1E-7"), b"1E-7"),
        (pa.date32(), -719_163, b'"-719163 days since 1970"'),
        (pa.null(), None, b"null"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_values_are_exact(kind: Any, value: Any, written: bytes) -> None:
    """Each type is written with all it holds; null is null, wherever it stands."""
    assert column([value, None, value], kind) == [written, b"null", written]


@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "id": st.none() | st.integers(-(2**63), 2**63 - 1),
                "name": st.none() | st.text(st.characters(codec="utf-8")),
                "tags": st.none()
                | st.lists(st.none() | st.fixed_dictionaries({"k": st.none() | st.text(st.characters(codec="utf-8"))})),
            }
        ),
        max_size=12,
    ),
    group=st.integers(1, 5),
    data=st.data(),
)
def test_rows_round_trip(rows: list[Any], group: int, data: st.DataObject) -> None:
    """All rows of all groups come back, and so do those behind any number of them."""
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.struct([("k", pa.string())])))])
    content = file_of(pa.Table.from_pylist(rows, schema), row_group_size=group)
    raws = raws_of(content, PARQUET)
    assert [json.loads(raw) for raw in raws] == rows
    number = data.draw(st.integers(0, len(rows)))
    assert raws_of(content, PARQUET, start=Start(number)) == raws[number:]


@given(number=st.integers(0, 40), split=st.integers(20, 2000))
def test_parts_of_a_file_have_each_row_once(number: int, split: int) -> None:
    """A row group belongs to the part in which it begins."""
    content = file_of(pa.table({"id": pa.array(range(number), pa.int64())}), row_group_size=3)
    cuts = [(start, min(start + split, len(content))) for start in range(0, len(content), split)]
    assert [json.loads(raw)["id"] for span in cuts for raw in raws_of(content, PARQUET, span=span)] == list(range(number))


def test_reads_no_more_than_it_needs() -> None:
    """Of a file that can be read from its middle on, the groups that are left out are not asked for."""
    content = file_of(pa.table({"id": pa.array(range(400_000), pa.int64())}), row_group_size=100_000, compression="none")
    storage = MemoryStorage({"file": content})
    assert len(raws_of(storage, PARQUET, start=Start(399_999))) == 1
    assert sum((len(content) if end is None else end) - start for start, end in storage.opened) < len(content) / 2


@pytest.mark.parametrize("compression", ["auto", "gzip"])
def test_what_cannot_be_read_from_its_middle_is_kept_meanwhile(compression: str) -> None:
    """Without ranges, or compressed as a whole, the file is received once."""
    content = file_of(pa.table({"id": [1, 2]}))
    packed = gzip.compress(content)
    storage = MemoryStorage({"file": packed}, has_ranges=False)
    assert raws_of(storage, PARQUET, compression=compression) == [b'{"id":1}', b'{"id":2}']
    assert storage.opened == [(0, None)]
    assert raws_of(packed, PARQUET, compression=compression) == [b'{"id":1}', b'{"id":2}']
    assert raws_of(MemoryStorage({"file": content}, has_ranges=False), PARQUET) == [b'{"id":1}', b'{"id":2}']


def test_damaged_texts_stay_in_their_own_record() -> None:
    """Bytes that are no UTF-8 are kept, for the mapping to reject that record."""
    array = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"x"], pa.binary()).buffers())
    damaged, sound = raws_of(file_of(pa.table({"s": array, "n": pa.array([decimal.Decimal("1.50")] * 2)})), PARQUET)
    assert damaged == b'{"s": "\xff", "n": "1.50"}'
    assert sound == b'{"s":"x","n":1.50}'


def test_parts_of_one_name_are_refused() -> None:
    """Of two values under one name one would be lost."""
    twins = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(FileUnreadable, match="two parts of the same name"):
        raws_of(file_of(pa.table({"x": twins})), PARQUET)


def test_says_what_is_no_such_file() -> None:
    """Something else, or a file that was cut, is named."""
    content = file_of(pa.table({"id": [1, 2]}))
    for damaged in (b"", b"id,name\n", content[:-10], content[:20] + b"\xff" * 30 + content[50:]):
        with pytest.raises(FileUnreadable, match="no sound Parquet file"):
            raws_of(damaged, PARQUET)
    with pytest.raises(AnswerTooLarge):
        raws_of(file_of(pa.table({"x": ["y" * 200]})), PARQUET, limit=100)


def test_what_breaks_on_the_way_is_no_damage_of_the_file() -> None:
    """A connection that is lost for good is told as that, through the library that reads."""
    content = file_of(pa.table({"id": range(1000)}), compression="none")
    assert len(raws_of(MemoryStorage({"file": content}, breaks=[0, 0]), PARQUET)) == 1000
    with pytest.raises(SupplierUnavailable):
        raws_of(MemoryStorage({"file": content}, breaks=[1 << 20, 1 << 20, *[0] * 30]), PARQUET)


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), pa.ArrowMemoryError("no room")])
def test_a_disk_or_a_memory_that_fails_is_no_damage_of_the_file(error: Exception) -> None:
    """What the worker's own machine lacks is told as it is: nobody is to ask the supplier for another file."""
    storage = MemoryStorage({"file": file_of(pa.table({"id": range(10)}))}, breaks=[0] * 30, breaks_by=error)
    with pytest.raises(type(error), match=str(error).rpartition("] ")[2]):
        raws_of(storage, PARQUET)
