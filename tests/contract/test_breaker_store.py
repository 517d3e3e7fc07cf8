"""The contract of `BreakerStore`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from sluice.adapters.clock import SystemClock
from sluice.adapters.postgres import Database
from sluice.adapters.state import PostgresBreakerStore
from sluice.errors import StateUnavailable
from sluice.model.breaker import Breaker
from sluice.ports import BreakerStore, Clock, ConnectionInfo
from tests.unit.fakes.breaker_store import MemoryBreakerStore
from tests.unit.fakes.clock import FakeClock

SHOP, STAGE = "api.example.com:443", "hotel-content"
MINUTE, NOTHING, MOMENT = timedelta(minutes=1), timedelta(0), timedelta(milliseconds=2)


@dataclass(frozen=True)
class Kept:
    """A store, and the clock that passes for it."""

    store: BreakerStore
    clock: Clock

    def count(self, tries: int, failures: int, window: timedelta = MINUTE) -> tuple[int, int]:
        """Count, and return what was counted within the window."""
        breaker = self.store.count(SHOP, STAGE, tries=tries, failures=failures, window=window)
        return breaker.tries, breaker.failures

    def open(self, open_for: timedelta = MINUTE, probe: datetime | None = None) -> Breaker | None:
        """Open the breaker."""
        return self.store.open(SHOP, STAGE, open_for=open_for, reason="5 of 5 failed", probe=probe)

    def claim(self, within: timedelta = MINUTE) -> datetime | None:
        """Claim the try after a rest, and return its mark."""
        claimed = self.store.claim_probe(SHOP, STAGE, within)
        return claimed.probed_until if claimed else None


@pytest.fixture(params=["memory", "postgres"])
def kept(request: pytest.FixtureRequest) -> Iterator[Kept]:
    """A store that knows of nobody."""
    if request.param == "memory":
        clock = FakeClock()
        yield Kept(MemoryBreakerStore(clock), clock)
        return
    database = Database(request.getfixturevalue("database"), StateUnavailable)
    yield Kept(PostgresBreakerStore(database), SystemClock())
    database.close()


@pytest.fixture(params=["memory", "postgres"])
def away(request: pytest.FixtureRequest) -> BreakerStore:
    """A store that cannot be reached."""
    if request.param == "memory":
        return MemoryBreakerStore(FakeClock(), is_away=True)
    info: ConnectionInfo = request.getfixturevalue("empty_database")
    return PostgresBreakerStore(Database(replace(info, port=1), StateUnavailable))


def test_a_host_that_nobody_knows_is_well(kept: Kept) -> None:
    """Missing is not unreachable: nothing was counted, and nothing rests."""
    breaker = kept.store.look(SHOP, STAGE)
    assert breaker == Breaker(at=breaker.at)
    assert kept.claim() is None


def test_tries_add_up_by_host_and_stage(kept: Kept) -> None:
    """Whoever counts, the sum is of all, and a look shows it."""
    assert kept.count(3, 1) == (3, 1)
    assert kept.count(2, 2) == (5, 3)
    kept.store.count("elsewhere", STAGE, tries=50, failures=50, window=MINUTE)
    kept.store.count(SHOP, "hotel-rates", tries=50, failures=50, window=MINUTE)
    assert kept.count(1, 0) == (6, 3)
    seen = kept.store.look(SHOP, STAGE)
    assert (seen.tries, seen.failures, seen.resting_until) == (6, 3, None)


def test_what_was_before_the_window_is_forgotten(kept: Kept) -> None:
    """Also where the window has become another since."""
    kept.count(9, 9)
    kept.clock.wait(MOMENT)
    assert kept.count(2, 1, window=timedelta(milliseconds=1)) == (2, 1)
    assert kept.count(1, 0, window=timedelta(days=1)) == (3, 1)


def test_an_open_breaker_says_until_when_and_why(kept: Kept) -> None:
    """By the store's own clock, and whoever looks."""
    kept.count(5, 4)
    opened = kept.open()
    assert opened is not None
    assert opened.resting_until is not None
    assert opened.at < opened.resting_until <= opened.at + MINUTE
    seen = kept.store.look(SHOP, STAGE)
    assert (seen.resting_until, seen.reason, seen.probed_until) == (opened.resting_until, "5 of 5 failed", None)
    assert (seen.tries, seen.failures) == (5, 4)


