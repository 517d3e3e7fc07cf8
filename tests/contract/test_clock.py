"""The contract of `Clock`."""

from datetime import timedelta

import pytest

from sluice.adapters.clock import SystemClock
from sluice.ports import Clock
from tests.unit.fakes.clock import FakeClock


@pytest.fixture(params=[FakeClock, SystemClock])
def clock(request: pytest.FixtureRequest) -> Clock:
    """A clock of either kind."""
    made: Clock = request.param()
    return made


def test_now_is_aware_and_in_utc(clock: Clock) -> None:
    """An instant without a zone could mean anything."""
    assert clock.now().utcoffset() == timedelta(0)


def test_a_span_is_waited_for_and_measured(clock: Clock) -> None:
    """What has elapsed grows by at least what was waited for."""
    began = clock.elapsed()
    clock.wait(timedelta(milliseconds=1))
    clock.wait(timedelta(seconds=-1))
    assert clock.elapsed() >= began + 0.001
