"""The contract of `RunStore`."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from sluice.errors import Fenced, FlightTaken, IllegalTransition, NotFound
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Failure, Mode, Origin, Run, Window
from sluice.model.stage import StagePolicy
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, NOW, OVER, POLICY, a_run

FAILURE = Failure(error="AnswerNotJson", message="page 3 is HTML")
ENDINGS = [RunEvent.SUCCEED, RunEvent.END_PARTIAL, RunEvent.FAIL, RunEvent.CANCEL]


def test_an_opened_run_is_pending_with_a_token_and_reads_back_whole(stores: Stores) -> None:
    """What was opened is what is read, field by field."""
    asked = a_run(
        mode=Mode.INCREMENTAL,
        window=Window(start=NOW - MINUTE, end=NOW),
        shards=(ShardKey("paris"), ShardKey("rome")),
        origin=Origin(dag_id="sluice_hotels", dag_run_id="manual__1"),
    )
    opened = stores.runs.open(asked, POLICY)
    assert opened == asked.model_copy(update={"token": opened.token})
    assert opened.token > 0
    assert stores.runs.get(asked.id) == opened


def test_opening_twice_returns_the_run_as_it_is(stores: Stores) -> None:
    """A task that is tried again finds its run, however far it is."""
    stores.runs.open(a_run(), POLICY)
    entered = stores.runs.enter(RunId("run-1"), Step.SHARD, MINUTE)
    assert stores.runs.open(a_run(), POLICY) == entered


def test_a_step_does_not_enter_while_another_run_is_alive(stores: Stores) -> None:
    """Who has the flight, and until when, is told; the run stays as it is."""
    stores.runs.open(a_run(), POLICY)
    waiting = stores.runs.open(a_run("run-2"), POLICY)
    with pytest.raises(FlightTaken) as caught:
        stores.runs.enter(waiting.id, Step.SHARD, MINUTE)
    assert caught.value.facts["owner"] == "run-1"
    assert caught.value.facts["expires_at"].utcoffset() is not None
    assert stores.runs.get(waiting.id) == waiting


def test_runs_of_different_requests_do_not_meet(stores: Stores) -> None:
    """A flight is of one request key alone."""
    stores.runs.open(a_run(), POLICY)
    assert stores.runs.open(a_run("run-2", request_key="another"), POLICY).status is RunStatus.PENDING


def test_of_two_that_open_at_once_one_wins(stores: Stores) -> None:
    """Two workers that ask for the same at the same instant: one has the flight, and the other follows it."""
    start = Barrier(2)

    def attempt(name: str) -> Run:
        start.wait(timeout=30)
        return stores.runs.open(a_run(name), POLICY)

    with ThreadPoolExecutor(2) as workers:
        results = list(workers.map(attempt, ["run-1", "run-2"]))
    (owner,) = [run for run in results if run.follows is None]
    (follower,) = [run for run in results if run.follows is not None]
    assert (owner.status, follower.status, follower.follows) == (RunStatus.PENDING, RunStatus.WAITING, owner.id)


def test_one_run_opened_by_two_at_once_is_one_run(stores: Stores) -> None:
    """Two processes that open the same run id both get the one row."""
    start = Barrier(2)

    def attempt(_: int) -> Run:
        start.wait(timeout=30)
        return stores.runs.open(a_run(), POLICY)

    with ThreadPoolExecutor(2) as workers:
        first, second = workers.map(attempt, range(2))
    assert first == second


def test_an_unknown_run_is_not_found_by_name(stores: Stores) -> None:
    """Missing is an answer, and names what is missing."""
    for ask in (stores.runs.get, lambda run: stores.runs.enter(run, Step.SHARD, MINUTE)):
        with pytest.raises(NotFound, match="run-9"):
            ask(RunId("run-9"))
    with pytest.raises(NotFound, match="run-9"):
        stores.runs.end(a_run("run-9"), RunEvent.FAIL)


def test_entering_moves_the_run_and_fences_who_was_in_before(stores: Stores) -> None:
    """The newest to enter owns the run; who entered before can no longer end it."""
    stores.runs.open(a_run(), POLICY)
    earlier = stores.runs.enter(RunId("run-1"), Step.REVIEW, MINUTE)
    later = stores.runs.enter(RunId("run-1"), Step.REVIEW, MINUTE)
    assert (later.status, later.step) == (RunStatus.RUNNING, Step.REVIEW)
    assert later.token > earlier.token
    with pytest.raises(Fenced):
        stores.runs.end(earlier, RunEvent.SUCCEED)
    assert stores.runs.get(RunId("run-1")) == later


@pytest.mark.parametrize("event", ENDINGS)
def test_an_ending_is_dated_and_frees_the_flight(stores: Stores, event: RunEvent) -> None:
    """A run that ended holds nobody up."""
    stores.runs.open(a_run(), POLICY)
    entered = stores.runs.enter(RunId("run-1"), Step.SETTLE, MINUTE)
    ended = stores.runs.end(entered, event, FAILURE if event is RunEvent.FAIL else None)
    assert ended.finished_at is not None
    assert ended.failure == (FAILURE if event is RunEvent.FAIL else None)
    assert stores.runs.get(RunId("run-1")) == ended
    assert stores.runs.open(a_run("run-2"), POLICY).status is RunStatus.PENDING


@pytest.mark.parametrize("days", [90, 400])
def test_an_ending_says_until_when_the_run_is_kept(stores: Stores, days: int) -> None:
    """`state_ttl`: as long as its stage has it; a run that goes on, or does so again, is kept in any case."""
    policy = StagePolicy.model_validate({"state_ttl": f"{days}d"})
    assert stores.runs.open(a_run(), policy).expires_at is None
    ended = stores.runs.end(stores.runs.enter(RunId("run-1"), Step.SETTLE, MINUTE), RunEvent.FAIL)
    assert ended.finished_at is not None
    assert ended.expires_at == ended.finished_at + timedelta(days=days)
    assert stores.runs.enter(RunId("run-1"), Step.FETCH, MINUTE).expires_at is None


def test_a_parked_run_waits_without_holding_the_flight(stores: Stores) -> None:
    """Tomorrow's run is not held up by a review nobody has answered, and does not end the run that waits."""
    stores.runs.open(a_run(), POLICY)
    waiting = stores.runs.end(stores.runs.enter(RunId("run-1"), Step.GATE, MINUTE), RunEvent.PARK)
    assert (waiting.status, waiting.finished_at) == (RunStatus.WAITING, None)
    stores.runs.open(a_run("run-2"), POLICY)
    assert stores.runs.get(RunId("run-1")) == waiting


