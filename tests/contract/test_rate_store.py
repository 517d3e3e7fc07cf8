"""The contract of `RateStore`."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from sluice.adapters.postgres import Database
from sluice.adapters.state import PostgresRateStore
from sluice.errors import RateLimited, StateUnavailable
from sluice.ports import ConnectionInfo, RateStore
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.rate_store import MemoryRateStore

SHOP, STAGE = "api.example.com:443", "hotel-content"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NEARLY = timedelta(minutes=50)
"""What of an hour is left, however long the test takes."""


@pytest.fixture(params=["memory", "postgres"])
def rates(request: pytest.FixtureRequest) -> Iterator[RateStore]:
    """A store that has given no slot yet."""
    if request.param == "memory":
        yield MemoryRateStore(FakeClock())
        return
    database = Database(request.getfixturevalue("database"), StateUnavailable)
    yield PostgresRateStore(database)
    database.close()


@pytest.fixture(params=["memory", "postgres"])
def rates_away(request: pytest.FixtureRequest) -> Iterator[RateStore]:
    """A store that cannot be reached."""
    if request.param == "memory":
        yield MemoryRateStore(FakeClock(), is_away=True)
        return
    info: ConnectionInfo = request.getfixturevalue("empty_database")
    yield PostgresRateStore(Database(replace(info, port=1), StateUnavailable))


def test_the_first_slot_is_now_and_each_other_one_spacing_later(rates: RateStore) -> None:
    """Nobody waits for a slot that nobody has, and no two get the same."""
    waits = [rates.reserve(SHOP, STAGE, spacing=HOUR, patience=DAY) for _ in range(4)]
    assert waits[0] == timedelta(0)
    for number, wait in enumerate(waits):
        assert number * NEARLY <= wait <= number * HOUR


def test_hosts_and_stages_have_slots_of_their_own(rates: RateStore) -> None:
    """A limit is to one host, by the workers of one stage."""
    rates.reserve(SHOP, STAGE, spacing=HOUR, patience=DAY)
    assert rates.reserve(SHOP, "hotel-rates", spacing=HOUR, patience=DAY) == timedelta(0)
    assert rates.reserve("api.example.com:80", STAGE, spacing=HOUR, patience=DAY) == timedelta(0)


def test_a_queue_that_is_too_long_takes_nobody(rates: RateStore) -> None:
    """Who is refused holds no slot: the next who is more patient gets it."""
    for _ in range(2):
        rates.reserve(SHOP, STAGE, spacing=HOUR, patience=DAY)
    for _ in range(3):
        with pytest.raises(RateLimited) as refused:
            rates.reserve(SHOP, STAGE, spacing=HOUR, patience=HOUR)
        assert refused.value.retry_after is not None
        assert HOUR.total_seconds() < refused.value.retry_after <= 2 * HOUR.total_seconds()
    assert HOUR < rates.reserve(SHOP, STAGE, spacing=HOUR, patience=DAY) <= 2 * HOUR


def test_slots_that_have_passed_are_no_credit(rates: RateStore) -> None:
    """After a pause the next slot is now, and the one after it is a whole spacing off."""
    for _ in range(3):
        rates.reserve(SHOP, STAGE, spacing=timedelta(microseconds=1), patience=DAY)
    rates.reserve(SHOP, STAGE, spacing=HOUR, patience=DAY)
    assert NEARLY < rates.reserve(SHOP, STAGE, spacing=HOUR, patience=DAY) <= HOUR + timedelta(microseconds=3)


def test_out_of_reach_is_not_without_limit(rates_away: RateStore) -> None:
    """Who cannot ask for a slot gets none."""
    with pytest.raises(StateUnavailable):
        rates_away.reserve(SHOP, STAGE, spacing=HOUR, patience=DAY)
