"""When a schedule is due, by the clocks of its zone."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from sluice.model.schedule import Schedule

BERLIN = "Europe/Berlin"


def due(cron: str, zone: str, first: str, number: int) -> list[str]:
    """Return the first moments that a schedule names from one on."""
    moment, found = datetime.fromisoformat(first), []
    for _ in range(number):
        moment = Schedule(cron=cron, zone=zone).next_after(moment)
        found.append(f"{moment:%d %H:%M}")
        assert moment.tzinfo is UTC
    return found


@pytest.mark.parametrize(
    ("cron", "zone", "first", "moments"),
    [
        ("30 2 * * *", "UTC", "2026-03-28T00:00Z", ["28 02:30", "29 02:30"]),
        ("30 2 * * *", BERLIN, "2026-03-28T00:00Z", ["28 01:30", "29 01:30", "30 00:30"]),
        ("30 2 * * *", BERLIN, "2026-10-23T12:00Z", ["24 00:30", "25 01:30", "26 01:30"]),
        ("@daily", BERLIN, "2026-10-24T12:00Z", ["24 22:00", "25 23:00", "26 23:00"]),
        ("@hourly", BERLIN, "2026-10-24T23:30Z", ["25 00:00", "25 01:00", "25 02:00"]),
        ("@hourly", BERLIN, "2026-03-29T00:30Z", ["29 01:00", "29 02:00"]),
        ("@quarterly", BERLIN, "2026-03-30T00:00Z", ["31 22:00", "30 22:00"]),
    ],
)
def test_nights_in_which_clocks_change(cron: str, zone: str, first: str, moments: list[str]) -> None:
    """Once a night, also in the night that has no such time, or two; each hour is an hour."""
    assert due(cron, zone, first, len(moments)) == moments


@pytest.mark.parametrize("cron", ["30 2 * * *", "@hourly"])
def test_the_way_back_is_the_way_there(cron: str) -> None:
    """The moment before the next one is the one it came from, whatever clocks do."""
    schedule = Schedule(cron=cron, zone=BERLIN)
    for begin in (datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 10, 23, tzinfo=UTC)):
        moments = [schedule.next_after(begin)]
        while len(moments) < 80:
            moments.append(schedule.next_after(moments[-1]))
        assert all(schedule.last_before(later) == earlier for earlier, later in pairwise(moments))