def test_a_parked_run_comes_back_only_when_the_flight_is_free(stores: Stores) -> None:
    """One at a time works on a request: an answered review waits for the run that flies meanwhile."""
    stores.runs.open(a_run(), POLICY)
    stores.runs.end(stores.runs.enter(RunId("run-1"), Step.GATE, MINUTE), RunEvent.PARK)
    second = stores.runs.open(a_run("run-2"), POLICY)
    with pytest.raises(FlightTaken) as caught:
        stores.runs.enter(RunId("run-1"), Step.PUBLISH, MINUTE)
    assert caught.value.facts["owner"] == "run-2"
    stores.runs.end(second, RunEvent.CANCEL)
    assert stores.runs.enter(RunId("run-1"), Step.PUBLISH, MINUTE).status is RunStatus.RUNNING


@pytest.mark.parametrize("event", [RunEvent.END_PARTIAL, RunEvent.FAIL, RunEvent.CANCEL])
def test_a_run_that_did_not_succeed_is_reopened_by_entering(stores: Stores, event: RunEvent) -> None:
    """Clearing a task of an ended run lets it go on: no longer finished, its failure forgotten."""
    stores.runs.open(a_run(), POLICY)
    stores.runs.end(stores.runs.enter(RunId("run-1"), Step.SETTLE, MINUTE), event, FAILURE)
    reopened = stores.runs.enter(RunId("run-1"), Step.FETCH, MINUTE)
    assert (reopened.status, reopened.finished_at, reopened.failure) == (RunStatus.RUNNING, None, None)


def test_a_run_that_succeeded_is_over(stores: Stores) -> None:
    """Entering it changes nothing, and takes no flight."""
    stores.runs.open(a_run(), POLICY)
    ended = stores.runs.end(stores.runs.enter(RunId("run-1"), Step.SETTLE, MINUTE), RunEvent.SUCCEED)
    assert stores.runs.enter(RunId("run-1"), Step.FETCH, MINUTE) == ended
    assert stores.runs.open(a_run("run-2"), POLICY).status is RunStatus.PENDING


