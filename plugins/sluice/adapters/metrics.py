"""Figures where no metrics system is at hand: a metric and its labels in, one log event out."""

from datetime import timedelta
from typing import Final

import structlog

from sluice import log_events
from sluice.model.metric import Metric

_log: Final = structlog.get_logger()


class LoggedMetrics:
    """Writes each figure to the log, at level debug."""

    def count(self, metric: Metric, number: int = 1, **labels: str) -> None:
        """Log the count."""
        _log.debug(log_events.COUNTED, metric=metric.name, number=number, **_plain(labels))

    def gauge(self, metric: Metric, value: float, **labels: str) -> None:
        """Log the value."""
        _log.debug(log_events.GAUGED, metric=metric.name, value=value, **_plain(labels))

    def timing(self, metric: Metric, span: timedelta, **labels: str) -> None:
        """Log the span."""
        _log.debug(log_events.TIMED, metric=metric.name, seconds=round(span.total_seconds(), 3), **_plain(labels))


def _plain(labels: dict[str, str]) -> dict[str, str]:
    """Return labels as they are written: members of enumerations as what they stand for."""
    return {label: str(value) for label, value in labels.items()}
