"""Breakers in memory."""

from datetime import datetime, timedelta

from sluice.errors import StateUnavailable
from sluice.model.breaker import Breaker
from tests.unit.fakes.clock import FakeClock

Key = tuple[str, str]


class MemoryBreakerStore:
    """The port `BreakerStore`. It counts its own statements, and can be out of reach."""

    def __init__(self, clock: FakeClock, *, is_away: bool = False) -> None:
        self.clock = clock
        self.is_away = is_away
        self.statements = 0
        self._held: dict[Key, Breaker] = {}
        self._counted: dict[Key, list[tuple[datetime, int, int]]] = {}

    def look(self, host: str, stage: str) -> Breaker:
        """Return the breaker."""
        self._reach()
        held = self._held.get((host, stage), Breaker(at=self.clock.now()))
        return held.model_copy(update={"at": self.clock.now()})

    def count(self, host: str, stage: str, *, tries: int, failures: int, window: timedelta) -> Breaker:
        """Add tries; forget those of before the window."""
        self._reach()
        now = self.clock.now()
        counted = [*self._counted.get((host, stage), []), (now, tries, failures)]
        recent = [entry for entry in counted if entry[0] > now - window]
        self._counted[host, stage] = recent
        return self._put(host, stage, tries=sum(entry[1] for entry in recent), failures=sum(entry[2] for entry in recent))

    def open(self, host: str, stage: str, *, open_for: timedelta, reason: str, probe: datetime | None = None) -> Breaker | None:
        """Open it, if it is closed or the probe is the one under way."""
        self._reach()
        held = self._held[host, stage]
        if (held.resting_until is None) != (probe is None) or held.probed_until != probe:
            return None
        return self._put(host, stage, resting_until=self.clock.now() + open_for, probed_until=None, reason=reason)

    def claim_probe(self, host: str, stage: str, within: timedelta) -> Breaker | None:
        """Let one try through after a rest."""
        self._reach()
        held, now = self._held.get((host, stage)), self.clock.now()
        if held is None or held.resting_until is None or held.resting_until > now:
            return None
        if held.probed_until is not None and held.probed_until > now:
            return None
        return self._put(host, stage, probed_until=now + within)

    def close(self, host: str, stage: str, probe: datetime) -> Breaker | None:
        """Close it, if the probe is the one under way."""
        self._reach()
        if self._held[host, stage].probed_until != probe:
            return None
        self._counted[host, stage] = []
        return self._put(host, stage, tries=0, failures=0, resting_until=None, probed_until=None, reason=None)

    def _reach(self) -> None:
        self.statements += 1
        if self.is_away:
            raise StateUnavailable

    def _put(self, host: str, stage: str, **changes: object) -> Breaker:
        held = self._held.get((host, stage), Breaker(at=self.clock.now()))
        self._held[host, stage] = held.model_copy(update={**changes, "at": self.clock.now()})
        return self._held[host, stage]
