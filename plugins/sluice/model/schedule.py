"""When a sync runs by itself, and by when it should have: as whoever schedules it knows."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from pydantic import Field

from sluice.model.base import Frozen
from sluice.model.scalars import ZoneName

_PRESETS: Final = {"@quarterly": "0 0 1 */3 *"}
"""Presets that Airflow knows, and the library that reckons with cron expressions does not."""


class Schedule(Frozen):
    """When a sync runs by itself.

    It reckons as Airflow does: by the clocks of its zone. What they skip in one night of the year is due an hour later by them;
    what they show twice in another is due the second time. A schedule of every hour keeps to hours that pass.
    """

    cron: str | None = Field(description="the cron expression, or a preset; None: it runs when asked to")
    zone: ZoneName = Field(default="UTC", description="whose clocks it goes by")
    is_paused: bool = Field(default=False, description="whether nothing is begun by itself at present")

    def next_after(self, moment: datetime) -> datetime:
        """Return the first moment after this one that the schedule names; it has to name some."""
        return next(due for due in self._from(moment, is_forwards=True) if due > moment)

    def last_before(self, moment: datetime) -> datetime:
        """Return the last moment before this one that the schedule names; it has to name some."""
        return next(due for due in self._from(moment, is_forwards=False) if due < moment)

    def late_since(self, now: datetime) -> datetime | None:
        """Return the moment since which a run should have succeeded: the last but one that the schedule names.

        What was begun by the last one may still be on its way. None: nothing is expected.
        """
        from croniter import CroniterBadCronError  # type: ignore[import-untyped]  # it has no stubs of its own

        if self.cron is None or self.is_paused:
            return None
        try:
            return self.last_before(self.last_before(now))
        except CroniterBadCronError:
            return None

    def _from(self, moment: datetime, *, is_forwards: bool) -> Iterator[datetime]:
        """Yield moments that the schedule names from this one on; when clocks change, the first may be on its other side."""
        from croniter import croniter

        zone = ZoneInfo(self.zone)
        shown = moment.astimezone(zone).replace(tzinfo=None)
        ticks: Any = croniter(_PRESETS.get(str(self.cron), self.cron), shown)
        while True:
            due: datetime = ticks.get_next(datetime) if is_forwards else ticks.get_prev(datetime)
            is_hourly = ticks.expanded[1] == ["*"]
            yield moment.astimezone(UTC) + (due - shown) if is_hourly else _as_shown(due, zone)


def _as_shown(clock: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment at which the clocks of a zone show this: the second one, or, if they skip it, as much later."""
    moment = clock.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == clock:
        return moment
    return clock.replace(tzinfo=zone, fold=0).astimezone(UTC)