def test_it_is_opened_once(kept: Kept) -> None:
    """Of two who found it too bad at the same time one opens it; the other lengthens nothing."""
    kept.count(5, 5)
    first = kept.open()
    assert first is not None
    assert kept.open(open_for=timedelta(days=1)) is None
    assert kept.store.look(SHOP, STAGE).resting_until == first.resting_until


def test_nobody_tries_before_the_rest_is_over(kept: Kept) -> None:
    """Then one does, and no other while that one may take."""
    kept.count(5, 5)
    kept.open()
    assert kept.claim() is None
    kept.store.count(SHOP, "hotel-rates", tries=5, failures=5, window=MINUTE)
    kept.store.open(SHOP, "hotel-rates", open_for=NOTHING, reason="5 of 5 failed")
    claimed = kept.store.claim_probe(SHOP, "hotel-rates", MINUTE)
    assert claimed is not None
    assert claimed.probed_until is not None
    assert kept.store.claim_probe(SHOP, "hotel-rates", MINUTE) is None
    assert kept.store.look(SHOP, "hotel-rates").probed_until == claimed.probed_until


def test_an_answer_closes_it_and_counting_begins_anew(kept: Kept) -> None:
    """What was counted before the rest opens nothing again."""
    kept.count(5, 5)
    kept.open(NOTHING)
    probe = kept.claim()
    assert probe is not None
    closed = kept.store.close(SHOP, STAGE, probe)
    assert closed is not None
    assert closed == Breaker(at=closed.at)
    assert kept.count(1, 1) == (1, 1)
    assert kept.store.close(SHOP, STAGE, probe) is None


def test_a_failure_opens_it_again(kept: Kept) -> None:
    """The rest begins anew, and with it the wait for the next try."""
    kept.count(5, 5)
    kept.open(NOTHING)
    probe = kept.claim()
    again = kept.open(MINUTE, probe)
    assert again is not None
    assert again.resting_until is not None
    assert again.resting_until > again.at
    assert again.probed_until is None
    assert kept.claim() is None


def test_who_dies_while_trying_does_not_block(kept: Kept) -> None:
    """Another has the try once the first one's time is over; what the first one finds out late changes nothing."""
    kept.count(5, 5)
    kept.open(NOTHING)
    dead = kept.claim(NOTHING)
    kept.clock.wait(MOMENT)
    probe = kept.claim()
    assert dead is not None
    assert probe is not None
    assert probe != dead
    assert kept.store.close(SHOP, STAGE, dead) is None
    assert kept.open(MINUTE, dead) is None
    assert kept.store.look(SHOP, STAGE).probed_until == probe
    assert kept.store.close(SHOP, STAGE, probe) is not None


def test_a_late_failure_of_before_the_rest_opens_nothing(kept: Kept) -> None:
    """Tries that were under way when it opened are counted, and neither lengthen the rest nor end it."""
    kept.count(5, 5)
    opened = kept.open()
    assert opened is not None
    assert kept.count(1, 1) == (6, 6)
    assert kept.store.look(SHOP, STAGE).resting_until == opened.resting_until


def test_out_of_reach_is_not_healthy(away: BreakerStore) -> None:
    """Who cannot look must not guess."""
    for act in (
        lambda: away.look(SHOP, STAGE),
        lambda: away.count(SHOP, STAGE, tries=1, failures=1, window=MINUTE),
        lambda: away.open(SHOP, STAGE, open_for=MINUTE, reason="x"),
        lambda: away.claim_probe(SHOP, STAGE, MINUTE),
        lambda: away.close(SHOP, STAGE, datetime.fromisoformat("2026-01-31T12:00:00Z")),
    ):
        with pytest.raises(StateUnavailable):
            act()
