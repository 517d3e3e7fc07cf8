"""A sync at a glance in; in one word how it is doing, and what that means, out."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunStatus
from sluice.model.overview import SyncGlance
from sluice.model.schedule import Schedule


class Health(StrEnum):
    """How a sync is doing; the worst that holds."""

    FAILING = "failing"
    LATE = "late"
    WAITS = "waits for a person"
    NEW = "new"
    GOOD = "good"


MEANINGS: Final = {
    Health.FAILING: "its newest run that is over failed or was partial",
    Health.LATE: "no run that was begun since the last time but one of its schedule has succeeded",
    Health.WAITS: "a review wants an answer",
    Health.NEW: "none of its runs has come to an end yet",
    Health.GOOD: "its newest run that is over succeeded",
}
"""What each word says of a sync."""


def health(glance: SyncGlance, schedule: Schedule | None, now: datetime) -> Health:
    """Return how the sync is doing; without a schedule it is never late."""
    over = [run for run in glance.runs if run.status in FINAL_RUN_STATUSES and run.status is not RunStatus.CANCELLED]
    if glance.alert is not None or (over and over[0].status is not RunStatus.SUCCEEDED):
        return Health.FAILING
    if glance.good_at is None and not over:
        return Health.WAITS if glance.reviews else Health.NEW
    due = schedule.late_since(now) if schedule is not None else None
    known_since = glance.good_at or glance.runs[-1].created_at
    if due is not None and known_since < due:
        return Health.LATE
    return Health.WAITS if glance.reviews else Health.GOOD
