"""The contract of going on from an earlier run: what a new run of the same request finds."""

import pytest

from sluice.errors import Fenced
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunEvent, ShardStatus, Step
from sluice.model.run import Failure, Origin, Run
from sluice.model.shard import Shard
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, OVER, POLICY, a_pointer, a_run, plans

PARIS, ROME, OSLO, BERN = ShardKey("paris"), ShardKey("rome"), ShardKey("oslo"), ShardKey("bern")
AIRFLOW = Origin(dag_id="sluice_hotels", dag_run_id="scheduled__1")
FAILURE = Failure(error="AnswerNotJson", message="page 3 is HTML")


def worked_on(stores: Stores, origin: Origin) -> tuple[Run, Shard]:
    """Leave run-1 with a shard done, one half way, one given up half way and one untouched; return the one half way."""
    run = stores.runs.open(a_run(origin=origin), POLICY)
    stores.shards.plan(run, plans(PARIS, ROME, OSLO, BERN), {ROME: "7"})
    paris = fetched(stores, PARIS, exhausted=True)
    stores.pointers.add(a_pointer(shard=PARIS, kind=ArtifactKind.ROWS), paris.token)
    stores.shards.succeed(paris.model_copy(update={"high_mark": "9"}))
    stores.shards.fail(fetched(stores, OSLO), FAILURE)
    return run, fetched(stores, ROME)


def fetched(stores: Stores, key: ShardKey, *, exhausted: bool = False) -> Shard:
    """Bring a shard of run-1 to its first checkpoint."""
    claimed = stores.shards.claim(RunId("run-1"), key)
    done = {"cursor": {"after": 20}, "exhausted": exhausted, "chunks": 1, "pages": 2, "records": 20}
    return stores.shards.checkpoint(claimed.model_copy(update=done), a_pointer(shard=key), MINUTE)


def keys_of(pointers: list[Pointer]) -> list[tuple[str, str]]:
    """Return what the pointers belong to, and where their bytes are."""
    return [(pointer.ref.run, pointer.key) for pointer in pointers]


@pytest.mark.parametrize("origin", [Origin(), AIRFLOW])
def test_a_run_goes_on_from_the_checkpoints_of_a_dead_one(stores: Stores, origin: Origin) -> None:
    """Whoever executed it: what it had fetched is not fetched again, and what it had finished stays finished."""
    worked_on(stores, origin)
    stores.runs.enter(RunId("run-1"), Step.FETCH, OVER)
    second = stores.runs.open(a_run("run-2", origin=origin), POLICY)
    adopted = {shard.key: shard for shard in stores.shards.of(second.id)}
    assert {key: shard.status for key, shard in adopted.items()} == {
        BERN: ShardStatus.PENDING,
        OSLO: ShardStatus.PENDING,
        PARIS: ShardStatus.SUCCEEDED,
        ROME: ShardStatus.PENDING,
    }
    assert (adopted[ROME].cursor, adopted[ROME].chunks, adopted[ROME].records) == ({"after": 20}, 1, 20)
    assert (adopted[ROME].watermark, adopted[ROME].params, adopted[PARIS].high_mark) == ("7", {"city": "rome"}, "9")
    assert (adopted[OSLO].failure, adopted[OSLO].attempt) == (None, 0)
    claimed = stores.shards.claim(second.id, ROME)
    assert (claimed.cursor, claimed.attempt) == ({"after": 20}, 1)


def test_pointers_are_copied_to_the_new_run_and_lead_to_the_same_bytes(stores: Stores) -> None:
    """The new run names the old run's artifacts as its own; the old run still names them too."""
    worked_on(stores, Origin())
    stores.runs.enter(RunId("run-1"), Step.FETCH, OVER)
    second = stores.runs.open(a_run("run-2"), POLICY)
    for kind in (ArtifactKind.RAW, ArtifactKind.ROWS):
        before = keys_of(stores.pointers.of(RunId("run-1"), kind))
        assert keys_of(stores.pointers.of(second.id, kind)) == [("run-2", key) for _, key in before]
        assert before
    assert stores.pointers.of(second.id, ArtifactKind.SPEC) == []


@pytest.mark.parametrize("is_over", [False, True])
def test_a_worker_taken_for_dead_can_write_nothing_more(stores: Stores, *, is_over: bool) -> None:
    """It wakes up, while its successor works or later, and finds every door closed; its shard is marked as failed."""
    run, rome = worked_on(stores, Origin())
    stores.runs.enter(RunId("run-1"), Step.FETCH, OVER)
    second = stores.runs.open(a_run("run-2"), POLICY)
    if is_over:
        stores.runs.end(second, RunEvent.CANCEL)
    late = rome.model_copy(update={"cursor": {"after": 40}, "chunks": 2})
    for write in (
        lambda: stores.shards.checkpoint(late, a_pointer(shard=ROME, seq=1), MINUTE),
        lambda: stores.shards.fail(rome, FAILURE),
        lambda: stores.pointers.add(a_pointer(shard=ROME, kind=ArtifactKind.ROWS), rome.token),
        lambda: stores.shards.plan(run, plans("graz"), {}),
    ):
        with pytest.raises(Fenced):
            write()
    left = {shard.key: shard for shard in stores.shards.of(run.id)}
    cause = left[ROME].failure
    assert left[ROME].status is ShardStatus.FAILED
    assert cause is not None
    assert cause.error == "TakenOver"
    assert (left[ROME].cursor, left[OSLO].failure, left[BERN].status) == ({"after": 20}, FAILURE, ShardStatus.PENDING)
    assert [pointer.ref.seq for pointer in stores.pointers.of(run.id, ArtifactKind.RAW, ROME)] == [0]


