"""Alerts: how many runs in a row did not succeed in; who has to be told out."""

from enum import StrEnum

from sluice.model.base import Frozen
from sluice.model.stage import Alerts


class AlertLevel(StrEnum):
    """How urgent an alert is."""

    WARN = "warn"
    PAGE = "page"
    """Somebody is woken."""


class Alert(Frozen):
    """That the runs of a sync keep failing."""

    level: AlertLevel
    runs: int
    """How many in a row did not succeed."""


def alert_for(runs: int, limits: Alerts) -> Alert | None:
    """Return the alert that so many runs in a row raise; each further one raises it again."""
    if runs >= limits.page:
        return Alert(level=AlertLevel.PAGE, runs=runs)
    return Alert(level=AlertLevel.WARN, runs=runs) if runs >= limits.warn else None
