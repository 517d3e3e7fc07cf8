"""The contract of `ByHandStore`, and of the entries that it leaves in the audit trail."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from sluice.errors import CalledOff, Fenced, FlightTaken, IllegalTransition, NotFound, StoppedByHand
from sluice.model.artifact import ArtifactKind
from sluice.model.audit import Act, Actor
from sluice.model.base import PublicationId, RunId, ShardKey
from sluice.model.lifecycle import RunEvent, RunStatus, ShardStatus, Step, Verdict
from sluice.model.review import Choice
from sluice.model.run import Failure, Mode, Origin, Redrive
from sluice.model.shard import Shard
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, POLICY, a_decision, a_pointer, a_review, a_run, plans

RUN, PARIS, ROME = RunId("run-1"), ShardKey("paris"), ShardKey("rome")
ADA = Actor(name="ada", via="cli", reason="it hangs")
IN_AIRFLOW = Origin(dag_id="sluice_hotels", dag_run_id="manual")
FAILED = Failure(error="AnswerNotJson", message="<html>")


class Bench:
    """A run in Airflow, two shards planned; of Paris a worker has fetched the first chunk, and is at the second."""

    def __init__(self, stores: Stores) -> None:
        self.stores = stores
        stores.runs.open(a_run(origin=IN_AIRFLOW), POLICY)
        self.run = stores.runs.enter(RUN, Step.SHARD, MINUTE)
        stores.shards.plan(self.run, plans(PARIS, ROME), {})
        self.worker = self.fetched(stores.shards.claim(RUN, PARIS), is_last=False)

    def fetched(self, shard: Shard, *, is_last: bool) -> Shard:
        """Bring one more chunk in."""
        come = {"cursor": shard.chunks, "exhausted": is_last, "chunks": shard.chunks + 1, "pages": shard.pages + 3}
        pointer = a_pointer(shard=shard.key, seq=shard.chunks)
        return self.stores.shards.checkpoint(shard.model_copy(update=come), pointer, MINUTE)

    def bring_in(self, key: ShardKey) -> Shard:
        """Bring all of a shard in."""
        return self.stores.shards.succeed(self.fetched(self.stores.shards.claim(RUN, key), is_last=True))

    def shard(self, key: ShardKey = PARIS) -> Shard:
        """The shard as it stands."""
        return self.stores.shards.get(RUN, key)

    def acts(self) -> list[tuple[Act, str | None]]:
        """What the audit trail tells of the run, oldest first."""
        return [(entry.act, entry.subject) for entry in reversed(self.stores.audit.of(None, RUN, 10))]


@pytest.fixture
def bench(stores: Stores) -> Bench:
    """A run that is being fetched."""
    return Bench(stores)


ACTS: dict[Act, Callable[[Stores], Shard]] = {
    Act.RESET_SHARD: lambda stores: stores.by_hand.reset_shard(RUN, PARIS, ADA),
    Act.SKIP_SHARD: lambda stores: stores.by_hand.skip_shard(RUN, PARIS, ADA),
    Act.STOP_SHARD: lambda stores: stores.by_hand.stop_shard(RUN, PARIS, ADA),
}


@pytest.mark.parametrize("act", ACTS)
def test_whoever_works_on_the_shard_is_fenced(bench: Bench, act: Act) -> None:
    """Nothing that a worker writes after the act counts; the act again changes nothing, and is told once."""
    done = ACTS[act](bench.stores)
    for write in (
        lambda: bench.fetched(bench.worker, is_last=True),
        lambda: bench.stores.shards.fail(bench.worker, FAILED),
        lambda: bench.stores.shards.renew(bench.worker, MINUTE),
    ):
        with pytest.raises(Fenced):
            write()
    assert ACTS[act](bench.stores) == done == bench.shard()
    assert bench.acts() == [(act, PARIS)]
    (entry,) = bench.stores.audit.of("hotels", None, 10)
    assert (entry.by, entry.run, entry.facts) == (ADA, RUN, {"status": "running", "pages": 3, "records": 0})


def test_a_shard_that_is_reset_begins_from_its_first_page(bench: Bench) -> None:
    """In a new epoch, and what was fetched of it counts no more; it can be claimed at once."""
    reset = bench.stores.by_hand.reset_shard(RUN, PARIS, ADA)
    assert (reset.status, reset.epoch, reset.cursor, reset.chunks) == (ShardStatus.PENDING, 1, None, 0)
    assert bench.stores.pointers.of(RUN, ArtifactKind.RAW) == []
    assert bench.stores.shards.claim(RUN, PARIS).status is ShardStatus.RUNNING


def test_a_shard_that_is_stopped_keeps_what_has_come_and_is_left_alone(bench: Bench) -> None:
    """Neither a retry nor a helper claims it, until its DagRun is cleared; then it goes on from its cursor."""
    stopped = bench.stores.by_hand.stop_shard(RUN, PARIS, ADA)
    told = Failure(error="StoppedByHand", message="stopped by ada (cli): it hangs")
    assert (stopped.status, stopped.failure, stopped.cursor, stopped.chunks) == (ShardStatus.FAILED, told, 0, 1)
    with pytest.raises(StoppedByHand, match=r"ada .*it hangs"):
        bench.stores.shards.claim(RUN, PARIS)
    helped = bench.stores.shards.claim_next(RUN)
    assert helped is not None
    assert (helped.key, bench.stores.shards.claim_next(RUN)) == (ROME, None)
    bench.stores.by_hand.note_clearing(RUN, 1)
    assert (bench.stores.shards.claim(RUN, PARIS).cursor, bench.shard().failure) == (0, None)


def test_stopping_again_after_a_clearing_is_another_act(bench: Bench) -> None:
    """A person may change their mind as often as they like."""
    bench.stores.by_hand.stop_shard(RUN, PARIS, ADA)
    bench.stores.by_hand.note_clearing(RUN, 1)
    bench.stores.by_hand.stop_shard(RUN, PARIS, ADA)
    with pytest.raises(StoppedByHand):
        bench.stores.shards.claim(RUN, PARIS)
    assert bench.acts() == [(Act.STOP_SHARD, PARIS)] * 2


def test_a_reset_undoes_a_stop_and_a_skip(bench: Bench) -> None:
    """What was stopped or skipped can be claimed again."""
    for act in (Act.STOP_SHARD, Act.SKIP_SHARD):
        ACTS[act](bench.stores)
        assert bench.stores.by_hand.reset_shard(RUN, PARIS, ADA).status is ShardStatus.PENDING
        assert bench.stores.shards.claim(RUN, PARIS).status is ShardStatus.RUNNING


def test_nothing_is_reset_of_which_nothing_was_fetched(bench: Bench) -> None:
    """It would begin from its first page anyway."""
    assert bench.stores.by_hand.reset_shard(RUN, ROME, ADA).epoch == 0
    assert bench.acts() == []


def test_what_has_come_in_is_neither_skipped_nor_stopped(bench: Bench) -> None:
    """A shard's own success that was faster stands, and what may be done instead is named."""
    bench.stores.shards.succeed(bench.fetched(bench.worker, is_last=True))
    for act in (Act.SKIP_SHARD, Act.STOP_SHARD):
        with pytest.raises(IllegalTransition, match=r"has come in.*review"):
            ACTS[act](bench.stores)
    assert (bench.shard().status, bench.acts()) == (ShardStatus.SUCCEEDED, [])


