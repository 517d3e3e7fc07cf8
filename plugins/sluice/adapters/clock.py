"""The time of this machine."""

import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The wall clock, in UTC."""

    def now(self) -> datetime:
        """Return the present instant."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """Return the seconds of the monotonic clock."""
        return time.monotonic()

    def wait(self, span: timedelta) -> None:
        """Sleep for that span; not at all if it is negative."""
        time.sleep(max(0.0, span.total_seconds()))
