"""Instants as suppliers write them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.mapping.violation import Violation
from sluice.mapping.written_instants import WrittenInstants, place_of

LONDON = ZoneInfo("Europe/London")
IN_LONDON = WrittenInstants(LONDON)
ANYWHERE = WrittenInstants(None)


@given(
    first=st.datetimes(timezones=st.just(UTC)),
    later=st.integers(0, 3),
    digits=st.tuples(st.text("0123456789", max_size=12), st.text("0123456789", max_size=12)),
    hours=st.integers(-23, 23),
)
@settings(deadline=None)
def test_places_order_as_instants_do(first: datetime, later: int, digits: tuple[str, str], hours: int) -> None:
    """Whatever the offset and however many the digits: exactly, by whole number arithmetic."""
    first = min(first, datetime(9999, 12, 29, tzinfo=UTC)).replace(microsecond=0)
    second = first + timedelta(seconds=later)
    wall = (second.replace(tzinfo=None) + timedelta(hours=max(hours, 0))).isoformat()
    texts = [
        f"{first.replace(tzinfo=None).isoformat()}.{digits[0] or '0'}Z",
        f"{wall}.{digits[1] or '0'}+{max(hours, 0):02}:00",
    ]
    exact = [at * 10**12 + int((part or "0").ljust(12, "0")) for at, part in ((0, digits[0]), (later, digits[1]))]
    places = [ANYWHERE.place(text) for text in texts]
    assert (places[0] < places[1], places[0] == places[1]) == (exact[0] < exact[1], exact[0] == exact[1])


@given(moment=st.datetimes(timezones=st.just(UTC)), zone=st.sampled_from([None, LONDON, ZoneInfo("Asia/Tokyo")]))
@settings(deadline=None)
def test_what_is_spelled_is_read(moment: datetime, zone: ZoneInfo | None) -> None:
    """A moment comes back as it went; on the clocks of a zone as the earlier of two, at most."""
    if zone is not None and not datetime(2, 1, 1, tzinfo=UTC) < moment < datetime(9998, 1, 1, tzinfo=UTC):
        return
    instants = WrittenInstants(zone)
    read, meant = instants.place(instants.spelled(moment)), place_of(moment)
    assert read == meant or (zone == LONDON and read < meant)


@given(
    moment=st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(LONDON)),  # noqa: DTZ001
    later=st.integers(0, 40_000),
    lookback=st.sampled_from([0, 1, 900, 1800, 3600, 5400, 86_400]),
)
@settings(deadline=None, max_examples=300)
def test_nothing_later_is_missed_by_a_supplier_that_goes_by_the_text(moment: datetime, later: int, lookback: int) -> None:
    """Whatever clocks have done: what is written at or after a mark, or a lookback before it, does not sort below its bound."""
    moment = moment.replace(microsecond=0).astimezone(UTC)
    mark, back = IN_LONDON.spelled(moment), timedelta(seconds=lookback)
    bound = IN_LONDON.lowered(mark, back)
    assert IN_LONDON.spelled(moment + timedelta(seconds=later)) >= bound
    assert IN_LONDON.spelled(moment - back) >= bound or lookback == 0


@pytest.mark.parametrize(
    "texts", [("2026-10-25T01:30:00", "2026-10-25T01:10:00"), ("2026-10-25T01:10:00", "2026-10-25T01:30:00")]
)
def test_the_hour_that_comes_twice(texts: tuple[str, str]) -> None:
    """01:30, then the clocks go back, then 01:10, or the other way round: the bound is before both readings of either."""
    for text in texts:
        assert IN_LONDON.place(text) == place_of(datetime.fromisoformat(f"{text}+01:00"))
        bound = IN_LONDON.lowered(text, timedelta())
        assert bound == "2026-10-25T00:59:59"
        assert all(bound < other for other in texts)


@pytest.mark.parametrize(
    ("text", "lookback", "bound"),
    [
        ("2026-01-01T10:00:00.1234567Z", 0, "2026-01-01T10:00:00.1234567Z"),
        ("2026-01-01T10:00:00.1234567Z", 900, "2026-01-01T09:45:00.1234567Z"),
        ("2026-01-01 10:00+02:00", 60, "2026-01-01 09:59:00+02:00"),
        ("2026-01-01T10:00:00", 3600, "2026-01-01T09:00:00"),
        ("2026-10-25T02:10:00", 1200, "2026-10-25T00:59:59"),
        ("2026-10-25T02:10:00.5", 7200, "2026-10-25T00:59:59.5"),
        ("2026-10-25T03:00:00", 3 * 3600, "2026-10-25T00:59:59"),
        ("2026-03-29T02:30:00", 3600, "2026-03-29T00:30:00"),
        ("2026-03-29T01:30:00", 0, "2026-03-29T01:30:00"),
        ("0001-01-01T00:00:00", 3600, "0001-01-01T00:00:00"),
        ("0001-01-01T00:00:00+10:00", 3600, "0001-01-01T00:00:00+10:00"),
        ("9999-12-31T23:59:59-10:00", 3600, "9999-12-31T22:59:59-10:00"),
    ],
)
def test_lowered(text: str, lookback: int, bound: str) -> None:
    """In the same spelling; without an offset by the clocks of the zone, and never within an hour that comes twice."""
    assert IN_LONDON.lowered(text, timedelta(seconds=lookback)) == bound


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-01",
        "2026-01-01T10",
        "2026-02-30T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "2026-01-01T10:00.5Z",
        "now",
        "1767225600",
    ],
)
def test_what_is_none(text: str) -> None:
    """It is said why."""
    with pytest.raises(Violation):
        ANYWHERE.place(text)
