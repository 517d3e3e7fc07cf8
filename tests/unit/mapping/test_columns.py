"""Row hashes and the rows file."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluice.mapping.columns import high_mark_of
from sluice.model import rows
from tests.unit.mapping.workbench import map_records, rows_of, sync_spec, table_of

THREE = sync_spec({"a": "text", "b": "text", "c": "text"}, object={"key": ["a"]})
KINDS = {
    "text": ['""', '"a"', '"A"', '"1"', '"1.0"', '"true"', '"\\u0061"', "null"],
    "numeric": ["1", "1.0", "1e0", '"1"', "0.10", "0.1", "-0", "0", "0.0", "1e-30", "null"],
    "numeric(10,2)": ["1", "1.0", "1e0", '"1.00"', "0.10", "-0", "0", "null"],
    "double precision": ["1", "1.0", "0.1", "0.10", "-0.0", "0", "0.30000000000000004", "0.3", "null"],
    "bigint": ["1", "1.0", '"1"', "9007199254740993", "9007199254740992", "null"],
    "timestamptz": ['"2024-01-01T00:00:00Z"', '"2024-01-01T01:00:00+01:00"', '"2024-01-01T00:00:00.000001Z"', "null"],
    "json": ['{"a": 1, "b": 2}', '{"b": 2, "a": 1.0}', '{"a": 1}', "1", '"1"', "[1]", "[]", "{}", "null"],
}
SAME = {
    "text": [{'"a"', '"\\u0061"'}],
    "numeric": [{"1", "1.0", "1e0", '"1"'}, {"0.10", "0.1"}, {"-0", "0", "0.0"}],
    "numeric(10,2)": [{"1", "1.0", "1e0", '"1.00"'}, {"-0", "0"}],
    "double precision": [{"1", "1.0"}, {"0.1", "0.10"}, {"-0.0", "0"}],
    "bigint": [{"1", "1.0", '"1"'}],
    "timestamptz": [{'"2024-01-01T00:00:00Z"', '"2024-01-01T01:00:00+01:00"'}],
    "json": [{'{"a": 1, "b": 2}', '{"b": 2, "a": 1.0}'}],
}


def row_hash(spec: Any, record: str) -> bytes:
    """The row hash of one record."""
    (row,) = rows_of(map_records(spec, record))
    assert len(row[rows.ROW_HASH]) == rows.HASH_BYTES
    return bytes(row[rows.ROW_HASH])


@pytest.mark.parametrize("kind", KINDS)
def test_hashes_are_equal_if_and_only_if_values_are(kind: str) -> None:
    """The spelling of a value makes no difference, its value does."""
    spec = sync_spec({"id": "text", "value": kind})
    hashes = {token: row_hash(spec, f'{{"id": "1", "value": {token}}}') for token in KINDS[kind]}
    for first, first_hash in hashes.items():
        for second, second_hash in hashes.items():
            is_same = first == second or any({first, second} <= group for group in SAME[kind])
            assert (first_hash == second_hash) == is_same, (first, second)


TEXTS = st.lists(st.none() | st.text(max_size=3), min_size=2, max_size=2)


@given(first=TEXTS, second=TEXTS)
@example(first=[None, "B"], second=["B", None])
@example(first=["", None], second=[None, ""])
@example(first=["ab", "c"], second=["a", "bc"])
@example(first=["\x1f", ""], second=["", "\x1f"])
@settings(deadline=None)
def test_no_value_runs_into_the_next(first: list[str | None], second: list[str | None]) -> None:
    """("A", null, "B") is another row than ("A", "B", null), and so on for all texts."""
    import json

    texts = [json.dumps(dict(zip("abc", ["A", *values], strict=True))) for values in (first, second)]
    chunks = [map_records(THREE, text) for text in texts]
    if any(chunk.rejects for chunk in chunks):
        assert any(value and "\0" in value for value in first + second)
        return
    one, other = (rows_of(chunk)[0][rows.ROW_HASH] for chunk in chunks)
    assert (one == other) == (first == second)


def test_columns_and_types() -> None:
    """One column for each field, of the Arrow type that holds it, behind the columns every rows file has; empty files too."""
    kinds = {"id": "text", "i": "integer", "b": "bigint", "n": "numeric(10,2)", "w": "numeric(50,2)", "u": "numeric"}
    kinds |= {"d": "double precision", "o": "boolean", "day": "date", "at": "timestamptz", "g": "uuid", "j": "json"}
    spec = sync_spec(dict(kinds))
    full = map_records(spec, '{"id": "x", "w": 1.5, "u": 1.50, "j": [ 1 ]}')
    expected = [pa.string(), pa.int64(), pa.binary(16), pa.binary(16), pa.bool_(), pa.bool_(), pa.int32(), pa.int32()]
    expected += [pa.string(), pa.int32(), pa.int64(), pa.decimal128(10, 2), pa.string(), pa.string(), pa.float64(), pa.bool_()]
    expected += [pa.date32(), pa.timestamp("us", "UTC"), pa.string(), pa.string()]
    for chunk in (full, map_records(spec)):
        schema = table_of(chunk).schema
        assert (schema.names, schema.types) == ([*rows.ROW_COLUMNS, *kinds], expected)
    (row,) = rows_of(full)
    assert (row["w"], row["u"], row["j"]) == ("1.50", "1.50", "[ 1 ]")
    assert (map_records(spec).objects, high_mark_of(map_records(spec).rows)) == (0, None)


def test_the_same_chunk_gives_the_same_bytes() -> None:
    """Nothing of the clock or of chance gets into an artifact."""
    record = '{"a": "x", "b": "y"}'
    assert map_records(THREE, record).rows == map_records(THREE, record).rows