def test_a_run_that_is_cancelled_stays_so_until_its_dag_run_is_cleared(bench: Bench) -> None:
    """Its flight is free, and no retry enters it or claims a shard; once it is cleared, it goes on where it stood."""
    stores = bench.stores
    cancelled = stores.by_hand.cancel_run(RUN, ADA)
    told = Failure(error="CalledOff", message="cancelled by ada (cli): it hangs")
    assert (cancelled.status, cancelled.failure) == (RunStatus.CANCELLED, told)
    assert (bench.shard().status, bench.shard().cursor, stores.by_hand.leases()) == (ShardStatus.FAILED, 0, [])
    assert stores.by_hand.cancel_run(RUN, ADA) == cancelled
    for attempt in (
        lambda: stores.runs.enter(RUN, Step.REVIEW, MINUTE),
        lambda: stores.shards.claim(RUN, ROME),
        lambda: stores.shards.claim_next(RUN),
        lambda: stores.runs.renew(bench.run, MINUTE),
        lambda: bench.fetched(bench.worker, is_last=True),
    ):
        with pytest.raises(Fenced):
            attempt()
    with pytest.raises(CalledOff):
        stores.runs.enter(RUN, Step.FETCH, MINUTE)
    assert (stores.by_hand.leases(), bench.acts()) == ([], [(Act.CANCEL_RUN, None)])
    stores.by_hand.note_clearing(RUN, 1)
    assert stores.runs.enter(RUN, Step.FETCH, MINUTE).status is RunStatus.RUNNING
    assert stores.shards.claim(RUN, PARIS).cursor == 0


