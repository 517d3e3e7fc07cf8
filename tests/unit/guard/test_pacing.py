"""The pace: slots shared by all workers of a stage, waited for by the fake clock."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import RateLimited, StateUnavailable
from sluice.guard.pacing import Pacing, spacing_of
from sluice.model.stage import StagePolicy
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.rate_store import MemoryRateStore

SHOP = "api.example.com:443"


def pacing(rates: MemoryRateStore, stage: str = "hotel-content", **policy: object) -> Pacing:
    """Return what one worker of the stage has, by a clock of its own that shows the same as the store's."""
    return Pacing(rates, FakeClock(rates.clock.now()), host=SHOP, stage=stage, policy=StagePolicy.model_validate(policy))


def test_two_stages_go_at_the_pace_of_each() -> None:
    """Where one may ask twice a second the other waits ten seconds: each its own slots, of the spacing it declares."""
    rates = MemoryRateStore(FakeClock())
    began = rates.clock.now()
    quick, slow = pacing(rates, "quick", requests_per_second=2), pacing(rates, "slow", requests_per_second=0.1)
    for _ in range(3):
        quick.await_slot()
        slow.await_slot()
    offsets = {stage: [(slot - began).total_seconds() for slot in slots] for (_, stage), slots in rates.slots.items()}
    assert offsets == {"quick": [0, 0.5, 1], "slow": [0, 10, 20]}


def test_workers_share_the_slots() -> None:
    """However many ask at once, each waits until its own slot has come."""
    rates = MemoryRateStore(FakeClock())
    began = rates.clock.now()
    clocks = [FakeClock(began) for _ in range(3)]
    policy = StagePolicy(requests_per_second=4)
    for clock in clocks:
        Pacing(rates, clock, host=SHOP, stage="hotel-content", policy=policy).await_slot()
    assert [clock.now() - began for clock in clocks] == [timedelta(seconds=place / 4) for place in range(3)]


def test_without_a_limit_nothing_is_written() -> None:
    """Nor read: the store may be away."""
    rates = MemoryRateStore(FakeClock(), is_away=True)
    pacing(rates).await_slot()
    assert rates.slots == {}


def test_a_worker_that_died_holds_up_nobody() -> None:
    """Its slot passes unused, and the next is where it was."""
    rates = MemoryRateStore(FakeClock())
    spacing = timedelta(seconds=10)
    rates.reserve(SHOP, "hotel-content", spacing=spacing, patience=spacing)
    rates.reserve(SHOP, "hotel-content", spacing=spacing, patience=spacing)
    rates.clock.move(timedelta(seconds=60))
    waiting = pacing(rates, requests_per_second=0.1)
    waiting.await_slot()
    assert waiting._clock.now() == rates.clock.now()


def test_two_stages_queue_as_long_as_each_may_stand_still() -> None:
    """A queue beyond the stage's `no_progress_timeout` is refused, and not slept through."""
    rates = MemoryRateStore(FakeClock())
    lazy, strict = "lazy", "strict"
    for stage in (lazy, strict):
        for _ in range(30):
            rates.reserve(SHOP, stage, spacing=timedelta(seconds=10), patience=timedelta(days=1))
    patient = pacing(rates, lazy, requests_per_second=0.1, no_progress_timeout="15m")
    hasty = pacing(rates, strict, requests_per_second=0.1, no_progress_timeout="2m")
    patient.await_slot()
    assert patient._clock.now() - rates.clock.now() == timedelta(seconds=300)
    with pytest.raises(RateLimited):
        hasty.await_slot()
    assert hasty._clock.now() == rates.clock.now()
    assert len(rates.slots[SHOP, strict]) == 30


def test_out_of_reach_is_not_without_limit() -> None:
    """A worker that cannot ask for a slot makes no request."""
    with pytest.raises(StateUnavailable):
        pacing(MemoryRateStore(FakeClock(), is_away=True), requests_per_second=1).await_slot()


@given(st.floats(min_value=1e-4, max_value=10_000))
def test_slots_are_never_closer_than_the_rate_allows(rate: float) -> None:
    """Rounding to what the database can tell apart errs to the supplier's side, and by no more than that."""
    spacing = spacing_of(StagePolicy(requests_per_second=rate))
    assert spacing is not None
    assert 0 <= spacing / timedelta(microseconds=1) - 1_000_000 / rate <= 1
