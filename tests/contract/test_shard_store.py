"""The contract of `ShardStore`."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from sluice.errors import Fenced, FlightTaken, IllegalTransition, NotFound
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunEvent, RunStatus, ShardStatus, Step
from sluice.model.run import LEFT_UNFINISHED, Failure, Mode, Window
from sluice.model.shard import Shard
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, NOW, OVER, POLICY, a_pointer, a_run, plans

RUN, PARIS, ROME = RunId("run-1"), ShardKey("paris"), ShardKey("rome")
FAILURE = Failure(error="CursorStuck", message="the cursor abc came twice")


@pytest.fixture(autouse=True)
def _planned(stores: Stores) -> None:
    """A run with two shards."""
    stores.shards.plan(stores.runs.open(a_run(), POLICY), plans(PARIS, ROME), {ROME: "17"})


def further(shard: Shard, *, exhausted: bool = False) -> Shard:
    """Return the shard with one more chunk than it has."""
    chunks = shard.chunks + 1
    progress = {"chunks": chunks, "pages": 2 * chunks, "records": 20 * chunks, "cursor": {"after": 20 * chunks}}
    return shard.model_copy(update={**progress, "exhausted": exhausted, "high_mark": str(chunks)})


def checkpointed(stores: Stores, shard: Shard, *, exhausted: bool = False) -> Shard:
    """Commit one more chunk of the shard."""
    pointer = a_pointer(shard=shard.key, seq=shard.chunks)
    return stores.shards.checkpoint(further(shard, exhausted=exhausted), pointer, MINUTE)


def test_planned_shards_are_pending_and_ordered(stores: Stores) -> None:
    """A plan becomes rows, with the watermark each had at that moment."""
    paris, rome = stores.shards.of(RUN)
    assert (paris.key, paris.params, paris.status, paris.watermark) == (PARIS, {"city": "paris"}, ShardStatus.PENDING, None)
    assert (rome.key, rome.watermark, rome.cursor, rome.attempt) == (ROME, "17", None, 0)


def test_one_shard_is_found_by_its_key(stores: Stores) -> None:
    """It is the one that stands among all; one that is not there is named."""
    assert stores.shards.get(RUN, ROME) == stores.shards.of(RUN)[1]
    with pytest.raises(NotFound, match="oslo of run run-1"):
        stores.shards.get(RUN, ShardKey("oslo"))


def test_keys_are_ordered_as_python_orders_them(stores: Stores) -> None:
    """The order does not depend on the language of the database."""
    run = stores.runs.get(RUN)
    keys = [shard.key for shard in stores.shards.plan(run, plans("Zürich", "a-b", "ab", "A", "é"), {})]
    assert keys == sorted(keys)


def test_planning_again_keeps_what_is_there(stores: Stores) -> None:
    """A sharder that is tried again changes no shard, and adds what is new."""
    claimed = stores.shards.claim(RUN, PARIS)
    paris, rome, zagreb = stores.shards.plan(stores.runs.get(RUN), plans("zagreb", PARIS, ROME), {ROME: "99"})
    assert (paris, rome.watermark, zagreb.status) == (claimed, "17", ShardStatus.PENDING)


def test_planning_under_an_older_token_is_fenced(stores: Stores) -> None:
    """Who was overtaken while planning adds no shards."""
    earlier = stores.runs.get(RUN)
    stores.runs.enter(RUN, Step.SHARD, MINUTE)
    with pytest.raises(Fenced):
        stores.shards.plan(earlier, plans("zagreb"), {})
    assert len(stores.shards.of(RUN)) == 2


def test_claiming_runs_the_shard_under_a_new_token(stores: Stores) -> None:
    """Each claim counts as an attempt, until the shard is fetched."""
    first = stores.shards.claim(RUN, PARIS)
    second = stores.shards.claim(RUN, PARIS)
    assert (first.status, first.attempt, second.attempt) == (ShardStatus.RUNNING, 1, 2)
    assert 0 < first.token < second.token
    fetched = stores.shards.claim(RUN, checkpointed(stores, second, exhausted=True).key)
    assert (fetched.attempt, second.token < fetched.token) == (2, True)


def test_claiming_what_is_not_there_names_it(stores: Stores) -> None:
    """A missing shard is no empty one."""
    with pytest.raises(NotFound, match="oslo of run run-1"):
        stores.shards.claim(RUN, ShardKey("oslo"))


def test_a_second_claim_fences_the_first(stores: Stores) -> None:
    """Whoever claimed before can neither checkpoint nor finish nor fail, and leaves no pointer."""
    first = stores.shards.claim(RUN, PARIS)
    second = stores.shards.claim(RUN, PARIS)
    writes: list[Callable[[], Shard]] = [
        lambda: checkpointed(stores, first),
        lambda: stores.shards.succeed(first),
        lambda: stores.shards.fail(first, FAILURE),
    ]
    for write in writes:
        with pytest.raises(Fenced):
            write()
    assert stores.shards.of(RUN)[0] == second
    assert stores.pointers.of(RUN, ArtifactKind.RAW) == []


def test_a_checkpoint_keeps_cursor_counters_marks_and_pointer(stores: Stores) -> None:
    """The row that comes back is the row that is stored, and the pointer is there with it."""
    claimed = stores.shards.claim(RUN, PARIS)
    kept = checkpointed(stores, claimed)
    assert kept == further(claimed).model_copy(update={"progress_at": kept.progress_at})
    assert kept.progress_at is not None
    assert stores.shards.of(RUN)[0] == kept
    assert stores.pointers.of(RUN, ArtifactKind.RAW) == [a_pointer(shard=PARIS)]


def test_a_checkpoint_whose_pointer_cannot_be_kept_moves_no_cursor(stores: Stores) -> None:
    """Pointer and cursor are kept together or not at all."""
    claimed = stores.shards.claim(RUN, PARIS)
    with pytest.raises(NotFound):
        stores.shards.checkpoint(further(claimed), a_pointer(shard="nowhere"), MINUTE)
    assert stores.shards.of(RUN)[0] == claimed
    assert stores.pointers.of(RUN, ArtifactKind.RAW) == []


@pytest.mark.parametrize("cursor", [None, "abc", 7, {"after": [1, None, "ü"]}, False, ""])
def test_a_cursor_comes_back_as_it_was_given(stores: Stores, cursor: object) -> None:
    """A cursor is whatever the paginator makes it."""
    moved = further(stores.shards.claim(RUN, PARIS)).model_copy(update={"cursor": cursor})
    assert stores.shards.checkpoint(moved, a_pointer(shard=PARIS), MINUTE).cursor == cursor


def test_a_checkpoint_keeps_the_flight(stores: Stores) -> None:
    """Progress is a sign of life, even when the lease had run out unnoticed."""
    stores.runs.enter(RUN, Step.FETCH, OVER)
    claimed = stores.shards.claim(RUN, PARIS)
    checkpointed(stores, claimed)
    assert stores.runs.open(a_run("run-2"), POLICY).follows == RUN


def test_a_checkpoint_of_a_shard_that_ended_is_illegal(stores: Stores) -> None:
    """A shard that gave up gets further only through a new claim."""
    claimed = stores.shards.claim(RUN, PARIS)
    failed = stores.shards.fail(claimed, FAILURE)
    with pytest.raises(IllegalTransition, match="failed"):
        checkpointed(stores, claimed)
    assert stores.shards.of(RUN)[0] == failed


def test_success_keeps_the_mark_and_is_final(stores: Stores) -> None:
    """A shard that came through is returned unchanged to whoever claims it, without a new attempt."""
    fetched = checkpointed(stores, stores.shards.claim(RUN, PARIS), exhausted=True)
    done = stores.shards.succeed(fetched.model_copy(update={"high_mark": "42"}))
    assert (done.status, done.high_mark) == (ShardStatus.SUCCEEDED, "42")
    assert stores.shards.claim(RUN, PARIS) == done
    with pytest.raises(IllegalTransition, match="allowed: redo, reset, restart"):
        stores.shards.succeed(fetched)


def test_a_shard_with_pages_left_does_not_succeed(stores: Stores) -> None:
    """Success without the last page would lose objects."""
    kept = checkpointed(stores, stores.shards.claim(RUN, PARIS))
    with pytest.raises(IllegalTransition, match="pages left"):
        stores.shards.succeed(kept)
    assert stores.shards.of(RUN)[0] == kept


def test_a_failed_shard_keeps_its_cursor_for_the_next_claim(stores: Stores) -> None:
    """It goes on where it stood, its failure forgotten."""
    kept = checkpointed(stores, stores.shards.claim(RUN, PARIS))
    failed = stores.shards.fail(kept, FAILURE)
    assert (failed.status, failed.failure, failed.cursor) == (ShardStatus.FAILED, FAILURE, {"after": 20})
    again = stores.shards.claim(RUN, PARIS)
    assert (again.failure, again.cursor, again.chunks, again.attempt) == (None, {"after": 20}, 1, 2)


def test_a_shard_of_an_ended_run_may_be_claimed(stores: Stores) -> None:
    """A person cleared its task; the run is in flight again."""
    stores.shards.fail(stores.shards.claim(RUN, PARIS), FAILURE)
    stores.runs.end(stores.runs.enter(RUN, Step.SETTLE, MINUTE), RunEvent.FAIL)
    assert stores.shards.claim(RUN, PARIS).status is ShardStatus.RUNNING
    assert stores.runs.open(a_run("run-2"), POLICY).follows == RUN


def test_a_shard_is_not_claimed_while_another_run_of_the_request_is_alive(stores: Stores) -> None:
    """One run at a time asks the supplier for the same."""
    stores.runs.end(stores.runs.enter(RUN, Step.SETTLE, MINUTE), RunEvent.FAIL)
    stores.runs.open(a_run("run-2"), POLICY)
    claims: list[Callable[[], object]] = [lambda: stores.shards.claim(RUN, PARIS), lambda: stores.shards.claim_next(RUN)]
    for claim in claims:
        with pytest.raises(FlightTaken):
            claim()


def test_claim_next_yields_pending_shards_until_none_is_left(stores: Stores) -> None:
    """A shard that runs already is not handed out again."""
    stores.shards.claim(RUN, PARIS)
    rome = stores.shards.claim_next(RUN)
    assert rome is not None
    assert (rome.key, rome.status, rome.attempt) == (ROME, ShardStatus.RUNNING, 1)
    assert stores.shards.claim_next(RUN) is None


def test_workers_that_claim_at_once_get_different_shards(stores: Stores) -> None:
    """Four workers empty a queue of eight without handing any out twice."""
    stores.shards.plan(stores.runs.get(RUN), plans(*"abcdef"), {})
    start = Barrier(4)

    def drain(_: int) -> list[ShardKey]:
        start.wait(timeout=30)
        return [shard.key for shard in iter(lambda: stores.shards.claim_next(RUN), None)]

    with ThreadPoolExecutor(4) as workers:
        claimed = [key for keys in workers.map(drain, range(4)) for key in keys]
    assert sorted(claimed) == ["a", "b", "c", "d", "e", "f", "paris", "rome"]


def test_a_renewal_keeps_the_flight_of_the_run_and_is_fenced(stores: Stores) -> None:
    """Whoever works on a shard keeps its run alive; whoever lost it does not, nor does anybody once the run is over."""
    lost = stores.shards.claim(RUN, PARIS)
    stores.runs.enter(RUN, Step.FETCH, OVER)
    shard = stores.shards.claim(RUN, PARIS)
    stores.shards.renew(shard, MINUTE)
    with pytest.raises(Fenced):
        stores.shards.renew(lost, MINUTE)
    stores.runs.end(stores.runs.get(RUN), RunEvent.CANCEL)
    with pytest.raises(Fenced):
        stores.shards.renew(shard, MINUTE)
    assert stores.runs.open(a_run("run-2"), POLICY).status is RunStatus.PENDING


def test_a_shard_that_waits_keeps_the_flight_of_its_run(stores: Stores) -> None:
    """For so long as was said, though another shard's sign of life would not last that long; then it is free for others."""
    stores.runs.enter(RUN, Step.FETCH, MINUTE)
    other = stores.shards.claim(RUN, ROME)
    stores.shards.fail(stores.shards.claim(RUN, PARIS), FAILURE, 10 * MINUTE)
    stores.shards.renew(other, MINUTE)
    stores.let_pass(9 * MINUTE)
    rival = stores.runs.open(a_run("run-2"), POLICY)
    assert rival.follows == RUN
    stores.let_pass(2 * MINUTE)
    assert stores.runs.open(rival, POLICY).follows is None


