"""A clock that stands until it is told to move."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Time, as a test wants it."""

    def __init__(self, now: datetime = datetime(2026, 1, 31, 12, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        """Return the instant it was set to."""
        return self._now

    def wait_until(self, instant: datetime) -> None:
        """Jump to that instant, unless it has passed."""
        self._now = max(self._now, instant)

    def move(self, by: timedelta) -> None:
        """Let time pass."""
        self._now += by