def test_a_run_that_was_cleared_is_cancelled_again(bench: Bench) -> None:
    """No task that the clearing has woken goes on with it, until it is cleared once more; the reason is the newer one."""
    stores = bench.stores
    stores.by_hand.cancel_run(RUN, ADA)
    stores.by_hand.note_clearing(RUN, 1)
    again = stores.by_hand.cancel_run(RUN, ADA.model_copy(update={"reason": "still"}))
    assert again.failure == Failure(error="CalledOff", message="cancelled by ada (cli): still")
    assert (stores.by_hand.cancel_run(RUN, ADA), bench.acts()) == (again, [(Act.CANCEL_RUN, None)] * 2)
    with pytest.raises(CalledOff):
        stores.runs.enter(RUN, Step.FETCH, MINUTE)
    stores.by_hand.note_clearing(RUN, 2)
    assert stores.runs.enter(RUN, Step.FETCH, MINUTE).status is RunStatus.RUNNING


def test_the_reviews_of_a_cancelled_run_are_rejected(bench: Bench) -> None:
    """By whoever cancelled it, so that no answer that comes later counts; an approval in hand publishes nothing either."""
    stores = bench.stores
    stores.reviews.save(a_review("r1"), bench.run)
    stores.runs.end(bench.run, RunEvent.PARK)
    stores.by_hand.cancel_run(RUN, ADA)
    rejected = stores.reviews.get(a_review("r1").id)
    assert rejected.decision is not None
    assert (rejected.verdict, rejected.decision.by) == (Verdict.REJECTED, "ada")
    assert rejected.decision.comment == "its run was cancelled: it hangs"
    with pytest.raises(IllegalTransition):
        stores.reviews.decide(rejected.id, a_decision(Choice.APPROVE, by="eve"))
    assert bench.acts() == [(Act.CANCEL_RUN, None), (Act.DECIDE_REVIEW, "r1")]


def test_followers_end_as_the_cancelled_run_does(bench: Bench) -> None:
    """One that is cancelled itself follows nobody any more, and its admission is not repeated."""
    stores = bench.stores
    for name in ("run-2", "run-3"):
        assert stores.runs.open(a_run(name), POLICY).is_following
    stores.by_hand.cancel_run(RunId("run-3"), ADA)
    assert stores.runs.open(a_run("run-3"), POLICY).status is RunStatus.CANCELLED
    stores.by_hand.cancel_run(RUN, ADA)
    follower = stores.runs.open(a_run("run-2"), POLICY)
    assert (follower.status, follower.follows) == (RunStatus.CANCELLED, RUN)
    assert stores.runs.open(a_run("run-4"), POLICY).status is RunStatus.PENDING


def test_a_run_that_has_succeeded_is_over(bench: Bench) -> None:
    """What is published by it is taken back otherwise."""
    bench.stores.shards.succeed(bench.fetched(bench.worker, is_last=True))
    bench.bring_in(ROME)
    bench.stores.runs.end(bench.run, RunEvent.SUCCEED)
    for act in (*ACTS.values(), lambda stores: stores.by_hand.cancel_run(RUN, ADA)):
        with pytest.raises(IllegalTransition, match=r"has succeeded.*sluice rollback"):
            act(bench.stores)
    assert bench.acts() == []


def test_what_is_not_there(bench: Bench) -> None:
    """Neither an unknown run nor an unknown shard is acted upon, and no flight is left behind."""
    for key in ("nowhere", "nowhere\0", "nowhere\ud800"):
        with pytest.raises(NotFound, match="nowhere"):
            bench.stores.by_hand.stop_shard(RUN, ShardKey(key), ADA)
    with pytest.raises(NotFound, match="run-9"):
        bench.stores.by_hand.cancel_run(RunId("run-9"), ADA)
    with pytest.raises(NotFound, match="nothing:of:that"):
        bench.stores.by_hand.release_lease("nothing:of:that", lambda _: MINUTE, ADA)


