"""The contract of flights: of the runs of one request one works; the others follow it, replay its result, or take over."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from sluice.errors import Fenced
from sluice.model.base import RunId
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Failure, Origin, Run
from sluice.model.shard import Shard
from sluice.model.stage import StagePolicy
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, OVER, POLICY, a_pointer, a_run, plans

FAILURE = Failure(error="AnswerNotJson", message="page 3 is HTML")
HOUR = timedelta(hours=1)
REPLAYING = StagePolicy(result_ttl=HOUR)
OWNER, FOLLOWER, THIRD = RunId("owner"), RunId("follower"), RunId("third")
DAG_RUN = Origin(dag_id="sluice_hotels", dag_run_id="manual")


def opened(stores: Stores, name: str, policy: StagePolicy = POLICY, **changes: Any) -> Run:
    """Open a run of the request, or look at it again."""
    return stores.runs.open(a_run(name, **changes), policy)


def followed(stores: Stores, policy: StagePolicy = POLICY, **changes: Any) -> tuple[Run, Run]:
    """Return a run at work and another one that was opened meanwhile."""
    opened(stores, OWNER, policy)
    follower = opened(stores, FOLLOWER, policy, **changes)
    return stores.runs.enter(OWNER, Step.SETTLE, MINUTE), follower


def succeeded(stores: Stores, name: str, policy: StagePolicy = POLICY, **changes: Any) -> Run:
    """Return a run that has come to its end."""
    opened(stores, name, policy, **changes)
    return stores.runs.end(stores.runs.enter(RunId(name), Step.SETTLE, MINUTE), RunEvent.SUCCEED)


def checkpointed(stores: Stores, run: Run) -> Shard:
    """Give a run a shard with one chunk."""
    stores.shards.plan(run, plans("rome"), {})
    claimed = stores.shards.claim(run.id, plans("rome")[0].key)
    return stores.shards.checkpoint(claimed.model_copy(update={"chunks": 1}), a_pointer(run.id, "rome"), MINUTE)


def test_a_run_follows_the_one_that_is_alive(stores: Stores) -> None:
    """It waits, and looking again changes nothing while the owner works."""
    owner, follower = followed(stores)
    assert (follower.status, follower.follows, follower.step) == (RunStatus.WAITING, OWNER, Step.ADMIT)
    assert opened(stores, FOLLOWER) == stores.runs.get(FOLLOWER) == follower
    assert stores.runs.get(OWNER) == owner


def test_a_follower_follows_no_follower(stores: Stores) -> None:
    """Each of them waits for the one that works."""
    followed(stores)
    assert opened(stores, THIRD).follows == OWNER


@pytest.mark.parametrize(
    ("event", "status", "failure"),
    [
        (RunEvent.SUCCEED, RunStatus.SUCCEEDED, None),
        (RunEvent.END_PARTIAL, RunStatus.PARTIAL, FAILURE),
        (RunEvent.FAIL, RunStatus.FAILED, FAILURE),
        (RunEvent.CANCEL, RunStatus.CANCELLED, FAILURE),
    ],
)
def test_a_follower_ends_as_its_owner_did(stores: Stores, event: RunEvent, status: RunStatus, failure: Failure | None) -> None:
    """Its status, its failure, and whose they are."""
    owner, _ = followed(stores)
    stores.runs.end(owner, event, failure)
    ended = opened(stores, FOLLOWER)
    assert (ended.status, ended.failure, ended.follows) == (status, failure, OWNER)
    assert ended.finished_at is not None
    assert stores.runs.get(FOLLOWER) == ended


def test_a_follower_outlasts_the_review_of_its_owner(stores: Stores) -> None:
    """The flight is free meanwhile, and a third run may take it; the follower waits for the person who is asked."""
    owner, _ = followed(stores)
    stores.runs.end(owner, RunEvent.PARK)
    assert (opened(stores, FOLLOWER).status, opened(stores, FOLLOWER).follows) == (RunStatus.WAITING, OWNER)
    third = opened(stores, THIRD)
    assert (third.status, third.follows) == (RunStatus.PENDING, None)
    assert opened(stores, FOLLOWER).follows == OWNER
    stores.runs.end(third, RunEvent.CANCEL)
    stores.runs.end(stores.runs.enter(OWNER, Step.SETTLE, MINUTE), RunEvent.SUCCEED)
    assert opened(stores, FOLLOWER).status is RunStatus.SUCCEEDED


def test_a_follower_takes_over_from_a_dead_owner(stores: Stores) -> None:
    """It works itself then, from the owner's checkpoints, under a higher token; the owner can write nothing more."""
    owner, follower = followed(stores)
    checkpointed(stores, owner)
    stores.runs.renew(owner, OVER)
    successor = opened(stores, FOLLOWER)
    assert (successor.status, successor.follows) == (RunStatus.PENDING, None)
    assert successor.token > max(owner.token, follower.token)
    assert [shard.chunks for shard in stores.shards.of(FOLLOWER)] == [1]
    assert stores.runs.get(OWNER).failure == Failure(
        error="TakenOver", message="its lease ran out; run follower has taken over"
    )
    with pytest.raises(Fenced):
        stores.runs.end(owner, RunEvent.SUCCEED)
    assert stores.runs.enter(FOLLOWER, Step.SHARD, MINUTE).status is RunStatus.RUNNING


