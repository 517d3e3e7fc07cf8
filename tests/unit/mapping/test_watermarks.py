"""Watermarks as text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.mapping.columns import high_mark_of
from sluice.mapping.mapper import Mapper
from sluice.mapping.watermarks import higher
from sluice.model.ledger import Remembered
from sluice.model.rows import RAW_HASH, ROW_HASH
from tests.unit.mapping.workbench import ARTIFACT, field_type, map_records, rows_of, sync_spec, watermarked

SPEC = watermarked(sync_spec({"id": "text", "at": "timestamptz", "n": "integer"}), "at")


@pytest.mark.parametrize(
    ("kind", "tokens", "mark"),
    [
        ("timestamptz", ['"2024-01-01T00:00:00Z"', "null", '"2024-01-01T01:00:00.5+01:00"'], "2024-01-01T00:00:00.500000Z"),
        ("timestamptz", ['"0001-01-01T00:00:00Z"'], "0001-01-01T00:00:00Z"),
        ("bigint", ["9", "10", "9007199254740993"], "9007199254740993"),
        ("integer", ["-10", "-9"], "-9"),
        ("date", ['"2024-01-02"', '"2023-12-31"'], "2024-01-02"),
        ("date", ["null"], None),
    ],
)
def test_high_mark(kind: str, tokens: list[str], mark: str | None) -> None:
    """The highest value of the watermark field, as canonical text; it travels in the rows file as well."""
    spec = watermarked(sync_spec({"id": "text", "mark": kind}), "mark")
    chunk = map_records(spec, *(f'{{"id": "{index}", "mark": {token}}}' for index, token in enumerate(tokens)))
    assert (chunk.high_mark, high_mark_of(chunk.rows)) == (mark, mark)


def test_rejects_do_not_count_but_unmapped_objects_do() -> None:
    """What was not taken in moves no watermark, so it is asked for again; what is unchanged was taken in before."""
    old, new = '{"id": "1", "at": "2024-01-01T00:00:00Z"}', '{"id": "2", "at": "2025-01-01T00:00:00Z", "n": "x"}'
    chunk = map_records(SPEC, old, new)
    assert (chunk.high_mark, len(chunk.rejects)) == ("2024-01-01T00:00:00Z", 1)
    (row,) = rows_of(chunk)
    held = Remembered(raw_hash=row[RAW_HASH], row_hash=row[ROW_HASH], source_version=None)
    again = Mapper(SPEC).map_chunk([f"[{old}]".encode()], ARTIFACT, lambda keys: dict.fromkeys(keys, held))
    assert (again.high_mark, again.mapped) == ("2024-01-01T00:00:00Z", 0)


def test_without_a_watermark() -> None:
    """A sync that declares none has no high mark."""
    assert map_records(sync_spec({"id": "text"}), '{"id": "1"}').high_mark is None


@given(first=st.integers(-(2**63), 2**63 - 1), second=st.integers(-(2**63), 2**63 - 1))
@settings(deadline=None)
def test_higher_is_of_the_value_and_not_of_the_text(first: int, second: int) -> None:
    """Marks are compared as what they are."""
    assert higher(str(first), str(second), field_type("bigint")) == str(max(first, second))


def test_higher_than_none() -> None:
    """Any mark is higher than none."""
    kind = field_type("timestamptz")
    assert higher(None, None, kind) is None
    assert higher("2024-01-01T00:00:00Z", None, kind) == higher(None, "2024-01-01T00:00:00Z", kind) == "2024-01-01T00:00:00Z"
    assert higher("2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000001Z", kind) == "2024-01-01T00:00:00.000001Z"
