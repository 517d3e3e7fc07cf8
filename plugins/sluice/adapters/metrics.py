"""Counts where no metrics system is at hand: a name and its labels in, one log event out."""

from typing import Final

import structlog

from sluice import log_events

_log: Final = structlog.get_logger()


class LoggedMetrics:
    """Writes each count to the log, at level debug."""

    def count(self, name: str, number: int = 1, **labels: str) -> None:
        """Log the count."""
        _log.debug(log_events.COUNTED, metric=name, number=number, **labels)