def test_an_act_neither_takes_a_flight_nor_prolongs_it(bench: Bench) -> None:
    """A person at a keyboard is no sign of the worker's life; where nobody has the flight, nobody has it afterwards."""
    (before,) = bench.stores.by_hand.leases()
    bench.stores.by_hand.stop_shard(RUN, PARIS, ADA)
    assert bench.stores.by_hand.leases() == [before]
    bench.stores.runs.end(bench.run, RunEvent.PARK)
    bench.stores.by_hand.stop_shard(RUN, ROME, ADA)
    assert bench.stores.by_hand.leases() == []


def test_a_live_worker_keeps_its_lease(bench: Bench) -> None:
    """It has shown life just now; once it has been silent for two heartbeats it is dead, and the flight is free at once."""
    stores, key = bench.stores, bench.run.request_key
    with pytest.raises(IllegalTransition, match=r"not dead.*sluice cancel run-1"):
        stores.by_hand.release_lease(key, lambda _: MINUTE, ADA)
    with pytest.raises(FlightTaken):
        raise_taken(stores)
    stores.let_pass(timedelta(seconds=31))
    released = stores.by_hand.release_lease(key, lambda _: timedelta(seconds=15), ADA)
    assert released is not None
    assert (released.owner, released.is_expired) == (RUN, False)
    for write in (lambda: bench.fetched(bench.worker, is_last=True), lambda: stores.runs.renew(bench.run, MINUTE)):
        with pytest.raises(Fenced):
            write()
    assert stores.by_hand.release_lease(key, lambda _: MINUTE, ADA) is None
    assert bench.acts() == [(Act.RELEASE_LEASE, key)]
    assert stores.runs.open(a_run("run-2"), POLICY).status is RunStatus.PENDING


def raise_taken(stores: Stores) -> None:
    """Let another run of the request try to work."""
    stores.runs.open(a_run("run-2"), POLICY)
    stores.runs.enter(RunId("run-2"), Step.SHARD, MINUTE)


def test_policy_is_in_the_trail_too(bench: Bench) -> None:
    """What it approves by itself, and what a newer review supersedes, is told beside what people decide."""
    stores = bench.stores
    stores.reviews.save(a_review("r1"), bench.run)
    stores.reviews.save(a_review("r2", verdict=Verdict.AUTO_APPROVED, reasons=()), bench.run)
    told = [(entry.by.name, entry.subject, entry.facts["verdict"]) for entry in stores.audit.of(None, RUN, 10)]
    assert sorted(told) == [("policy", "r1", "superseded"), ("policy", "r2", "auto-approved")]


def test_whoever_asks_for_what_does_not_rest_on_others_is_in_the_trail(bench: Bench) -> None:
    """A forced run, a rollback, a redrive; once, however often it is admitted. An ordinary run is nobody's act."""
    stores = bench.stores
    asked = {
        "forced": {"force": True},
        "back": {"mode": Mode.ROLLBACK, "undoes": PublicationId(7)},
        "again": {"mode": Mode.REDRIVE, "redrives": Redrive(cause="type:rooms")},
        "plain": {},
    }
    for name, changes in asked.items():
        for _ in range(2):
            stores.runs.open(a_run(name, request_key=name, **changes), POLICY, ADA)
    stores.audit.note(Act.REDRIVE, ADA, "hotels", {"letters": [1]}, RunId("asked"))
    airflow = Actor(name="sluice", via="airflow")
    stores.runs.open(a_run("asked", request_key="asked", mode=Mode.REDRIVE, redrives=Redrive(letters=(1,))), POLICY, airflow)
    found = stores.audit.of("hotels", None, 10)[::-1]
    assert [(entry.act, entry.run, entry.subject) for entry in found] == [
        (Act.FORCE_RUN, "forced", None),
        (Act.ROLL_BACK, "back", "7"),
        (Act.REDRIVE, "again", None),
        (Act.REDRIVE, "asked", None),
    ]
    assert (found[2].facts["cause"], {entry.by for entry in found}) == ("type:rooms", {ADA})