def test_who_followed_a_dead_owner_follows_its_successor(stores: Stores) -> None:
    """Only one of them takes over, and the others end as that one does, however late they look."""
    owner, _ = followed(stores)
    opened(stores, THIRD)
    stores.runs.renew(owner, OVER)
    opened(stores, FOLLOWER)
    assert stores.runs.get(THIRD).follows == FOLLOWER
    stores.runs.end(stores.runs.enter(FOLLOWER, Step.SETTLE, MINUTE), RunEvent.SUCCEED)
    ended = opened(stores, THIRD)
    assert (ended.status, ended.follows) == (RunStatus.SUCCEEDED, FOLLOWER)


def test_of_two_followers_that_look_at_once_one_takes_over(stores: Stores) -> None:
    """The other one follows it, whoever comes first."""
    owner, _ = followed(stores)
    opened(stores, THIRD)
    stores.runs.renew(owner, OVER)
    start = Barrier(2)

    def look(name: str) -> Run:
        start.wait(timeout=30)
        return opened(stores, name)

    with ThreadPoolExecutor(2) as workers:
        runs = list(workers.map(look, [FOLLOWER, THIRD]))
    (successor,) = [run for run in runs if run.follows is None]
    (other,) = [run for run in runs if run.follows is not None]
    assert (successor.status, other.status, other.follows) == (RunStatus.PENDING, RunStatus.WAITING, successor.id)


@pytest.mark.parametrize(("ttl", "status"), [(OVER, RunStatus.PENDING), (MINUTE, RunStatus.WAITING)])
def test_a_stage_says_how_long_a_silent_run_keeps_its_request(stores: Stores, ttl: timedelta, status: RunStatus) -> None:
    """Where its lease has run out, the next run of the request works; where not, that one follows."""
    stores.runs.open(a_run(), POLICY.model_copy(update={"lease_ttl": ttl}))
    assert stores.runs.open(a_run("run-2"), POLICY).status is status


def test_a_follower_waits_as_long_as_its_policy_says(stores: Stores) -> None:
    """Then it fails, saying for whom it waited; a stage with more patience waits on."""
    patient, hasty = StagePolicy(wait_timeout=2 * HOUR), StagePolicy(wait_timeout=HOUR / 2)
    owner, _ = followed(stores)
    opened(stores, THIRD)
    stores.let_pass(HOUR)
    stores.runs.renew(owner, MINUTE)
    assert opened(stores, THIRD, patient).status is RunStatus.WAITING
    ended = opened(stores, FOLLOWER, hasty)
    assert (ended.status, ended.follows) == (RunStatus.FAILED, OWNER)
    assert ended.failure is not None
    assert ended.failure.error == "WaitedInVain"
    assert "run owner of the same request did not end within 30m (wait_timeout of stage hotel-content)" in ended.failure.message


def test_the_time_a_follower_waits_is_counted_over_all_its_owners(stores: Stores) -> None:
    """One that dies and is taken over does not make it begin anew."""
    owner, _ = followed(stores)
    opened(stores, THIRD)
    stores.let_pass(HOUR)
    stores.runs.renew(owner, OVER)
    opened(stores, FOLLOWER)
    ended = opened(stores, THIRD, StagePolicy(wait_timeout=HOUR / 2))
    assert ended.failure is not None
    assert "run follower of the same request" in ended.failure.message


@pytest.mark.parametrize("event", [RunEvent.END_PARTIAL, RunEvent.FAIL, RunEvent.CANCEL])
def test_a_follower_that_has_ended_and_is_admitted_again_is_decided_upon_afresh(stores: Stores, event: RunEvent) -> None:
    """Nobody works on the request any more, so it does."""
    owner, _ = followed(stores)
    stores.runs.end(owner, event, FAILURE)
    opened(stores, FOLLOWER)
    again = opened(stores, FOLLOWER, origin=DAG_RUN)
    assert (again.status, again.follows, again.failure, again.finished_at) == (RunStatus.PENDING, None, None, None)
    assert opened(stores, THIRD).follows == FOLLOWER


