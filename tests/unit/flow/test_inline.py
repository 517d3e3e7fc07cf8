"""The inline runner: what stops a run and what does not, who is waited for, and what an interrupted run leaves."""

from collections.abc import Callable, Iterator
from datetime import datetime

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import Fenced, FlightTaken, StateUnavailable, SupplierRefused, TargetMismatch
from sluice.flow.gate import decide
from sluice.flow.inline import resume_inline, run_inline
from sluice.model.base import ShardKey
from sluice.model.lifecycle import RunStatus, ShardStatus, Step
from sluice.model.review import Choice
from sluice.model.run import Mode, Origin, ReviewMode, Run, RunRequest
from sluice.ports import Page, PageRequest
from tests.support.nouns import a_decision
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.source import RegionalSource
from tests.unit.flow.workshop import JUNE, MAY, Workshop, page, small_chunks, sync_spec

Answers = tuple[Page | BaseException, ...]

REFUSED = SupplierRefused("403 Forbidden")
IN_NORTH = (page(1, ("a", MAY)), page(2, ("b", JUNE), is_last=True))
IN_SOUTH = (page(1, ("c", MAY), is_last=True),)


class Bench:
    """A workshop with a table, and a supplier of two regions."""

    def __init__(self, north: Answers = IN_NORTH, south: Answers = IN_SOUTH) -> None:
        policy = {"first_load": "auto-approve", "auto_approve": {"created": "100%"}}
        self.workshop = Workshop(spec=sync_spec(review=policy), policy=small_chunks())
        self.target = self.workshop.equip()
        self.source = RegionalSource(north=north, south=south)
        self.workshop.supplier = self.source

    def run(self, review: ReviewMode = ReviewMode.POLICY) -> Run:
        """Run it."""
        return run_inline(self.workshop.services, self.request(review))

    def request(self, review: ReviewMode = ReviewMode.POLICY) -> RunRequest:
        """What is asked for."""
        return RunRequest(sync="hotels", mode=Mode.FULL, review=review, origin=Origin())

    def newest(self) -> Run:
        """The newest run."""
        return list(self.workshop.memory.runs.values())[-1]

    def statuses(self, run: Run) -> dict[str, ShardStatus]:
        """How its shards are doing."""
        return {shard.key: shard.status for shard in self.workshop.services.shards.of(run.id)}


def test_a_run_from_its_request_to_its_end() -> None:
    """Every step in order, and what was approved is in the table."""
    bench = Bench()
    with capture_logs() as logs:
        run = bench.run()
    assert (run.status, run.step, run.failure) == (RunStatus.SUCCEEDED, Step.SETTLE, None)
    assert sorted(bench.target.rows) == ["a", "b", "c"]
    assert logs[0]["event"] == log_events.RUN_ADMITTED
    assert logs[-2]["event"] == log_events.RUN_SETTLED


def test_a_failing_shard_does_not_stop_the_others() -> None:
    """They are published, the run is partial, and asking again brings the rest from where it stopped."""
    bench = Bench(north=(IN_NORTH[0], REFUSED, IN_NORTH[1]))
    first = bench.run()
    assert first.status is RunStatus.PARTIAL
    assert first.failure is not None
    assert "shard north: SupplierRefused" in first.failure.message
    assert bench.statuses(first) == {"north": ShardStatus.FAILED, "south": ShardStatus.SUCCEEDED}
    assert sorted(bench.target.rows) == ["c"]

    second = bench.run()
    assert second.status is RunStatus.SUCCEEDED
    assert second.id != first.id
    assert sorted(bench.target.rows) == ["a", "b", "c"]
    assert [request.cursor for request in bench.source.regions["north"].requests] == [None, 1]
    assert len(bench.source.regions["south"].requests) == 1


def test_no_shard_comes_in() -> None:
    """The run is settled by what its shards say."""
    bench = Bench(north=(REFUSED,), south=(REFUSED,))
    run = bench.run()
    assert run.status is RunStatus.FAILED
    assert run.failure is not None
    assert run.failure.message == "shard north, and 1 more: SupplierRefused: 403 Forbidden"


def test_what_concerns_the_whole_run_stops_it() -> None:
    """Unlike a shard's own trouble it is raised, and the shards behind it are not begun; the run is settled."""
    bench = Bench(north=(StateUnavailable("gone"),))
    with pytest.raises(StateUnavailable):
        bench.run()
    assert bench.source.regions["south"].requests == []
    assert (bench.newest().status, bench.workshop.memory.leases) == (RunStatus.FAILED, {})


