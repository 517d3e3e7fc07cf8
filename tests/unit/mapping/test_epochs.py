"""Instants that come as numbers since 1970."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.mapping.columns import reading_of
from sluice.mapping.exact import epoch_text, exact_field
from sluice.mapping.instants import FIRST_INSTANT
from sluice.mapping.keys import key_text
from sluice.model.fields import FieldSpec
from tests.unit.mapping.workbench import map_records, rows_of, sync_spec

FORMATS = ("epoch_s", "epoch_ms")
LAST_INSTANT = 253_402_300_799_999_999
BEFORE = 10046086847163428963
"""The number of a small spec in a release that knew no formats."""


def field(written: str) -> FieldSpec:
    """A field that is written so."""
    return FieldSpec.model_validate({"name": "at", "type": "timestamptz", "format": written})


@given(value=st.integers(FIRST_INSTANT, LAST_INSTANT), written=st.sampled_from(FORMATS))
@settings(deadline=None)
def test_every_instant_goes_round(value: int, written: str) -> None:
    """From the first to the last there is, to the microsecond, by no float."""
    assert exact_field(field(written)).from_text(epoch_text(value, written)) == value


@pytest.mark.parametrize(
    ("written", "token", "seconds"),
    [
        ("epoch_s", "1767225600", 1767225600.0),
        ("epoch_s", '"1767225600"', 1767225600.0),
        ("epoch_s", "1767225600.123456", 1767225600.123456),
        ("epoch_s", "1.7672256e9", 1767225600.0),
        ("epoch_s", "0", 0.0),
        ("epoch_s", "-1", -1.0),
        ("epoch_ms", "1767225600000", 1767225600.0),
        ("epoch_ms", '"1767225600000.5"', 1767225600.0005),
        ("epoch_ms", "1767225600000.0000000", 1767225600.0),
    ],
)
def test_numbers_and_texts_of_them(written: str, token: str, seconds: float) -> None:
    """However JSON spells the number, the column holds the instant."""
    spec = sync_spec({"id": "text", "at": {"type": "timestamptz", "format": written}})
    (row,) = rows_of(map_records(spec, f'{{"id": "1", "at": {token}}}'))
    assert row["at"].timestamp() == seconds


@pytest.mark.parametrize(
    ("token", "error"),
    [
        ("1767225600.1234567", "precision"),
        ("1e-9", "precision"),
        ("253402300800", "out-of-range"),
        ("-62135596801", "out-of-range"),
        ("1e30", "out-of-range"),
        ("1e999999999", "out-of-range"),
        ('"2026-01-01T00:00:00Z"', "type"),
        ('""', "type"),
        ("true", "type"),
        ('"Infinity"', "type"),
    ],
)
def test_what_is_none_is_rejected_by_name(token: str, error: str) -> None:
    """Nothing is rounded, and nothing that is huge takes long."""
    spec = sync_spec({"id": "text", "at": {"type": "timestamptz", "format": "epoch_s"}})
    (reject,) = map_records(spec, f'{{"id": "1", "at": {token}}}').rejects
    assert (reject.field, reject.error) == ("at", error)


def test_as_a_key_it_is_the_instant() -> None:
    """The same object, whether its instant comes as a number or is typed by a person."""
    kind: Any = exact_field(field("epoch_ms"))
    assert key_text([kind], [kind.from_text("1767225600000")]) == "2026-01-01T00:00:00Z"


def test_it_is_read_anew_once_its_format_changes() -> None:
    """Else the same bytes would pass for the same row."""
    readings = [reading_of(sync_spec({"id": "text", "at": {"type": "timestamptz", "format": written}})) for written in FORMATS]
    assert len({*readings, reading_of(sync_spec({"id": "text", "at": "timestamptz"}))}) == 3


def test_a_spec_without_formats_is_read_as_ever() -> None:
    """What the ledger remembers of before there were formats need not be read anew."""
    assert reading_of(sync_spec({"id": "text", "at": "timestamptz"})) == BEFORE
