"""Counts in memory."""

from collections import Counter


class MemoryMetrics:
    """Keeps what was counted, by name and labels."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()

    def count(self, name: str, number: int = 1, **labels: str) -> None:
        """Count so many more."""
        self.counts[name, tuple(sorted(labels.items()))] += number

    def of(self, name: str, **labels: str) -> int:
        """Return how often that has been counted."""
        return self.counts[name, tuple(sorted(labels.items()))]
