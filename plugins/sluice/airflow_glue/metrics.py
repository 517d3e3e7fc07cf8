"""Sluice's figures in, Airflow's metrics (StatsD or OpenTelemetry, as this Airflow is configured) out."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import structlog
from airflow.sdk.observability import stats

from sluice import log_events
from sluice.model.metric import Metric

log: Final = structlog.get_logger()


class AirflowMetrics:
    """Tells each metric as `sluice.<name>`, with its labels as tags; spans in milliseconds, as timers or histograms."""

    def count(self, metric: Metric, number: int = 1, **labels: str) -> None:
        """Count so many more."""
        with _harmless(metric):
            stats.incr(_name(metric), number, tags=_tags(labels))

    def gauge(self, metric: Metric, value: float, **labels: str) -> None:
        """Let the metric stand at this value."""
        with _harmless(metric):
            stats.gauge(_name(metric), value, tags=_tags(labels))

    def timing(self, metric: Metric, span: timedelta, **labels: str) -> None:
        """Add a span to those that the metric has been told."""
        with _harmless(metric):
            stats.timing(_name(metric), span, tags=_tags(labels))


@contextmanager
def _harmless(metric: Metric) -> Iterator[None]:
    """Let no step fail because of whoever watches it."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - backends are others', and there are several
        log.warning(log_events.METRIC_DROPPED, metric=metric.name, error=type(error).__name__, message=str(error))


def _name(metric: Metric) -> str:
    return f"sluice.{metric.name}"


def _tags(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels as backends take them: plain text, whatever enumeration it comes from."""
    return {label: str(value) for label, value in labels.items()}
