"""The rules that ship propose what a person would think of first, and nothing where they know nothing."""

import json
from typing import Any

import pytest

from sluice.mapping.remedies import remedies
from sluice.model.fields import FieldSpec
from sluice.model.reject import Cause
from sluice.model.triage import Specimen, Ward


def proposed(error: str, declared: dict[str, Any], *records: dict[str, Any] | bytes) -> list[tuple[str, dict[str, Any]]]:
    """Return what is proposed about records that are rejected for a field so declared."""
    field = FieldSpec.model_validate({"name": "x", **declared})
    texts = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
    specimens = tuple(Specimen(key=None, message="", record=text) for text in texts)
    ward = Ward(sync="hotels", cause=Cause(error=error, field="x"), field=field, objects=len(texts), specimens=specimens)
    return [(proposal.because, proposal.changes) for proposal in remedies(ward)]


BOARD = {"type": "text", "map": {"BED AND BREAKFAST": "bb", "HALF BOARD": "hb"}}


def test_what_is_spelled_alike_is_mapped_alike() -> None:
    """A category whose spelling has changed, in case, accents or punctuation, or by a slip, means what it meant."""
    ((because, changes),) = proposed("unmapped", BOARD, {"x": "Bed & breakfast"}, {"x": "HALF-BOARD"}, {"x": "yurt"})
    assert changes == {"map": {**BOARD["map"], "Bed & breakfast": "bb", "HALF-BOARD": "hb"}}
    assert "'HALF-BOARD' is spelled like 'HALF BOARD'" in because


def test_what_resembles_nothing_is_left_to_people() -> None:
    """A new category has no meaning that could be guessed."""
    assert proposed("unmapped", BOARD, {"x": "yurt"}) == []


def test_what_is_not_allowed_may_be_meant_otherwise_or_be_new() -> None:
    """Both are for a person to choose from, the guess that keeps the values closed first."""
    found = proposed("allowed", {"type": "text", "allowed": ["open", "closed"]}, {"x": "Open"}, {"x": "seasonal"})
    assert [changes for _, changes in found] == [
        {"map": {"open": "open", "closed": "closed", "Open": "open"}},
        {"allowed": ["open", "closed", "Open", "seasonal"]},
    ]


@pytest.mark.parametrize(
    ("declared", "text", "changes"),
    [
        ({"type": "date"}, "31.12.2026", {"format": "%d.%m.%Y"}),
        ({"type": "date"}, "20261231", {"format": "%Y%m%d"}),
        ({"type": "timestamptz"}, "2026-12-31 23:59:00", {"format": "%Y-%m-%d %H:%M:%S", "zone": "UTC"}),
        ({"type": "timestamptz"}, "Thu, 31 Dec 2026 23:59:00 +0100", {"format": "%a, %d %b %Y %H:%M:%S %z"}),
        ({"type": "integer"}, 4.5, {"type": "numeric"}),
    ],
)
def test_what_cannot_be_read_may_be_written_otherwise(declared: dict[str, Any], text: Any, changes: dict[str, Any]) -> None:
    """Dates in the formats people use, and numbers that have fractions after all."""
    assert [change for _, change in proposed("type", declared, {"x": text})] == [changes]


def test_a_date_that_can_be_read_in_two_ways_is_proposed_in_both() -> None:
    """Whether the fourth of May is meant or the fifth of April, only a person knows."""
    assert [change for _, change in proposed("type", {"type": "date"}, {"x": "04/05/2026"})] == [
        {"format": "%d/%m/%Y"},
        {"format": "%m/%d/%Y"},
    ]


@pytest.mark.parametrize(
    ("error", "declared", "number", "changed"),
    [
        ("out-of-range", "integer", 3_000_000_000, "bigint"),
        ("out-of-range", "integer", 10**20, "numeric"),
        ("out-of-range", "bigint", 2**63, "numeric"),
        ("out-of-range", "numeric(5,2)", "123456.78", "numeric(8,2)"),
        ("precision", "numeric(5,2)", "1.2345", "numeric(7,4)"),
    ],
)
def test_numbers_that_have_outgrown_their_type(error: str, declared: str, number: Any, changed: str) -> None:
    """The next type that holds them, and all that was held before."""
    assert [change for _, change in proposed(error, {"type": declared}, {"x": number})] == [{"type": changed}]


def test_a_value_that_has_moved() -> None:
    """A required field that is missing everywhere may have another path by now."""
    ((because, changes),) = proposed("required", {"type": "text", "path": "address.city"}, {"location": {"city": "Brest"}})
    assert (because, changes) == ("it may stand at location.city by now", {"path": ["location", "city"]})


def test_values_that_only_need_tidying() -> None:
    """White space is the transform's to take away: the proposal is a cause, and changes nothing."""
    found = proposed("pattern", {"type": "text", "pattern": "[0-9]{5}"}, {"x": " 29200 "}, {"x": "29200"}, {"x": "Brest"})
    assert found == [("1 of 3 values fit once they are tidied, as ' 29200 ' does as '29200': let a transform do that", {})]


def test_patterns_are_those_of_the_rules() -> None:
    """In their own syntax, in time in proportion to a value, and beside the other rules of the field."""
    ((because, _),) = proposed(
        "pattern", {"type": "text", "pattern": "[[:alpha:]]+", "max_length": 5}, {"x": "Brest "}, {"x": " Paimpol"}
    )
    assert because.startswith("1 of 2 values fit once they are tidied, as 'Brest ' does")
    assert proposed("pattern", {"type": "text", "pattern": "(a+)+"}, {"x": f" {'a' * 5000}b"}) == []


@pytest.mark.parametrize("record", [b"", b"[1, 2", b"null", b"[]", b'"x"', b'{"x": {"y": [1]}}', b'{"y": 1}', b"\xff"])
@pytest.mark.parametrize("error", ["unmapped", "allowed", "type", "out-of-range", "precision", "pattern", "malformed", "?"])
def test_records_that_are_nothing_are_proposed_nothing(error: str, record: bytes) -> None:
    """Whatever a supplier sends, and whatever the cause."""
    assert proposed(error, {"type": "integer"}, record) == []
