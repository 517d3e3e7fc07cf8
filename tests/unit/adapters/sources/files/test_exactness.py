"""Values of files, on their way through the page that is made of them: exactly as the file has them, or refused by name."""

import io
import json
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from sluice.adapters.sources.files.record_pages import page_of
from sluice.mapping.mapper import MappedChunk, Mapper
from tests.support.stored_files import raws_of
from tests.unit.mapping.workbench import ARTIFACT, nothing, rows_of, sync_spec

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


def mapped(raws: list[bytes], **fields: Any) -> MappedChunk:
    """Map the records of a file as a run does."""
    return Mapper(sync_spec({"id": "text", **fields})).map_chunk([page_of(raws)], ARTIFACT, nothing)


def parquet_of(kind: Any, value: Any) -> list[bytes]:
    """The records of a Parquet file of one value."""
    out = io.BytesIO()
    parquet.write_table(pa.table({"id": ["a"], "x": pa.array([value], kind)}), out)
    return raws_of(out.getvalue(), "parquet")


@settings(max_examples=30)
@given(value=st.none() | TEXTS, number=st.integers(-(2**70), 2**70))
def test_lines_of_separated_values(value: str | None, number: int) -> None:
    """What is empty is null, what is empty in quotes is a text; a number keeps its digits, and its zeros in front."""
    cell = "" if value is None else '"' + value.replace('"', '""') + '"'
    raws = raws_of(f"id,x,n,code\na,{cell},{number},00{abs(number)}\n".encode(), {"kind": "csv"})
    (row,) = rows_of(mapped(raws, x="text", n="numeric", code="text"))
    assert (row["x"], Decimal(row["n"]), row["code"]) == (value, number, f"00{abs(number)}")


@given(
    value=st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1, max_size=20)
)
def test_elements_of_xml(value: str) -> None:
    """A text is what stands between the tags, entities resolved; space in it is kept."""
    raws = raws_of(f"<all><one><id>a</id><x>{escape(value)}</x></one></all>".encode(), {"kind": "xml", "element": "all/one"})
    (row,) = rows_of(mapped(raws, x="text"))
    assert row["x"] == value


@settings(max_examples=30)
@given(value=st.recursive(TEXTS | st.integers(-(2**63), 2**64 - 1) | st.none(), st.lists, max_leaves=5))
def test_lines_of_json(value: Any) -> None:
    """Records stay as they came."""
    raws = raws_of(json.dumps({"id": "a", "x": value}).encode() + b"\n", {"kind": "jsonl"})
    (row,) = rows_of(mapped(raws, x="json"))
    assert json.loads(row["x"] or "null") == value


@pytest.mark.parametrize(
    ("kind", "value", "declared", "exact"),
    [
        (pa.decimal128(38, 10), Decimal("12345678901234567890.0000000001"), "numeric", "12345678901234567890.0000000001"),
        (pa.decimal128(10, 7), Decimal("1E-7"), "numeric(10,7)", Decimal("0.0000001")),
        (pa.uint64(), 2**64 - 1, "numeric", str(2**64 - 1)),
        (pa.float32(), 0.1, "numeric", "0.10000000149011612"),
        (pa.float32(), 0.1, "double precision", 0.10000000149011612),
        (pa.float16(), 0.1, "double precision", 0.0999755859375),
        (pa.float64(), -0.0, "double precision", -0.0),
        (pa.list_(pa.decimal128(5, 2)), [Decimal("1.50"), None], "numeric[]", ["1.50", None]),
        (pa.list_(pa.float64()), [5e-324], "double precision[]", [5e-324]),
        (pa.binary(), b"\x00\xff", "text", "AP8="),
        (pa.string(), "00123", "text", "00123"),
    ],
    ids=str,
)  # fmt: skip
def test_columns_of_parquet(kind: Any, value: Any, declared: str, exact: Any) -> None:
    """Each digit a column holds is the digit of the field."""
    (row,) = rows_of(mapped(parquet_of(kind, value), x=declared))
    assert repr(row["x"]) == repr(exact)


@pytest.mark.parametrize(
    ("kind", "value", "declared", "error"),
    [
        (pa.timestamp("ns", "UTC"), 1, "timestamptz", "precision"),
        (pa.timestamp("us"), 1, "timestamptz", "type"),
        (pa.timestamp("ms", "UTC"), 2**60, "timestamptz", "type"),
        (pa.date32(), 2_932_897, "date", "type"),
        (pa.uint64(), 2**64 - 1, "bigint", "out-of-range"),
        (pa.float64(), float("nan"), "double precision", "type"),
        (pa.float64(), float("inf"), "numeric", "type"),
        (pa.float32(), 0.1, "numeric(10,2)", "precision"),
        (pa.list_(pa.list_(pa.int8())), [[1]], "integer[]", "type"),
        (pa.list_(pa.float64()), [float("nan")], "double precision[]", "type"),
    ],
    ids=str,
)
def test_columns_of_parquet_that_do_not_fit(kind: Any, value: Any, declared: str, error: str) -> None:
    """Nothing is rounded to fit: the object is refused by field and reason."""
    (reject,) = mapped(parquet_of(kind, value), x=declared).rejects
    assert (reject.key, reject.field, reject.error) == ("a", "x", error)