def test_a_table_that_does_not_fit() -> None:
    """It is raised, and the run has failed by it."""
    bench = Bench()
    bench.target.trouble = TargetMismatch("hotels.id is integer, not text")
    with pytest.raises(TargetMismatch):
        bench.run()
    failure = bench.newest().failure
    assert failure is not None
    assert failure.error == "TargetMismatch"


def test_a_dead_holder_of_the_flight_is_waited_for() -> None:
    """Until its lease has run out: then its run is taken over, with what it had fetched."""
    bench = Bench()
    services = bench.workshop.services
    dead = bench.workshop.begin(mode=Mode.FULL)
    began, lease = services.clock.now(), bench.workshop.policy.lease_ttl
    with capture_logs() as logs:
        run = bench.run()
    assert run.status is RunStatus.SUCCEEDED
    assert services.clock.now() == began + lease
    awaited = [entry for entry in logs if entry["event"] == log_events.FLIGHT_AWAITED]
    assert [(entry["owner"], entry["expires_at"]) for entry in awaited] == [(dead.id, str(began + lease))]
    failure = services.runs.get(dead.id).failure
    assert failure is not None
    assert failure.error == "TakenOver"


class MeanwhileClock(FakeClock):
    """A clock during whose waits something happens."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[datetime] = []
        self.happens: Callable[[], object] = lambda: None

    def wait_until(self, instant: datetime) -> None:
        super().wait_until(instant)
        self.waits.append(instant)
        self.happens()


def test_a_living_holder_of_the_flight_is_waited_for_once() -> None:
    """One that has renewed its lease meanwhile is alive, and keeps its request."""
    bench = Bench()
    clock = bench.workshop.memory.clock = MeanwhileClock()
    living = bench.workshop.begin(mode=Mode.FULL)
    lease = bench.workshop.policy.lease_ttl
    clock.happens = lambda: bench.workshop.services.runs.enter(living.id, Step.FETCH, lease)
    with pytest.raises(FlightTaken) as taken:
        bench.run()
    assert taken.value.facts["owner"] == living.id
    assert clock.waits == [living.created_at + lease]
    assert list(bench.workshop.memory.runs) == [living.id]


def test_a_run_that_was_stopped_from_the_keyboard_can_be_gone_on_with() -> None:
    """It has failed and holds no flight, so the next one need not wait, and begins behind the last checkpoint."""
    bench = Bench(north=(IN_NORTH[0], KeyboardInterrupt(), IN_NORTH[1]))
    began = bench.workshop.memory.clock.now()
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    stopped = bench.newest()
    assert stopped.failure is not None
    assert (stopped.status, stopped.failure.error) == (RunStatus.FAILED, "Interrupted")
    assert bench.workshop.memory.leases == {}

    assert bench.run().status is RunStatus.SUCCEEDED
    assert [request.cursor for request in bench.source.regions["north"].requests] == [None, 1]
    assert bench.workshop.memory.clock.now() == began
    assert sorted(bench.target.rows) == ["a", "b", "c"]


class OvertakenSource:
    """While its first page is under way, somebody else claims the shard."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def pages(self, request: PageRequest) -> Iterator[Page]:
        self._bench.workshop.services.shards.claim(self._bench.newest().id, ShardKey(request.shard["region"]))
        yield IN_NORTH[1]


def test_a_run_that_somebody_has_overtaken_is_left_to_them() -> None:
    """It is neither settled nor gone on with."""
    bench = Bench()
    bench.workshop.supplier = OvertakenSource(bench)
    with pytest.raises(Fenced):
        bench.run()
    run = bench.newest()
    assert run.status is RunStatus.RUNNING
    assert bench.statuses(run) == {"north": ShardStatus.RUNNING, "south": ShardStatus.PENDING}


@pytest.mark.parametrize(
    ("choice", "status", "held"),
    [(Choice.APPROVE, RunStatus.SUCCEEDED, ["a", "b", "c"]), (Choice.REJECT, RunStatus.CANCELLED, [])],
)
def test_a_run_that_waits_for_a_person(choice: Choice, status: RunStatus, held: list[str]) -> None:
    """It ends where the person is asked, without a flight, and goes on with the answer."""
    bench = Bench()
    waiting = bench.run(ReviewMode.ALWAYS)
    assert (waiting.status, bench.target.rows, bench.workshop.memory.leases) == (RunStatus.WAITING, {}, {})
    services = bench.workshop.services
    (asked,) = services.reviews.waiting("hotels")
    decide(services, asked.id, a_decision(choice))
    assert resume_inline(services, waiting.id).status is status
    assert sorted(bench.target.rows) == held
