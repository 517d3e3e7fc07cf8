"""When a sync runs by itself, and by when it should have: as whoever schedules it knows."""

from datetime import UTC, datetime

from pydantic import Field

from sluice.model.base import Frozen


class Schedule(Frozen):
    """When a sync runs by itself."""

    cron: str | None = Field(description="the cron expression, in UTC; None: it runs when asked to")
    is_paused: bool = Field(default=False, description="whether nothing is begun by itself at present")

    def late_since(self, now: datetime) -> datetime | None:
        """Return the moment since which a run should have succeeded: the last but one that the schedule names.

        What was begun by the last one may still be on its way. None: nothing is expected.
        """
        from croniter import CroniterBadCronError, croniter  # type: ignore[import-untyped]  # it has no stubs of its own

        if self.cron is None or self.is_paused:
            return None
        try:
            moments = croniter(self.cron, now.astimezone(UTC))
        except CroniterBadCronError:
            return None
        moments.get_prev(datetime)
        before: datetime = moments.get_prev(datetime)
        return before
