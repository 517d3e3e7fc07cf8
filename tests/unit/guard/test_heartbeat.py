"""A heartbeat proves a living process; what it makes of one that makes no progress, and of a lease that is lost."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import Fenced, NoProgress, SluiceError, StateUnavailable
from sluice.guard.heartbeat import Heartbeat
from sluice.model.stage import StagePolicy
from tests.unit.fakes.clock import FakeClock

WHO = {"stage": "hotel-content", "key": "hotel-content:default:hotels:1:abc", "owner": "run-1", "token": 7, "step": "fetch"}
POLICY = StagePolicy(lease_ttl="30s", heartbeat="5s", no_progress_timeout="10m")


@dataclass
class Lease:
    """Keeps what it was renewed for, or raises."""

    trouble: SluiceError | None = None
    renewals: list[timedelta] = field(default_factory=list)

    def renew(self, ttl: timedelta) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.renewals.append(ttl)


def heartbeat(lease: Lease, clock: FakeClock, policy: StagePolicy = POLICY) -> Heartbeat:
    return Heartbeat(lease.renew, policy, clock, WHO)


def test_each_beat_renews_the_lease_for_its_whole_time() -> None:
    """However often it beats, as long as the work moves."""
    lease, clock = Lease(), FakeClock()
    pulse = heartbeat(lease, clock)
    for _ in range(5):
        clock.move(timedelta(minutes=9))
        pulse.beat()
        pulse.moved()
    assert lease.renewals == [timedelta(seconds=30)] * 5
    assert not pulse.stopped.done()


def test_work_that_stands_still_is_given_up() -> None:
    """The lease is renewed no more, the reason is logged with all that names the lease, and the worker hears of it."""
    lease, clock = Lease(), FakeClock()
    pulse = heartbeat(lease, clock)
    clock.move(timedelta(minutes=10))
    pulse.beat()
    assert len(lease.renewals) == 1
    clock.move(timedelta(seconds=1))
    with capture_logs() as logs:
        pulse.beat()
    message = "no progress for 10m: the request is given up for another worker to take"
    told = {"event": log_events.STOP_RENEW, "log_level": "warning", "reason": "NO_PROGRESS", "message": message}
    assert (logs, len(lease.renewals)) == ([told | WHO], 1)
    with pytest.raises(NoProgress, match="no progress for 10m"):
        pulse.moved()
    with pytest.raises(NoProgress):
        pulse.stopped.result(timeout=0)


def test_stages_differ_in_how_long_work_may_stand_still() -> None:
    """What one stage gives up, another still waits for."""
    clock, leases = FakeClock(), (Lease(), Lease())
    short, long = (
        heartbeat(lease, clock, StagePolicy(no_progress_timeout=limit))
        for lease, limit in zip(leases, ("2m", "20m"), strict=True)
    )
    clock.move(timedelta(minutes=3))
    short.beat()
    long.beat()
    assert (short.stopped.done(), long.stopped.done()) == (True, False)
    assert [len(lease.renewals) for lease in leases] == [0, 1]


def test_a_clock_that_is_set_back_does_not_hide_a_standstill() -> None:
    """Spans are measured by a clock that nobody sets back."""
    clock = FakeClock()
    pulse = heartbeat(Lease(), clock)
    clock.turn_back(timedelta(days=1))
    clock.move(timedelta(minutes=11))
    pulse.beat()
    assert pulse.stopped.done()


def test_a_lease_that_somebody_else_has_stops_the_worker() -> None:
    """It is told at the next sign of progress, before it writes anything."""
    lease = Lease(trouble=Fenced("run run-2 works on the request of run run-1 now"))
    pulse = heartbeat(lease, FakeClock())
    with capture_logs() as logs:
        pulse.beat()
    assert [(entry["event"], entry["reason"]) for entry in logs] == [(log_events.STOP_RENEW, "FENCED")]
    with pytest.raises(Fenced, match="run-2 works on"):
        pulse.moved()


def test_a_store_that_cannot_be_reached_is_tried_again() -> None:
    """One renewal that got lost is none the worker stops for; the lease outlives two."""
    lease = Lease(trouble=StateUnavailable("connection refused"))
    pulse = heartbeat(lease, FakeClock())
    with capture_logs() as logs:
        pulse.beat()
    assert [(entry["event"], entry["error"]) for entry in logs] == [(log_events.RENEW_FAILED, "StateUnavailable")]
    lease.trouble = None
    pulse.beat()
    pulse.moved()
    assert len(lease.renewals) == 1


@pytest.mark.parametrize(("interval", "beats"), [("0.01s", True), ("1h", False)])
def test_stages_differ_in_how_often_their_workers_give_a_sign(interval: str, beats: bool) -> None:
    """The thread of one beats while that of the other still waits; both end with the block."""
    lease = Lease(trouble=Fenced("taken"))
    policy = StagePolicy(lease_ttl="4h", heartbeat=interval)
    with heartbeat(lease, FakeClock(), policy) as pulse:
        if beats:
            assert isinstance(pulse.stopped.exception(timeout=30), Fenced)
    assert pulse.stopped.done() is beats


@pytest.mark.parametrize(("gap", "renewed"), [(timedelta(minutes=10), [timedelta(seconds=630)]), (timedelta(0), [])])
def test_the_lease_outlives_the_wait_for_the_next_task(gap: timedelta, renewed: list[timedelta]) -> None:
    """A run that Airflow lets lie between two tasks is not taken for dead; nobody else waits longer for a dead one."""
    lease = Lease()
    with Heartbeat(lease.renew, POLICY, FakeClock(), WHO, gap):
        pass
    assert lease.renewals == renewed


def test_a_lease_that_was_given_up_is_not_kept_for_the_next_task() -> None:
    """Whoever stopped has stopped."""
    lease = Lease(trouble=Fenced("taken"))
    with Heartbeat(lease.renew, POLICY, FakeClock(), WHO, timedelta(minutes=10)) as pulse:
        pulse.beat()
        lease.trouble = None
    assert lease.renewals == []


def test_whoever_has_the_flight_after_the_work_may_keep_it() -> None:
    """A run that parked or ended is no worker that was stopped, and nothing is told of it."""
    lease = Lease(trouble=Fenced("run run-2 works on it now"))
    with capture_logs() as logs, Heartbeat(lease.renew, POLICY, FakeClock(), WHO, timedelta(minutes=10)) as pulse:
        pass
    assert (logs, pulse.stopped.done()) == ([], False)
