"""How a sync is doing, in one word."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sluice.model.alert import AlertLevel
from sluice.model.base import RunId
from sluice.model.health import Health, health
from sluice.model.lifecycle import RunStatus, Step
from sluice.model.overview import RunGlance, SyncGlance
from sluice.model.run import Mode
from sluice.model.schedule import Schedule

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAILY = Schedule(cron="0 0 * * *")
YESTERDAY = NOW - timedelta(days=1)


def glance(*statuses: RunStatus, **changes: Any) -> SyncGlance:
    """Return a sync with runs of these statuses, the newest first."""
    facts = {"step": Step.SETTLE, "mode": Mode.FULL, "created_at": YESTERDAY, "finished_at": None}
    runs = tuple(RunGlance(id=RunId(str(number)), status=status, **facts) for number, status in enumerate(statuses))  # type: ignore[arg-type]
    return SyncGlance.model_validate({"sync": "hotels", "runs": runs} | changes)


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (glance(), Health.NEW),
        (glance(RunStatus.RUNNING), Health.NEW),
        (glance(RunStatus.WAITING, reviews=1), Health.WAITS),
        (glance(RunStatus.SUCCEEDED, good_at=YESTERDAY), Health.GOOD),
        (glance(RunStatus.RUNNING, RunStatus.SUCCEEDED), Health.GOOD),
        (glance(RunStatus.CANCELLED, RunStatus.SUCCEEDED), Health.GOOD),
        (glance(RunStatus.RUNNING, RunStatus.FAILED), Health.FAILING),
        (glance(RunStatus.PARTIAL, RunStatus.SUCCEEDED), Health.FAILING),
        (glance(RunStatus.SUCCEEDED, alert=AlertLevel.WARN), Health.FAILING),
        (glance(RunStatus.WAITING, RunStatus.SUCCEEDED, reviews=1), Health.WAITS),
        (glance(RunStatus.WAITING, RunStatus.FAILED, reviews=1), Health.FAILING),
        (glance(RunStatus.WAITING, RunStatus.SUCCEEDED, reviews=1, good_at=NOW - timedelta(days=3)), Health.LATE),
    ],
)
def test_the_worst_that_holds_is_said(seen: SyncGlance, word: Health) -> None:
    """What is under way, or was called off, says nothing yet."""
    assert health(seen, DAILY, NOW) is word


@pytest.mark.parametrize(("hours", "is_late"), [(1, False), (35, False), (36, False), (37, True)])
def test_a_sync_is_late_once_a_whole_interval_has_gone_by(hours: int, is_late: bool) -> None:
    """The run of last midnight may be under way; the one before should have succeeded."""
    seen = glance(RunStatus.RUNNING, RunStatus.SUCCEEDED, good_at=NOW - timedelta(hours=hours))
    assert (health(seen, DAILY, NOW) is Health.LATE) is is_late


@pytest.mark.parametrize(
    "schedule", [None, Schedule(cron=None), Schedule(cron="0 0 * * *", is_paused=True), Schedule(cron="@continuous")]
)
def test_what_nobody_expects_is_not_late(schedule: Schedule | None) -> None:
    """Without a schedule, or with one that is paused or no cron expression."""
    assert health(glance(RunStatus.SUCCEEDED, good_at=NOW - timedelta(days=300)), schedule, NOW) is Health.GOOD
