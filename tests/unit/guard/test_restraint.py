"""What stands before a request: the breaker first, then the pace."""

from datetime import timedelta

import pytest

from sluice.errors import RateLimited, StateUnavailable, SupplierResting, SupplierUnavailable
from sluice.guard.restraint import Restraint
from sluice.guard.retries import patiently
from sluice.model.stage import BreakerPolicy, RetryPolicy, StagePolicy
from tests.support.restraints import restraint
from tests.unit.fakes.breaker_store import MemoryBreakerStore
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.rate_store import MemoryRateStore

SHOP, STAGE = "api.example.com:443", "hotel-content"
RETRY = RetryPolicy(attempts=4, base=timedelta(microseconds=1), cap=timedelta(microseconds=1))
PACED = StagePolicy(requests_per_second=1, breaker=BreakerPolicy(open_for=timedelta(hours=1)))


class Worker:
    """A worker with stores of its own."""

    def __init__(self, policy: StagePolicy = PACED) -> None:
        self.clock = FakeClock()
        self.breakers = MemoryBreakerStore(self.clock)
        self.rates = MemoryRateStore(self.clock)
        self.restraint: Restraint = restraint(self.breakers, self.rates, self.clock, policy=policy, host=SHOP, stage=STAGE)
        self.made = 0

    def fail(self) -> None:
        """Make a try at a supplier that is down."""
        self.made += 1
        raise SupplierUnavailable("GET /hotels: 500")

    def offsets(self) -> list[float]:
        """Return the slots it was given, in seconds since the first."""
        slots = self.rates.slots.get((SHOP, STAGE), [])
        return [(slot - slots[0]).total_seconds() for slot in slots]


def test_each_try_of_a_request_waits_for_a_slot() -> None:
    """A retry is a request like any other."""
    worker = Worker()
    with pytest.raises(SupplierUnavailable):
        patiently(lambda: worker.restraint.ask(worker.fail), RETRY, timedelta(hours=1))
    assert (worker.made, worker.offsets()) == (4, [0, 1, 2, 3])


def test_no_slot_is_spent_on_a_try_that_is_not_made() -> None:
    """While the supplier rests its queue stays as it is."""
    worker = Worker()
    for _ in range(9):
        with pytest.raises(SupplierUnavailable):
            worker.restraint.ask(worker.fail)
    assert worker.made == len(worker.offsets()) == 5


def test_a_breaker_that_opens_while_a_slot_is_waited_for_stops_the_try() -> None:
    """The queue may be long: what counts is how the supplier is when the slot has come."""
    worker = Worker()
    worker.rates.reserve(SHOP, STAGE, spacing=timedelta(minutes=5), patience=timedelta(days=1))
    worker.restraint.breaker.require_rested()
    worker.breakers.count(SHOP, STAGE, tries=5, failures=5, window=timedelta(minutes=1))
    worker.breakers.open(SHOP, STAGE, open_for=timedelta(hours=1), reason="others say so")
    with pytest.raises(SupplierResting, match="others say so"):
        worker.restraint.ask(worker.fail)
    assert (worker.made, worker.offsets()) == (0, [0, 300])


@pytest.mark.parametrize("away", ["breakers", "rates"])
def test_without_state_no_request_is_made(away: str) -> None:
    """Who cannot ask the others leaves the supplier alone."""
    worker = Worker()
    getattr(worker, away).is_away = True
    with pytest.raises(StateUnavailable):
        worker.restraint.ask(worker.fail)
    assert worker.made == 0


def test_a_queue_that_is_too_long_ends_the_request_at_once() -> None:
    """It is neither slept through nor asked for again: the shard fails, and goes on later."""
    worker = Worker(PACED.model_copy(update={"no_progress_timeout": timedelta(seconds=90)}))
    for _ in range(100):
        worker.rates.reserve(SHOP, STAGE, spacing=timedelta(seconds=1), patience=timedelta(days=1))
    began = worker.clock.elapsed()
    with pytest.raises(RateLimited):
        patiently(lambda: worker.restraint.ask(worker.fail), RETRY, timedelta(seconds=90))
    assert (worker.made, worker.clock.elapsed()) == (0, began)
    assert len(worker.offsets()) == 100
