"""Watermarks: how marks order, what they are as text, what is asked for below them, and what never moves them."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.mapping.columns import high_mark_of, postdated_of
from sluice.mapping.mapper import Mapper
from sluice.mapping.watermarks import MarkOrder, mark_order
from sluice.model.ledger import Remembered
from sluice.model.rows import RAW_HASH, ROW_HASH, Postdated
from tests.unit.mapping.workbench import ARTIFACT, map_records, nothing, rows_of, sync_spec, watermarked

SPEC = watermarked(sync_spec({"id": "text", "at": "timestamptz", "n": "integer"}), "at")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def order_of(field: str | dict[str, Any], **more: Any) -> MarkOrder:
    """How the marks of a sync with one such field order."""
    order = mark_order(watermarked(sync_spec({"id": "text", "mark": field}), "mark", **more))
    assert order is not None
    return order


@pytest.mark.parametrize(
    ("field", "tokens", "mark"),
    [
        ("timestamptz", ['"2024-01-01T00:00:00Z"', "null", '"2024-01-01T01:00:00.5+01:00"'], "2024-01-01T00:00:00.500000Z"),
        ("timestamptz", ['"0001-01-01T00:00:00Z"'], "0001-01-01T00:00:00Z"),
        ("timestamptz", ['"9999-12-31T23:59:59.999999Z"'], "9999-12-31T23:59:59.999999Z"),
        ({"type": "timestamptz", "format": "epoch_s"}, ["1767225600", '"1767225600.25"', "1767225599.999999"], "1767225600.25"),
        ({"type": "timestamptz", "format": "epoch_ms"}, ["1767225600001", "1.7672256e12"], "1767225600001"),
        ({"type": "timestamptz", "format": "epoch_s"}, ["-62135596800", "253402300799"], "253402300799"),
        ("bigint", ["9", "10", "9007199254740993"], "9007199254740993"),
        ("integer", ["-10", "-9"], "-9"),
        ("date", ['"2024-01-02"', '"2023-12-31"'], "2024-01-02"),
        ("date", ['"9999-12-31"', '"0001-01-01"'], "9999-12-31"),
        ("date", ["null"], None),
        ("text", ['"10"', '"9"'], "9"),
    ],
)
def test_high_mark(field: str | dict[str, Any], tokens: list[str], mark: str | None) -> None:
    """The highest value of the watermark field, as the supplier would write it; it travels in the rows file as well."""
    spec = watermarked(sync_spec({"id": "text", "mark": field}), "mark")
    chunk = map_records(spec, *(f'{{"id": "{index}", "mark": {token}}}' for index, token in enumerate(tokens)))
    assert chunk.rejects == ()
    assert (chunk.high_mark, high_mark_of(chunk.rows)) == (mark, mark)


@pytest.mark.parametrize(
    ("more", "tokens", "mark"),
    [
        ({"type": "instant"}, ["2026-01-01T10:00:00.1234567Z", "2026-01-01T10:00:00.1234566Z"], "2026-01-01T10:00:00.1234567Z"),
        ({"type": "instant"}, ["2026-01-01T10:00:00+02:00", "2026-01-01T09:00:00Z"], "2026-01-01T09:00:00Z"),
        ({"type": "instant"}, ["2026-01-01T10:00:00.10Z", "2026-01-01T10:00:00.1Z"], "2026-01-01T10:00:00.10Z"),
        ({"type": "date"}, ["2026-01-01", "2026-01-02"], "2026-01-02"),
        ({"type": "integer"}, ["9", "10"], "10"),
        ({"collation": "numeric"}, ["9", "10"], "10"),
        ({"collation": "numeric"}, ["010", "10", "-11"], "010"),
        ({"collation": "binary"}, ["9", "10"], "9"),
    ],
)
def test_a_text_goes_back_as_it_came(more: dict[str, Any], tokens: list[str], mark: str) -> None:
    """It is compared as what it is declared to be, whichever comes first, and never rewritten."""
    spec = watermarked(sync_spec({"id": "text", "mark": "text"}), "mark", **more)
    records = [f'{{"id": "{index}", "mark": "{token}"}}' for index, token in enumerate(tokens)]
    assert map_records(spec, *records).high_mark == mark
    if len({mark_order(spec).place(token) for token in tokens}) == len(tokens):  # type: ignore[union-attr]
        assert map_records(spec, *records[::-1]).high_mark == mark


def test_of_several_fields_the_first_that_is_not_null_counts() -> None:
    """What was never changed is dated by when it was created."""
    spec = watermarked(sync_spec({"id": "text", "changed": "timestamptz", "created": "timestamptz"}), "changed", "created")
    dated = '{"id": "1", "changed": null, "created": "2026-01-03T00:00:00Z"}'
    changed = '{"id": "2", "changed": "2026-01-02T00:00:00Z", "created": "2026-01-09T00:00:00Z"}'
    assert map_records(spec, dated, changed).high_mark == "2026-01-03T00:00:00Z"


@pytest.mark.parametrize(
    ("more", "value", "message"),
    [
        ({"type": "instant"}, "yesterday", 'mark: is the watermark, and "yesterday" is no timestamp'),
        ({"type": "integer"}, "9.5", 'mark: is the watermark, and "9.5" is no whole number'),
        ({"collation": "numeric"}, "1" * 101, "has more than 100 digits"),
        ({}, "x" * 1001, "is longer than 1000 characters, which no watermark may be"),
    ],
)
def test_what_is_no_mark_is_rejected_by_name(more: dict[str, Any], value: str, message: str) -> None:
    """It could not be asked for again, so a person has to know; the other records are taken in."""
    spec = watermarked(sync_spec({"id": "text", "mark": "text"}), "mark", **more)
    chunk = map_records(spec, f'{{"id": "1", "mark": "{value}"}}', '{"id": "2", "mark": null}')
    (reject,) = chunk.rejects
    assert (reject.key, reject.field, chunk.objects) == ("1", "mark", 1)
    assert message in reject.message


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


@pytest.mark.parametrize(("field", "more"), [("timestamptz", {}), ("text", {"type": "instant"})])
def test_what_is_dated_later_is_taken_in_but_moves_no_watermark(field: str, more: dict[str, Any]) -> None:
    """Above the bound nothing counts; after the supplier's own time at the end of the fetch it is told of, with the first."""
    spec = watermarked(sync_spec({"id": "text", "mark": field}), "mark", **more)
    dated = [
        "2026-01-31T11:59:00Z",
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:04:00Z",
        "2099-01-01T00:00:00Z",
        "2098-01-01T00:00:00Z",
    ]
    page = ",".join(f'{{"id": "{index}", "mark": "{at}"}}' for index, at in enumerate(dated))
    chunk = Mapper(spec, NOON, NOON + timedelta(minutes=5)).map_chunk([f"[{page}]".encode()], ARTIFACT, nothing)
    assert (chunk.objects, chunk.high_mark) == (5, "2026-01-31T12:00:00Z")
    value = "2099-01-01T00:00:00Z"
    assert chunk.postdated == postdated_of(chunk.rows) == Postdated(objects=2, key="3", value=value)  # type: ignore[arg-type]
    assert str(chunk.postdated) == "dated after the fetch: 2, first: 3 2099-01-01T00:00:00Z"


