"""The breaker's rules: when it opens, what it lets through, and what counts as a failure."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import (
    AnswerNotJson,
    CursorExpired,
    PaginationLimit,
    RateLimited,
    SluiceError,
    StrayAddress,
    SupplierRefused,
    SupplierResting,
    SupplierUnavailable,
)
from sluice.guard.breaker import has_failed_too_often, is_failure, state_of
from sluice.model.breaker import Breaker, BreakerState
from sluice.model.stage import BreakerPolicy
from tests.support.nouns import NOW
from tests.unit.guard.test_breaker import Work


@given(
    tries=st.integers(0, 2000),
    failures=st.integers(0, 2000),
    rate=st.decimals(min_value=Decimal("0.0001"), max_value=1, places=4),
)
def test_it_opens_exactly_from_the_declared_share_on(tries: int, failures: int, rate: Decimal) -> None:
    """Without rounding; never for want of failures, never for fewer than five tries; more failures never make it better."""
    failures = min(failures, tries)
    policy = BreakerPolicy(failure_rate=rate)
    breaker = Breaker(at=NOW, tries=tries, failures=failures)
    opens = has_failed_too_often(breaker, policy)
    assert opens == (tries >= 5 and failures * 10_000 >= int(rate * 10_000) * tries)
    if opens:
        assert failures > 0
        assert has_failed_too_often(breaker.model_copy(update={"failures": tries}), policy)


@given(st.none() | st.timedeltas(min_value=-timedelta(days=1), max_value=timedelta(days=1)))
def test_what_it_lets_through_follows_from_the_rest_alone(rest: timedelta | None) -> None:
    """None: all; not over: none; over: one. The very instant it is over belongs to the one."""
    breaker = Breaker(at=NOW, resting_until=None if rest is None else NOW + rest)
    expected = BreakerState.CLOSED if rest is None else BreakerState.OPEN if rest > timedelta(0) else BreakerState.HALF_OPEN
    assert state_of(breaker) is expected


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (SupplierUnavailable("nothing was received for 60 s"), True),
        (SupplierUnavailable("the supplier cannot be connected to"), True),
        (SupplierUnavailable(status=500), True),
        (RateLimited(status=503, retry_after=1), True),
        (RateLimited(status=429), False),
        (RateLimited("too long a queue for a slot", retry_after=900), False),
        *[(SupplierRefused(status=status), False) for status in (400, 401, 403, 404, 410)],
        (CursorExpired(status=410), False),
        (PaginationLimit(status=400), False),
        (StrayAddress(), False),
        (AnswerNotJson(), False),
    ],
)
def test_what_is_a_failure_of_the_supplier(error: SluiceError, is_one: bool) -> None:
    """Silence, broken connections and server errors are; refusals, garbage and a wish for manners are answers."""
    assert is_failure(error) is is_one
    work = Work()

    def call() -> str:
        raise error

    ended = work.try_it(work.worker(), call, times=9)
    assert ended is (SupplierResting if is_one else type(error))
