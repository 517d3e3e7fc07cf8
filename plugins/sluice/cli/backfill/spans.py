"""Two moments in; the spans of time between them, one for each run of a backfill, and how people call them, out."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from sluice.errors import UsageInvalid
from sluice.model.run import Window, parse_window
from sluice.model.scalars import spell_instant
from sluice.model.schedule import Schedule

MOST_SPANS: Final = 1000
_DAY: Final = timedelta(days=1)


def parse_range(start: str | None, end: str | None) -> Window:
    """Return the time between two moments; a date is its first moment in UTC. Raises `UsageInvalid`."""
    window = parse_window(_moment(start), _moment(end), ("--from", "--to"))
    if window is None:
        raise UsageInvalid("--from and --to are missing: say which time to go over, such as --from 2026-01-01 --to 2026-01-31")
    return Window(start=window.start.astimezone(UTC), end=window.end.astimezone(UTC))


def scheduled_spans(schedule: Schedule, within: Window) -> list[Window]:
    """Return the intervals of a schedule that lie within a span of time, whole ones alone."""
    return _bounded(_intervals(schedule, within), within)


def interval_from(schedule: Schedule, start: datetime) -> Window:
    """Return the interval of a schedule that begins at a moment, or else the next one."""
    begins = _first_from(schedule, start)
    return Window(start=begins, end=schedule.next_after(begins))


def stepped_spans(step: timedelta, within: Window) -> list[Window]:
    """Return spans of one length, from the start on; the last one is shorter where there is no room for more."""
    if step <= timedelta(0):
        raise UsageInvalid("--step 0s: a span of time is longer than nothing")
    return _bounded(_steps(step, within), within)


def spell_span(window: Window) -> str:
    """Return a span as people call it: a day by its date."""
    start, end = window.start.astimezone(UTC), window.end.astimezone(UTC)
    if end - start == _DAY and start.timetz() == datetime.min.replace(tzinfo=UTC).timetz():
        return f"{start:%Y-%m-%d}"
    return f"{_spelled(start)} to {_spelled(end)}"


def spell_runs(number: int) -> str:
    """Return how many runs there are."""
    return f"{number:,} run{'' if number == 1 else 's'}"


def _moment(written: str | None) -> str | None:
    return f"{written}T00:00:00Z" if written is not None and re.fullmatch(r"\d{4}-\d{2}-\d{2}", written) else written


def _intervals(schedule: Schedule, within: Window) -> Iterator[Window]:
    start = _first_from(schedule, within.start)
    while (end := schedule.next_after(start)) <= within.end:
        yield Window(start=start, end=end)
        start = end


def _first_from(schedule: Schedule, moment: datetime) -> datetime:
    return schedule.next_after(moment - timedelta(seconds=1))


def _steps(step: timedelta, within: Window) -> Iterator[Window]:
    start = within.start
    while start < within.end:
        yield Window(start=start, end=min(start + step, within.end))
        start += step


def _bounded(spans: Iterator[Window], within: Window) -> list[Window]:
    found: list[Window] = []
    for span in spans:
        if len(found) == MOST_SPANS:
            raise UsageInvalid(f"more than {MOST_SPANS:,} runs at a time: go over a shorter time, or in larger steps")
        found.append(span)
    if not found:
        shorter = f"{spell_instant(within.start)} to {spell_instant(within.end)}"
        raise UsageInvalid(f"no interval of the schedule lies within {shorter}: go over a longer time, or in steps of --step")
    return found


def _spelled(moment: datetime) -> str:
    if moment.second or moment.microsecond:
        return spell_instant(moment)
    return f"{moment:%Y-%m-%d}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:%Y-%m-%dT%H:%MZ}"