def test_a_header_tells_whole_seconds() -> None:
    """What was changed within the second in which the supplier answered does not lie ahead of it."""
    page = b'[{"id": "1", "at": "2026-01-31T12:00:00.9Z"}]'
    chunk = Mapper(SPEC, NOON, NOON).map_chunk([page], ARTIFACT, nothing)
    assert (chunk.high_mark, chunk.postdated) == (None, None)


def test_dates_are_bounded_by_the_day_in_the_zone() -> None:
    """When it is noon in London it is the next day already on Kiritimati."""
    for zone, mark in ((None, "2026-01-31"), ("Pacific/Kiritimati", "2026-02-01")):
        spec = watermarked(sync_spec({"id": "text", "day": "date"}), "day", zone=zone)
        page = b'[{"id": "1", "day": "2026-01-31"}, {"id": "2", "day": "2026-02-01"}, {"id": "3", "day": "2026-02-02"}]'
        assert Mapper(spec, NOON, NOON).map_chunk([page], ARTIFACT, nothing).high_mark == mark


@pytest.mark.parametrize(
    ("field", "more", "mark", "asked"),
    [
        ("timestamptz", {}, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("timestamptz", {"lookback": "15m"}, "2026-01-01T00:00:00.250000Z", "2025-12-31T23:45:00.250000Z"),
        ("timestamptz", {"lookback": "1d"}, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ({"type": "timestamptz", "format": "epoch_s"}, {"lookback": "1m"}, "1767225600.25", "1767225540.25"),
        ({"type": "timestamptz", "format": "epoch_ms"}, {"lookback": "1m"}, "1767225600001", "1767225540001"),
        ("date", {"lookback": "1h"}, "2026-01-01", "2025-12-31"),
        ("date", {"lookback": "2d"}, "0001-01-02", "0001-01-01"),
        ("bigint", {"lookback": 10}, "7", "-3"),
        ("text", {"type": "integer", "lookback": 10}, "0012", "2"),
        ("text", {"type": "integer"}, "0012", "0012"),
        ("text", {}, "b", "b"),
    ],
)
def test_what_is_asked_for_below_a_mark(field: str | dict[str, Any], more: dict[str, Any], mark: str, asked: str) -> None:
    """The mark less the lookback, in the supplier's form; it stops at the first day there is."""
    assert order_of(field, **more).lower(mark) == asked


@pytest.mark.parametrize(
    ("field", "more", "text"),
    [
        ("timestamptz", {}, "2026-01-31T12:00:00Z"),
        ({"type": "timestamptz", "format": "epoch_s"}, {}, "1769860800"),
        ("date", {}, "2026-01-31"),
        ("date", {"zone": "Pacific/Kiritimati"}, "2026-02-01"),
        ("text", {"type": "instant"}, "2026-01-31T12:00:00Z"),
        ("text", {"type": "instant", "zone": "Europe/Berlin"}, "2026-01-31T13:00:00"),
        ("bigint", {}, None),
        ("text", {}, None),
    ],
)
def test_a_moment_as_a_mark(field: str | dict[str, Any], more: dict[str, Any], text: str | None) -> None:
    """What the supplier's own time is in its own form; numbers and plain texts tell none."""
    assert order_of(field, **more).until(NOON) == text


@given(first=st.integers(-(2**63), 2**63 - 1), second=st.integers(-(2**63), 2**63 - 1))
@settings(deadline=None)
def test_higher_is_of_the_value_and_not_of_the_text(first: int, second: int) -> None:
    """Marks are compared as what they are."""
    assert order_of("bigint").higher(str(first), str(second)) == str(max(first, second))


@given(
    moment=st.datetimes(timezones=st.just(UTC)),
    lookback=st.integers(0, 999_999_999),
    field=st.sampled_from(
        [
            "timestamptz",
            {"type": "timestamptz", "format": "epoch_s"},
            {"type": "timestamptz", "format": "epoch_ms"},
        ]
    ),
)
@settings(deadline=None)
def test_a_canonical_mark_goes_round_and_down(moment: datetime, lookback: int, field: str | dict[str, Any]) -> None:
    """Read and written again a mark is the same; lowered it is exactly the lookback earlier, or the first instant."""
    order = order_of(field, lookback=f"{lookback}s")
    text = order.until(moment)
    assert text is not None
    assert order.spell(order.place(text)) == text
    first = order.place(str(order.until(datetime.min.replace(tzinfo=UTC))))
    assert order.place(order.lower(text)) == max(first, order.place(text) - lookback * 1_000_000)


@given(day=st.dates(), lookback=st.integers(0, 40_000))
@settings(deadline=None)
def test_a_day_goes_down(day: date, lookback: int) -> None:
    """Lowered, a date is so many days earlier, or the first there is."""
    lowered = order_of("date", lookback=f"{min(lookback, 36_500)}d").lower(day.isoformat())
    assert date.fromisoformat(lowered).toordinal() == max(1, day.toordinal() - min(lookback, 36_500))


def test_higher_than_none() -> None:
    """Any mark is higher than none, and of equal ones the first stands."""
    order = order_of("timestamptz")
    assert order.higher(None, None) is None
    assert order.higher("2024-01-01T00:00:00Z", None) == order.higher(None, "2024-01-01T00:00:00Z") == "2024-01-01T00:00:00Z"
    assert order.higher("2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000001Z") == "2024-01-01T00:00:00.000001Z"
    assert order_of("text", collation="numeric").higher("07", "7") == "07"


def test_a_mark_of_another_spec_is_none() -> None:
    """Somebody has made a number of what was a date: what was kept then says nothing now."""
    assert not order_of("bigint").is_mark("2024-01-01T00:00:00Z")
    assert order_of("bigint").is_mark("7")