def test_a_follower_that_is_admitted_again_may_follow_another(stores: Stores) -> None:
    """Somebody works on the request once more; and it has all its time again."""
    owner, _ = followed(stores)
    stores.runs.end(owner, RunEvent.FAIL, FAILURE)
    opened(stores, FOLLOWER)
    opened(stores, THIRD)
    stores.let_pass(HOUR)
    stores.runs.enter(THIRD, Step.FETCH, MINUTE)
    again = opened(stores, FOLLOWER, StagePolicy(wait_timeout=HOUR / 2))
    assert (again.status, again.follows, again.failure) == (RunStatus.WAITING, THIRD, None)
    assert opened(stores, FOLLOWER, StagePolicy(wait_timeout=HOUR / 2)) == again


@pytest.mark.parametrize("event", [RunEvent.SUCCEED, RunEvent.END_PARTIAL, RunEvent.FAIL, RunEvent.CANCEL, RunEvent.PARK])
def test_a_run_that_has_worked_itself_is_returned_as_it_is(stores: Stores, event: RunEvent) -> None:
    """Its task was cleared: it goes on with what it has, and never follows, not even where another run has the flight."""
    owner, follower = followed(stores)
    ended = stores.runs.end(owner, event, FAILURE if event is RunEvent.FAIL else None)
    stores.runs.end(follower, RunEvent.CANCEL)
    opened(stores, THIRD)
    assert opened(stores, OWNER) == ended


def test_a_result_is_replayed_within_its_time(stores: Stores) -> None:
    """The run is over at once, with whose result it has; and the flight is free."""
    succeeded(stores, OWNER, REPLAYING)
    stores.let_pass(HOUR / 2)
    replay = opened(stores, FOLLOWER, REPLAYING)
    assert (replay.status, replay.follows) == (RunStatus.SUCCEEDED, OWNER)
    assert replay.finished_at is not None
    assert opened(stores, FOLLOWER, REPLAYING) == replay
    assert opened(stores, THIRD, StagePolicy()).status is RunStatus.PENDING


@pytest.mark.parametrize("ttl", [timedelta(0), HOUR / 2])
def test_a_result_is_not_replayed_beyond_its_time(stores: Stores, ttl: timedelta) -> None:
    """A stage without a result_ttl, or with a shorter one, works again."""
    succeeded(stores, OWNER)
    stores.let_pass(HOUR / 2)
    assert opened(stores, FOLLOWER, StagePolicy(result_ttl=ttl)).status is RunStatus.PENDING


def test_a_replay_does_not_prolong_the_time_of_a_result(stores: Stores) -> None:
    """What counts is when somebody worked."""
    succeeded(stores, OWNER, REPLAYING)
    stores.let_pass(HOUR / 2)
    assert opened(stores, FOLLOWER, REPLAYING).follows == OWNER
    stores.let_pass(HOUR / 2)
    assert opened(stores, THIRD, REPLAYING).status is RunStatus.PENDING


@pytest.mark.parametrize("event", [RunEvent.END_PARTIAL, RunEvent.FAIL, RunEvent.CANCEL, RunEvent.PARK])
def test_only_a_success_is_replayed(stores: Stores, event: RunEvent) -> None:
    """What failed, was called off or waits for a person is no result, though an older run had one."""
    succeeded(stores, OWNER)
    opened(stores, FOLLOWER)
    stores.runs.end(stores.runs.enter(FOLLOWER, Step.SETTLE, MINUTE), event, FAILURE if event is RunEvent.FAIL else None)
    assert opened(stores, THIRD, REPLAYING).status is RunStatus.PENDING


def published_by_another_request(stores: Stores) -> None:
    """Another request of the sync has published."""
    succeeded(stores, "another", request_key="another")


def being_published_by_another_request(stores: Stores) -> None:
    """Another request of the sync may have published by now."""
    opened(stores, "another", request_key="another")
    stores.runs.enter(RunId("another"), Step.PUBLISH, MINUTE)


def published_by_another_sync(stores: Stores) -> None:
    """Another sync has published."""
    succeeded(stores, "another", request_key="another", sync="rooms")


def failed_by_another_request(stores: Stores) -> None:
    """Another request of the sync has failed."""
    opened(stores, "another", request_key="another")
    stores.runs.end(stores.runs.enter(RunId("another"), Step.SETTLE, MINUTE), RunEvent.FAIL, FAILURE)


@pytest.mark.parametrize(
    ("meanwhile", "status"),
    [
        (published_by_another_request, RunStatus.PENDING),
        (being_published_by_another_request, RunStatus.PENDING),
        (published_by_another_sync, RunStatus.SUCCEEDED),
        (failed_by_another_request, RunStatus.SUCCEEDED),
    ],
)
def test_a_result_is_replayed_only_while_it_is_the_tables(
    stores: Stores, meanwhile: Callable[[Stores], None], status: RunStatus
) -> None:
    """Once another request of the sync has published, the table is not what the run has made of it."""
    succeeded(stores, OWNER)
    stores.let_pass(MINUTE)
    meanwhile(stores)
    assert opened(stores, FOLLOWER, REPLAYING).status is status


