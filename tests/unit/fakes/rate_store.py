"""Slots in memory."""

from datetime import datetime, timedelta

from sluice.errors import RateLimited, StateUnavailable
from tests.unit.fakes.clock import FakeClock


class MemoryRateStore:
    """The port `RateStore`. It keeps the slots it gave, and can be out of reach."""

    def __init__(self, clock: FakeClock, *, is_away: bool = False) -> None:
        self.clock = clock
        self.is_away = is_away
        self.slots: dict[tuple[str, str], list[datetime]] = {}
        self._next: dict[tuple[str, str], datetime] = {}

    def reserve(self, host: str, stage: str, *, spacing: timedelta, patience: timedelta) -> timedelta:
        """Take the next free slot."""
        if self.is_away:
            raise StateUnavailable
        now = self.clock.now()
        slot = max(now, self._next.get((host, stage), now))
        if slot - now > patience:
            raise RateLimited("the queue is too long", retry_after=(slot - now).total_seconds(), host=host, stage=stage)
        self._next[host, stage] = slot + spacing
        self.slots.setdefault((host, stage), []).append(slot)
        return slot - now
