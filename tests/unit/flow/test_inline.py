"""The inline runner: what stops a run and what does not, who is waited for, and what an interrupted run leaves."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import Fenced, FlightTaken, StateUnavailable, SupplierRefused, TargetMismatch
from sluice.flow.gate import decide
from sluice.flow.inline import resume_inline, run_inline
from sluice.model.base import ShardKey
from sluice.model.lifecycle import RunEvent, RunStatus, ShardStatus, Step
from sluice.model.review import Choice
from sluice.model.run import Failure, Mode, Origin, ReviewMode, Run, RunRequest
from sluice.model.stage import StagePolicy
from sluice.ports import Page, PageRequest
from tests.support.nouns import a_decision
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.source import RegionalSource
from tests.unit.fakes.watermark_store import MemoryWatermarkStore
from tests.unit.flow.workshop import JUNE, MAY, RUN, Workshop, page, small_chunks, sync_spec

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


class DeniedWatermarks(MemoryWatermarkStore):
    """A store that reads, and takes nothing."""

    def advance(self, sync: str, marks: Mapping[ShardKey, str], run: Run) -> None:
        raise StateUnavailable(f"{sync}: {', '.join(marks)} of run {run.id} cannot be written")


def test_what_stops_a_run_behind_its_publication() -> None:
    """It has failed, though all is in the table: the next one publishes nothing and finishes what was left."""
    bench = Bench()
    services = bench.workshop.services
    with pytest.raises(StateUnavailable):
        run_inline(replace(services, watermarks=DeniedWatermarks(bench.workshop.memory)), bench.request())
    stopped = bench.newest()
    assert stopped.failure is not None
    assert (stopped.status, stopped.failure.error) == (RunStatus.FAILED, "StateUnavailable")
    assert (sorted(bench.target.rows), bench.workshop.memory.leases) == (["a", "b", "c"], {})

    assert bench.run().status is RunStatus.SUCCEEDED
    assert services.watermarks.of("hotels") == {"north": JUNE, "south": MAY}
    assert len(bench.target.ledger.publications("hotels", 10)) == 1


def test_a_table_that_does_not_fit() -> None:
    """It is raised, and the run has failed by it."""
    bench = Bench()
    bench.target.trouble = TargetMismatch("hotels.id is integer, not text")
    with pytest.raises(TargetMismatch):
        bench.run()
    failure = bench.newest().failure
    assert failure is not None
    assert failure.error == "TargetMismatch"


class MeanwhileClock(FakeClock):
    """A clock during whose waits something happens: each thing in its turn, the last one over and over."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[timedelta] = []
        self.happens: list[Callable[[], object]] = []

    def wait(self, span: timedelta) -> None:
        super().wait(span)
        self.waits.append(span)
        if self.happens:
            (self.happens.pop(0) if len(self.happens) > 1 else self.happens[0])()