def test_who_was_admitted_first_and_published_last_outdates_a_result(stores: Stores) -> None:
    """It is the publication that counts, and not the admission."""
    opened(stores, "another", request_key="another")
    succeeded(stores, OWNER)
    stores.let_pass(MINUTE)
    published_by_another_request(stores)
    assert opened(stores, FOLLOWER, REPLAYING).status is RunStatus.PENDING


def test_force_replays_nothing(stores: Stores) -> None:
    """It works, whatever another run has brought."""
    succeeded(stores, OWNER)
    assert opened(stores, FOLLOWER, REPLAYING, force=True).status is RunStatus.PENDING


@pytest.mark.parametrize("event", [RunEvent.SUCCEED, RunEvent.FAIL, RunEvent.PARK])
def test_force_waits_for_the_flight_alone(stores: Stores, event: RunEvent) -> None:
    """While another run works it waits, and works itself once that one has ended, however it has."""
    owner, forced = followed(stores, force=True)
    assert (forced.status, forced.follows) == (RunStatus.WAITING, OWNER)
    stores.runs.end(owner, event, FAILURE if event is RunEvent.FAIL else None)
    working = opened(stores, FOLLOWER)
    assert (working.status, working.follows, working.force) == (RunStatus.PENDING, None, True)


def test_force_goes_on_from_nobodys_checkpoints(stores: Stores) -> None:
    """Not even a dead run's, which it ends all the same."""
    owner, _ = followed(stores, force=True)
    checkpointed(stores, owner)
    stores.runs.renew(owner, OVER)
    assert opened(stores, FOLLOWER).follows is None
    assert stores.shards.of(FOLLOWER) == []
    assert stores.runs.get(OWNER).status is RunStatus.FAILED


@pytest.mark.parametrize(("takeover", "chunks"), [(2 * HOUR, [1]), (HOUR / 2, []), (timedelta(0), [])])
def test_a_stage_says_how_old_the_checkpoints_may_be_to_go_on_from(
    stores: Stores, takeover: timedelta, chunks: list[int]
) -> None:
    """What is older is fetched again."""
    owner, _ = followed(stores)
    checkpointed(stores, owner)
    stores.let_pass(HOUR)
    opened(stores, FOLLOWER, StagePolicy(takeover=takeover))
    assert [shard.chunks for shard in stores.shards.of(FOLLOWER)] == chunks


def test_a_partial_run_is_gone_on_from_though_it_was_followed(stores: Stores) -> None:
    """What a follower ended with is nobody's work: it hides no checkpoints, and outruns nobody."""
    owner, _ = followed(stores)
    checkpointed(stores, owner)
    stores.runs.end(owner, RunEvent.END_PARTIAL, FAILURE)
    opened(stores, FOLLOWER)
    assert [shard.chunks for shard in stores.shards.of(opened(stores, THIRD).id)] == [1]


@pytest.mark.parametrize("sharing", ["stage", "tenant", "sync", "version", "input"])
def test_requests_that_differ_share_nothing(stores: Stores, sharing: str) -> None:
    """Neither a flight nor a result: a request key is all that makes two runs ask for the same."""
    key = {"stage": "s", "tenant": "t", "sync": "hotels", "version": "1", "input": "abc"}
    other = ":".join({**key, sharing: "x"}.values())
    opened(stores, OWNER, request_key=":".join(key.values()))
    assert opened(stores, FOLLOWER, request_key=other).status is RunStatus.PENDING
    stores.runs.end(stores.runs.enter(OWNER, Step.SETTLE, MINUTE), RunEvent.SUCCEED)
    assert opened(stores, THIRD, REPLAYING, request_key=other).follows == FOLLOWER


def test_a_run_that_was_taken_over_never_works_again(stores: Stores) -> None:
    """Not even when its successor is done and the flight is free: a worker that wakes in it finds every door closed."""
    owner, _ = followed(stores)
    checkpointed(stores, owner)
    stores.runs.renew(owner, OVER)
    opened(stores, FOLLOWER)
    stores.runs.end(stores.runs.enter(FOLLOWER, Step.SETTLE, MINUTE), RunEvent.SUCCEED)
    with pytest.raises(Fenced, match="run follower has taken over"):
        stores.runs.enter(OWNER, Step.REVIEW, MINUTE)
    with pytest.raises(Fenced, match="run follower has taken over"):
        stores.shards.claim(OWNER, stores.shards.of(OWNER)[0].key)
    assert stores.runs.get(OWNER).status is RunStatus.FAILED
    assert opened(stores, THIRD).follows is None
