"""The spans of a backfill: the intervals of a schedule, or steps, that lie within a span of time, and what they are called."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from sluice.cli.backfill.spans import MOST_SPANS, interval_from, parse_range, scheduled_spans, spell_span, stepped_spans
from sluice.errors import UsageInvalid
from sluice.model.schedule import Schedule

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def spelled(start: str, end: str, schedule: str | timedelta) -> list[str]:
    """Return the spans within a span of time, by their names."""
    within = parse_range(start, end)
    found = scheduled_spans(Schedule(cron=schedule), within) if isinstance(schedule, str) else stepped_spans(schedule, within)
    assert all(earlier.end <= later.start for earlier, later in pairwise(found))
    return [spell_span(span) for span in found]


@pytest.mark.parametrize(
    ("start", "end", "schedule", "names"),
    [
        ("2026-01-01", "2026-01-03", "@daily", ["2026-01-01", "2026-01-02"]),
        ("2026-01-01T06:00:00Z", "2026-01-03T23:00:00Z", "0 0 * * *", ["2026-01-02"]),
        ("2026-01-01T00:00:00+02:00", "2026-01-02", "@daily", ["2026-01-01"]),
        ("2026-01-01", "2026-01-02", "0 */12 * * *", ["2026-01-01 to 2026-01-01T12:00Z", "2026-01-01T12:00Z to 2026-01-02"]),
        ("2026-01-01", "2026-07-15", "@quarterly", ["2026-01-01 to 2026-04-01", "2026-04-01 to 2026-07-01"]),
        ("2026-01-01", "2026-01-16", 7 * DAY, ["2026-01-01 to 2026-01-08", "2026-01-08 to 2026-01-15", "2026-01-15"]),
        ("2026-01-01T00:00:30Z", "2026-01-01T01:00:00Z", HOUR, ["2026-01-01T00:00:30Z to 2026-01-01T01:00Z"]),
    ],
)
def test_the_spans_within(start: str, end: str, schedule: str | timedelta, names: list[str]) -> None:
    """Whole intervals alone; of steps, the last is as long as there is room for it. Bounds may be in any zone."""
    assert spelled(start, end, schedule) == names


@pytest.mark.parametrize(
    ("start", "end", "schedule", "why"),
    [
        ("2026-01-01", "2026-01-01T20:00:00Z", "@daily", "no interval of the schedule lies within"),
        ("2026-01-01", "2026-03-01", HOUR, f"more than {MOST_SPANS:,} runs at a time"),
        ("2026-01-01", "2026-01-02", timedelta(0), "longer than nothing"),
        ("2026-01-02", "2026-01-01", "@daily", "--to 2026-01-01T00:00:00Z is not after --from"),
        ("2026-01-02T00:00", "2026-01-03", "@daily", "has no time zone"),
    ],
)
def test_what_makes_no_spans(start: str, end: str, schedule: str | timedelta, why: str) -> None:
    """None, too many, and what is no span of time."""
    with pytest.raises(UsageInvalid, match=why):
        spelled(start, end, schedule)


def test_the_interval_that_begins_at_a_moment() -> None:
    """By it, the last interval of a backfill is known from its logical date."""
    last = datetime(2026, 1, 31, tzinfo=UTC)
    assert spell_span(interval_from(Schedule(cron="@monthly"), last)) == "2026-02-01 to 2026-03-01"
    assert spell_span(interval_from(Schedule(cron="@daily"), last)) == "2026-01-31"