@pytest.mark.parametrize("event", [RunEvent.PARK, RunEvent.SUCCEED, RunEvent.END_PARTIAL])
def test_an_illegal_event_leaves_the_run_as_it_is(stores: Stores, event: RunEvent) -> None:
    """A run that nobody has entered cannot park, succeed or end; the error names what may happen; the flight is kept."""
    opened = stores.runs.open(a_run(), POLICY)
    with pytest.raises(IllegalTransition, match="allowed: cancel, enter, fail"):
        stores.runs.end(opened, event)
    assert stores.runs.get(RunId("run-1")) == opened
    assert stores.runs.open(a_run("run-2"), POLICY).follows == opened.id


def test_recent_runs_come_newest_first_through_the_filters(stores: Stores) -> None:
    """Sync, statuses and limit each narrow the list; admission orders it, not anybody's clock."""
    stores.runs.open(a_run("run-1", request_key="1"), POLICY)
    stores.runs.open(a_run("run-2", request_key="2", sync="rates", created_at=NOW - MINUTE), POLICY)
    stores.runs.open(a_run("run-3", request_key="3", created_at=NOW - MINUTE), POLICY)
    stores.runs.enter(RunId("run-3"), Step.SHARD, MINUTE)

    def names(sync: str | None, statuses: list[RunStatus], limit: int = 10) -> list[str]:
        return [run.id for run in stores.runs.recent(sync, statuses, limit)]

    assert names(None, []) == ["run-3", "run-2", "run-1"]
    assert names("hotels", []) == ["run-3", "run-1"]
    assert names(None, [RunStatus.PENDING]) == ["run-2", "run-1"]
    assert names("hotels", [RunStatus.PENDING, RunStatus.RUNNING], limit=1) == ["run-3"]


def test_a_failure_message_may_hold_what_a_supplier_sent(stores: Stores) -> None:
    """A NUL byte in an error must not keep the run from ending."""
    opened = stores.runs.open(a_run(), POLICY)
    ended = stores.runs.end(opened, RunEvent.FAIL, Failure(error="AnswerNotJson", message="it begins with \x00\ud800"))
    assert ended.status is RunStatus.FAILED
    assert ended.failure is not None
    assert ended.failure.message.startswith("it begins with ")


def test_a_lease_that_ran_out_is_free_to_take(stores: Stores) -> None:
    """The run of a dead worker is ended, with who took over, and its token is spent."""
    stores.runs.open(a_run(), POLICY)
    dead = stores.runs.enter(RunId("run-1"), Step.FETCH, OVER)
    stores.runs.open(a_run("run-2"), POLICY)
    ended = stores.runs.get(RunId("run-1"))
    assert (ended.status, ended.finished_at is None) == (RunStatus.FAILED, False)
    assert ended.failure is not None
    assert ended.failure.error == "TakenOver"
    assert "run-2" in ended.failure.message
    with pytest.raises(Fenced):
        stores.runs.end(dead, RunEvent.SUCCEED)


def test_a_renewal_lets_the_flight_last(stores: Stores) -> None:
    """Where the lease had run out, and nobody has taken it, another run of the request finds it taken again."""
    stores.runs.open(a_run(), POLICY)
    stores.runs.end(stores.runs.enter(RunId("run-1"), Step.SHARD, MINUTE), RunEvent.FAIL, FAILURE)
    stores.runs.open(a_run("run-2"), POLICY)
    run = stores.runs.enter(RunId("run-2"), Step.REVIEW, OVER)
    stores.runs.renew(run, MINUTE)
    with pytest.raises(FlightTaken):
        stores.runs.enter(RunId("run-1"), Step.SHARD, MINUTE)


def test_a_renewal_is_fenced(stores: Stores) -> None:
    """Who holds an older token keeps nothing alive."""
    stores.runs.open(a_run(), POLICY)
    older = stores.runs.enter(RunId("run-1"), Step.REVIEW, MINUTE)
    stores.runs.enter(RunId("run-1"), Step.REVIEW, MINUTE)
    with pytest.raises(Fenced):
        stores.runs.renew(older, MINUTE)
    with pytest.raises(Fenced):
        stores.runs.next_token(older)