@pytest.mark.parametrize("event", [RunEvent.FAIL, RunEvent.END_PARTIAL, RunEvent.CANCEL])
def test_no_shard_goes_on_running_in_a_run_that_is_over(stores: Stores, event: RunEvent) -> None:
    """Whose worker was not heard of has failed, and is fenced; what came through stays; both can be gone on with."""
    lost = stores.shards.claim(RUN, PARIS)
    done = stores.shards.succeed(checkpointed(stores, stores.shards.claim(RUN, ROME), exhausted=True))
    run = stores.runs.enter(RUN, Step.SETTLE, MINUTE)
    stores.runs.end(run, event, FAILURE if event is RunEvent.FAIL else None)
    paris, rome = stores.shards.of(RUN)
    assert (paris.status, rome) == (ShardStatus.FAILED, done)
    assert paris.failure == (FAILURE if event is RunEvent.FAIL else LEFT_UNFINISHED)
    with pytest.raises(Fenced):
        stores.shards.fail(lost, FAILURE)
    assert stores.shards.claim(RUN, PARIS).status is ShardStatus.RUNNING


def delivered(stores: Stores, name: str, chunks: int, **changes: Any) -> None:
    """Let a run of one shard come to its end with so many chunks."""
    run = stores.runs.open(a_run(name, request_key=name, **changes), POLICY)
    stores.shards.plan(run, plans(PARIS), {})
    shard = stores.shards.claim(run.id, PARIS)
    for number in range(chunks):
        pointer = a_pointer(name, shard=PARIS, seq=number)
        shard = stores.shards.checkpoint(further(shard, exhausted=number == chunks - 1), pointer, MINUTE)
    stores.shards.succeed(shard)
    stores.runs.end(stores.runs.enter(run.id, Step.SETTLE, MINUTE), RunEvent.SUCCEED)


def test_what_shards_delivered_is_of_full_runs_that_succeeded(stores: Stores) -> None:
    """Newest first, and no more runs than asked for; incremental ones, windows and the run under way tell nothing of it."""
    window = Window(start=NOW, end=NOW + MINUTE)
    for number in (1, 2, 3):
        delivered(stores, f"full-{number}", number)
    delivered(stores, "incremental", 4, mode=Mode.INCREMENTAL)
    delivered(stores, "window", 5, window=window)
    delivered(stores, "other", 6, sync="rates")
    assert stores.shards.delivered("hotels", 2) == {PARIS: (60, 40)}
    assert stores.shards.delivered("hotels", 9) == {PARIS: (60, 40, 20)}