class Followed(Bench):
    """A bench on which another run of the request is at work."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = self.workshop.memory.clock = MeanwhileClock()
        self.owner = self.workshop.begin(mode=Mode.FULL)
        self.began = self.clock.now()

    def renew(self) -> None:
        """Let the owner show that it lives."""
        self.workshop.services.runs.renew(self.workshop.memory.runs[self.owner.id], self.workshop.policy.lease_ttl)

    def end(self, event: RunEvent, failure: Failure | None = None) -> None:
        """Let the owner end."""
        services = self.workshop.services
        services.runs.end(services.runs.enter(self.owner.id, Step.SETTLE, self.workshop.policy.lease_ttl), event, failure)

    @property
    def asked(self) -> int:
        """How often the supplier was asked."""
        return sum(len(region.requests) for region in self.source.regions.values())


@pytest.mark.parametrize(
    ("event", "status", "failure"),
    [
        (RunEvent.SUCCEED, RunStatus.SUCCEEDED, None),
        (RunEvent.END_PARTIAL, RunStatus.PARTIAL, Failure(error="ShardsFailed", message="shard north")),
        (RunEvent.CANCEL, RunStatus.CANCELLED, None),
    ],
)
def test_a_run_whose_request_is_worked_on_follows(event: RunEvent, status: RunStatus, failure: Failure | None) -> None:
    """It looks at every heartbeat, says so once, asks the supplier for nothing, and ends as its owner did."""
    bench = Followed()
    bench.clock.happens = [bench.renew, bench.renew, lambda: bench.end(event, failure)]
    with capture_logs() as logs:
        run = bench.run()
    assert (run.status, run.failure, run.follows, run.step) == (status, failure, bench.owner.id, Step.ADMIT)
    assert bench.clock.waits == [bench.workshop.policy.heartbeat] * 3
    awaited = [entry for entry in logs if entry["event"] == log_events.FLIGHT_AWAITED]
    assert [(entry["run"], entry["owner"]) for entry in awaited] == [(run.id, bench.owner.id)]
    assert bench.asked == 0


def test_a_follower_takes_over_from_an_owner_that_dies() -> None:
    """As soon as the lease has run out, from what was fetched by then."""
    bench = Followed()
    run = bench.run()
    assert (run.status, run.follows) == (RunStatus.SUCCEEDED, None)
    assert bench.clock.now() == bench.began + bench.workshop.policy.lease_ttl
    failure = bench.workshop.services.runs.get(bench.owner.id).failure
    assert failure is not None
    assert failure.error == "TakenOver"
    assert sorted(bench.target.rows) == ["a", "b", "c"]


def test_a_follower_does_not_wait_for_ever() -> None:
    """Its stage says how long; the owner is none the worse for it."""
    bench = Followed()
    bench.workshop.policy = StagePolicy(wait_timeout=timedelta(minutes=1))
    bench.clock.happens = [bench.renew]
    run = bench.run()
    assert run.failure is not None
    assert (run.status, run.failure.error, run.follows) == (RunStatus.FAILED, "WaitedInVain", bench.owner.id)
    assert bench.workshop.memory.leases[run.request_key].owner == bench.owner.id


def test_a_follower_that_is_stopped_from_the_keyboard() -> None:
    """It has failed; the owner works on."""

    def stop() -> None:
        raise KeyboardInterrupt

    bench = Followed()
    bench.clock.happens = [bench.renew, stop]
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    stopped = bench.newest()
    assert stopped.failure is not None
    assert (stopped.status, stopped.failure.error, stopped.follows) == (RunStatus.FAILED, "Interrupted", bench.owner.id)
    assert bench.workshop.services.runs.get(bench.owner.id) == bench.owner
    assert bench.workshop.memory.leases[stopped.request_key].owner == bench.owner.id


def test_a_run_that_is_resumed_while_another_one_works() -> None:
    """It has to wait, and nothing is lost: it waits with its approval, as before."""
    bench = Bench()
    services = bench.workshop.services
    waiting = bench.run(ReviewMode.ALWAYS)
    (asked,) = services.reviews.waiting("hotels")
    decide(services, asked.id, a_decision(Choice.APPROVE))
    other = services.runs.open(waiting.model_copy(update={"id": RUN, "status": RunStatus.PENDING}), bench.workshop.policy)
    with pytest.raises(FlightTaken):
        resume_inline(services, waiting.id)
    assert services.runs.get(waiting.id) == waiting
    services.runs.end(other, RunEvent.CANCEL)
    assert resume_inline(services, waiting.id).status is RunStatus.SUCCEEDED


def test_a_run_with_force_waits_and_then_works_itself() -> None:
    """What the other one has brought does not count, nor what it has fetched."""
    bench = Followed()
    bench.clock.happens = [lambda: bench.end(RunEvent.SUCCEED)]
    run = run_inline(bench.workshop.services, bench.request().model_copy(update={"force": True}))
    assert (run.status, run.follows) == (RunStatus.SUCCEEDED, None)
    assert bench.asked > 0


def test_a_result_is_replayed_to_whoever_asks_again_in_time() -> None:
    """The supplier is not asked again, and nothing is published twice."""
    bench = Bench()
    bench.workshop.policy = bench.workshop.policy.model_copy(update={"result_ttl": timedelta(hours=1)})
    first, asked = bench.run(), len(bench.source.regions["north"].requests)
    replay = bench.run()
    assert (replay.status, replay.follows) == (RunStatus.SUCCEEDED, first.id)
    assert len(bench.source.regions["north"].requests) == asked
    bench.workshop.memory.clock.move(timedelta(hours=1))
    assert bench.run().follows is None


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