@pytest.mark.parametrize("event", [RunEvent.PARK, *ENDINGS])
def test_a_run_that_is_over_takes_no_flight_back(stores: Stores, event: RunEvent) -> None:
    """A heartbeat that comes a moment too late leaves the request to whoever asks next."""
    stores.runs.open(a_run(), POLICY)
    run = stores.runs.enter(RunId("run-1"), Step.SETTLE, MINUTE)
    assert stores.runs.renew(run, MINUTE)
    stores.runs.end(run, event)
    assert not stores.runs.renew(run, MINUTE)
    with pytest.raises(Fenced):
        stores.runs.next_token(run)
    assert stores.runs.open(a_run("run-2"), POLICY).status is RunStatus.PENDING


def test_a_token_is_exchanged_for_a_newer_one(stores: Stores) -> None:
    """The run stays as it is, and the older token is worth nothing from then on."""
    stores.runs.open(a_run(), POLICY)
    older = stores.runs.enter(RunId("run-1"), Step.PUBLISH, MINUTE)
    newer = stores.runs.next_token(older)
    assert newer.token > older.token
    assert newer == older.model_copy(update={"token": newer.token}) == stores.runs.get(older.id)
    with pytest.raises(Fenced):
        stores.runs.end(older, RunEvent.SUCCEED)
    assert stores.runs.end(newer, RunEvent.SUCCEED).status is RunStatus.SUCCEEDED


def test_a_run_whose_step_is_done_is_at_the_next(stores: Stores) -> None:
    """Under the same token, and only while it runs and is the caller's."""
    stores.runs.open(a_run(), POLICY)
    older = stores.runs.enter(RunId("run-1"), Step.REVIEW, MINUTE)
    run = stores.runs.enter(RunId("run-1"), Step.PUBLISH, MINUTE)
    with pytest.raises(Fenced):
        stores.runs.reach(older, Step.SETTLE)
    stores.runs.reach(run, Step.SETTLE)
    assert stores.runs.get(run.id) == run.model_copy(update={"step": Step.SETTLE})
    stores.runs.end(run, RunEvent.SUCCEED)
    with pytest.raises(Fenced):
        stores.runs.reach(run, Step.PUBLISH)


def test_the_runs_that_asked_for_what_lies_within_a_span(stores: Stores) -> None:
    """Whose whole window lies in it, its bounds included, in one of the modes; the newest first, none of another sync."""
    for number, (start, end) in enumerate([(0, 1), (1, 2), (0, 2), (-1, 1), (1, 3)]):
        window = Window(start=NOW + start * MINUTE, end=NOW + end * MINUTE)
        stores.runs.open(a_run(f"run-{number}", request_key=str(number), mode=Mode.FULL, window=window), POLICY)
    within = Window(start=NOW, end=NOW + 2 * MINUTE)
    stores.runs.open(a_run("other", request_key="other", sync="rates", mode=Mode.FULL, window=within), POLICY)
    stores.runs.open(a_run("replay", request_key="replay", mode=Mode.REPLAY, window=within), POLICY)
    stores.runs.open(a_run("unbounded", request_key="unbounded", mode=Mode.FULL), POLICY)
    assert [run.id for run in stores.runs.asked_within("hotels", within, [Mode.FULL])] == ["run-2", "run-1", "run-0"]
    assert [run.id for run in stores.runs.asked_within("hotels", within, [Mode.REPLAY])] == ["replay"]


def test_recent_runs_are_had_a_page_at_a_time(stores: Stores) -> None:
    """Those admitted before one, the newest first; before the oldest there is none."""
    for number in range(4):
        stores.runs.open(a_run(f"run-{number}", request_key=str(number)), POLICY)
    assert [run.id for run in stores.runs.recent("hotels", [], 2, RunId("run-2"))] == ["run-1", "run-0"]
    assert stores.runs.recent(None, [], 2, RunId("run-0")) == []


def test_who_follows_a_run_is_known_at_it(stores: Stores) -> None:
    """The newest first; who works itself is none of them."""
    stores.runs.open(a_run("owner"), POLICY)
    for name in ("first", "second"):
        assert stores.runs.open(a_run(name), POLICY).follows == "owner"
    stores.runs.open(a_run("other", request_key="other"), POLICY)
    assert [run.id for run in stores.runs.followed_by(RunId("owner"), 9)] == ["second", "first"]
    assert stores.runs.followed_by(RunId("second"), 9) == []
