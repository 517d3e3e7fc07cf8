"""A clock that stands until it is told to move."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Time, as a test wants it."""

    def __init__(self, now: datetime = datetime(2026, 1, 31, 12, tzinfo=UTC)) -> None:
        self._now = now
        self._elapsed = 0.0

    def now(self) -> datetime:
        """Return the instant it was set to."""
        return self._now

    def elapsed(self) -> float:
        """Return the seconds that have passed."""
        return self._elapsed

    def wait(self, span: timedelta) -> None:
        """Let the span pass."""
        self.move(max(span, timedelta(0)))

    def turn_back(self, by: timedelta) -> None:
        """Let somebody set the clock back; no time passes."""
        self._now -= by

    def move(self, by: timedelta) -> None:
        """Let time pass."""
        self._now += by
        self._elapsed += by.total_seconds()