@pytest.mark.parametrize("event", [RunEvent.FAIL, RunEvent.END_PARTIAL])
def test_asking_again_outside_airflow_resumes_what_failed(stores: Stores, event: RunEvent) -> None:
    """The same command once more goes on where the last one gave up."""
    worked_on(stores, Origin())
    stores.runs.end(stores.runs.enter(RunId("run-1"), Step.SETTLE, MINUTE), event, FAILURE)
    second = stores.runs.open(a_run("run-2"), POLICY)
    assert [shard.key for shard in stores.shards.of(second.id)] == [BERN, OSLO, PARIS, ROME]


@pytest.mark.parametrize(("first", "second"), [(AIRFLOW, AIRFLOW), (AIRFLOW, Origin()), (Origin(), AIRFLOW)])
def test_a_dag_run_looks_at_the_supplier_anew(stores: Stores, first: Origin, second: Origin) -> None:
    """Tomorrow's DagRun must not publish what yesterday's failed one has fetched."""
    worked_on(stores, first)
    stores.runs.end(stores.runs.enter(RunId("run-1"), Step.SETTLE, MINUTE), RunEvent.FAIL, FAILURE)
    run = stores.runs.open(a_run("run-2", origin=second), POLICY)
    assert stores.shards.of(run.id) == []
    assert stores.pointers.of(run.id, ArtifactKind.RAW) == []


@pytest.mark.parametrize("event", [RunEvent.SUCCEED, RunEvent.CANCEL, RunEvent.PARK])
def test_a_run_that_is_over_or_waits_hands_nothing_over(stores: Stores, event: RunEvent) -> None:
    """What was published, rejected or is being looked at is fetched afresh by the next run."""
    worked_on(stores, Origin())
    stores.runs.end(stores.runs.enter(RunId("run-1"), Step.SETTLE, MINUTE), event)
    assert stores.shards.of(stores.runs.open(a_run("run-2"), POLICY).id) == []


def test_only_the_newest_earlier_run_counts(stores: Stores) -> None:
    """A failed run from before a success has nothing to give any more."""
    worked_on(stores, Origin())
    stores.runs.end(stores.runs.enter(RunId("run-1"), Step.SETTLE, MINUTE), RunEvent.FAIL, FAILURE)
    stores.runs.open(a_run("run-2"), POLICY)
    stores.runs.end(stores.runs.enter(RunId("run-2"), Step.SETTLE, MINUTE), RunEvent.SUCCEED)
    assert stores.shards.of(stores.runs.open(a_run("run-3"), POLICY).id) == []


def test_a_shard_without_a_fresh_checkpoint_is_handed_over_as_it_was_planned(stores: Stores) -> None:
    """Values and watermark are those of the plan it belongs to; nothing that was fetched of it counts."""
    worked_on(stores, Origin())
    stores.runs.enter(RunId("run-1"), Step.FETCH, OVER)
    bern = stores.shards.get(stores.runs.open(a_run("run-2"), POLICY).id, BERN)
    assert (bern.params, bern.watermark, bern.cursor, bern.chunks, bern.epoch) == ({"city": "bern"}, None, None, 0, 0)
    assert (bern.exhausted, bern.progress_at) == (False, None)


def test_planning_after_a_takeover_leaves_checkpoints_alone(stores: Stores) -> None:
    """Whoever plans once more, such as a worker of an older release, changes nothing that was handed over."""
    worked_on(stores, Origin())
    stores.runs.enter(RunId("run-1"), Step.FETCH, OVER)
    second = stores.runs.open(a_run("run-2"), POLICY)
    planned = {shard.key: shard for shard in stores.shards.plan(second, plans(PARIS, ROME, OSLO, BERN), {ROME: "9"})}
    assert planned[BERN].status is ShardStatus.PENDING
    assert (planned[ROME].watermark, planned[ROME].chunks) == ("7", 1)


@pytest.mark.parametrize(("event", "adopted"), [(RunEvent.SUCCEED, 0), (RunEvent.END_PARTIAL, 0), (RunEvent.FAIL, 4)])
def test_nothing_is_handed_over_once_a_later_run_of_the_sync_has_published(
    stores: Stores, event: RunEvent, adopted: int
) -> None:
    """What was fetched before that is older than what the table holds by then."""
    worked_on(stores, Origin())
    stores.runs.end(stores.runs.get(RunId("run-1")), RunEvent.FAIL, FAILURE)
    stores.runs.open(a_run("of-one-shard", request_key="another"), POLICY)
    stores.runs.end(stores.runs.enter(RunId("of-one-shard"), Step.SETTLE, MINUTE), event)
    assert len(stores.shards.of(stores.runs.open(a_run("run-2"), POLICY).id)) == adopted
