"""Figures in memory, which refuse what the table of metrics does not declare."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import timedelta

from sluice.model.metric import Metric, MetricKind

Series = tuple[str, tuple[tuple[str, str], ...]]


class MemoryMetrics:
    """Keeps what was told, by name and labels."""

    def __init__(self) -> None:
        self.counts: Counter[Series] = Counter()
        self.gauges: dict[Series, float] = {}
        self.spans: defaultdict[Series, list[timedelta]] = defaultdict(list)

    def count(self, metric: Metric, number: int = 1, **labels: str) -> None:
        """Count so many more."""
        self.counts[_series(metric, MetricKind.COUNT, labels)] += number

    def gauge(self, metric: Metric, value: float, **labels: str) -> None:
        """Keep the last value."""
        self.gauges[_series(metric, MetricKind.GAUGE, labels)] = value

    def timing(self, metric: Metric, span: timedelta, **labels: str) -> None:
        """Keep the span."""
        self.spans[_series(metric, MetricKind.DURATION, labels)].append(span)

    def of(self, name: str, **labels: str) -> int:
        """Return how often that has been counted."""
        return self.counts[name, tuple(sorted(labels.items()))]


def _series(metric: Metric, kind: MetricKind, labels: Mapping[str, str]) -> Series:
    misuse = metric.misuse(kind, labels)
    assert misuse is None, misuse
    return metric.name, tuple(sorted((label, str(value)) for label, value in labels.items()))
