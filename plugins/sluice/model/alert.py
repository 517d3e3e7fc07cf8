"""Alerts: how many runs in a row did not succeed in; who has to be told, once per incident, out."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from sluice.model.base import Frozen, RunId
from sluice.model.stage import Alerts, Notifier


class AlertLevel(StrEnum):
    """How urgent an alert is."""

    WARN = "warn"
    PAGE = "page"
    """Somebody is woken."""


class Tidings(StrEnum):
    """What people are told."""

    WARN = "warn"
    PAGE = "page"
    RECOVERED = "recovered"
    """An incident is over: a run has succeeded."""
    REVIEW = "review"
    """A review waits for a person."""


class Alert(Frozen):
    """That the runs of a sync keep failing."""

    level: AlertLevel
    runs: int
    """How many in a row did not succeed."""


class Incident(Frozen):
    """A row of failing runs that somebody was told of: from the run that reached a level to the next one that succeeds."""

    id: int
    sync: str
    level: AlertLevel = Field(description="the highest that it has reached")
    runs: int = Field(description="how many runs in a row had failed when it reached that level")
    run: RunId = Field(description="the run that let it reach that level")
    began_at: datetime
    ended_at: datetime | None = None

    @property
    def tidings(self) -> Tidings:
        """What it is told as now."""
        return Tidings(self.level) if self.ended_at is None else Tidings.RECOVERED

    def audience(self, alerts: Alerts) -> tuple[Notifier, ...]:
        """Return who is told of it now: of its end, whoever was told of it."""
        notify = alerts.notify
        if self.ended_at is None:
            return notify.page if self.level is AlertLevel.PAGE else notify.warn
        told = notify.warn if self.level is AlertLevel.WARN else (*notify.warn, *notify.page)
        return tuple(one for number, one in enumerate(told) if one not in told[:number])


def alert_for(runs: int, limits: Alerts) -> Alert | None:
    """Return the alert that so many runs in a row amount to."""
    if runs >= limits.page:
        return Alert(level=AlertLevel.PAGE, runs=runs)
    return Alert(level=AlertLevel.WARN, runs=runs) if runs >= limits.warn else None
