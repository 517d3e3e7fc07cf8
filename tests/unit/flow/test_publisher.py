"""Publishing: what is applied is what was approved, once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import ApprovalVoid, Fenced, NothingToReview, RedoNeeded, ReviewNotApproved, TargetMismatch
from sluice.flow.publisher import publish
from sluice.flow.reviewer import review
from sluice.flow.transformer import transform
from sluice.model.artifact import ArtifactKind
from sluice.model.base import ObjectKey, Token
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import APPROVALS, RunEvent, RunStatus, Step, Verdict
from sluice.model.run import Mode, Redrive
from tests.support.nouns import a_decision, a_reject
from tests.unit.fakes.ledger import MemoryLedger
from tests.unit.fakes.target import MemoryPublishing, MemoryTarget
from tests.unit.fakes.undoing import unpack
from tests.unit.flow.bench import Bench
from tests.unit.flow.workshop import JUNE, MAY, NORTH, RUN, SOUTH, Workshop


@pytest.mark.parametrize("verdict", sorted(APPROVALS))
def test_publishes_what_was_approved(verdict: Verdict) -> None:
    """The rows are in the table, the publication is kept, and incremental runs may go on behind them."""
    bench = Bench(verdict)
    publication = bench.publish()
    assert publication is not None
    assert publication.counts == {Outcome.CREATED: 2}
    assert sorted(bench.target.rows) == ["in north", "in south"]
    assert bench.target.ledger.published == [publication]
    assert {key: mark[:7] for key, mark in bench.marks().items()} == {NORTH: "2024-05", SOUTH: "2024-06"}
    run = bench.workshop.memory.runs[RUN]
    assert (run.status, run.step) == (RunStatus.RUNNING, Step.SETTLE)


@pytest.mark.parametrize("verdict", sorted(set(Verdict) - APPROVALS))
def test_nothing_else_is_published(verdict: Verdict) -> None:
    """Not what waits, nor what was turned down: table and watermarks stay, and settlement says why."""
    bench = Bench(verdict)
    with pytest.raises(ReviewNotApproved, match=f"is {verdict}"):
        bench.publish()
    assert (bench.target.rows, bench.target.ledger.published, bench.marks()) == ({}, [], {})
    assert bench.workshop.memory.runs[RUN].status is RunStatus.RUNNING


def test_a_run_without_a_review_publishes_nothing() -> None:
    """There is nothing that could have been approved."""
    workshop = Workshop()
    workshop.begin()
    with pytest.raises(NothingToReview):
        publish(workshop.services, RUN)


@pytest.mark.parametrize("change", [{"spec_hash": "6" * 64}, {"transformer_version": 2}])
def test_an_approval_of_something_else_is_void(change: dict[str, object]) -> None:
    """A review speaks of one diff under one spec; under another nothing is written, and the run is to be reviewed again."""
    bench = Bench()
    runs = bench.workshop.memory.runs
    runs[RUN] = runs[RUN].model_copy(update=change)
    with pytest.raises(ApprovalVoid, match="its spec or its table has changed since review"):
        bench.publish()
    assert (bench.target.rows, bench.marks()) == ({}, {})
    assert runs[RUN].status is RunStatus.RUNNING


def test_an_approval_of_another_diff_is_void() -> None:
    """The diff is part of the digest."""
    bench = Bench()
    reviews = bench.workshop.memory.reviews
    (approved,) = reviews.values()
    other = approved.diff.model_copy(update={"sha256": "0" * 64})
    reviews[approved.id] = approved.model_copy(update={"diff": other})
    with pytest.raises(ApprovalVoid):
        bench.publish()
    assert bench.target.rows == {}


def test_one_more_row_voids_the_approval() -> None:
    """Though the diff is as it was approved: nothing is written before all that is staged was reviewed."""
    bench = Bench(lost=NORTH)
    bench.workshop.bring_in(NORTH, ("in north", MAY))
    with pytest.raises(ApprovalVoid, match="what is staged, its spec or its table has changed"):
        bench.publish()
    assert (bench.target.rows, bench.target.ledger.published, bench.marks()) == ({}, [], {})


def test_more_deletions_than_were_let_through_are_not_committed() -> None:
    """The number of the decision is held against what the transaction is about to do."""
    bench = Bench()
    bench.publish()
    bench.review_again_without(NORTH)
    reviews = bench.workshop.memory.reviews
    latest = bench.services.reviews.latest(RUN)
    assert latest is not None
    reviews[latest.id] = latest.model_copy(update={"decision": a_decision(deletes_at_most=0)})
    with pytest.raises(ApprovalVoid, match=r"1 objects would be deleted, and review run-1\.\w+ lets 0 through"):
        bench.publish()
    assert sorted(bench.target.rows) == ["in north", "in south"]
    reviews[latest.id] = latest.model_copy(update={"decision": a_decision(deletes_at_most=1)})
    bench.publish()
    assert sorted(bench.target.rows) == ["in south", "new"]


def test_a_publication_is_found_and_not_repeated() -> None:
    """A second try writes nothing, and finishes what the first one, cut off behind its commit, had left."""
    bench = Bench()
    first = bench.publish()
    bench.workshop.memory.watermarks.clear()
    bench.target.rows.clear()
    with capture_logs() as logs:
        assert bench.publish() == first
    assert bench.target.ledger.published == [first]
    assert bench.target.rows == {}
    assert set(bench.marks()) == {NORTH, SOUTH}
    told = [entry["event"] for entry in logs]
    assert log_events.PUBLICATION_FOUND in told
    assert log_events.PUBLICATION_COMMITTED not in told


def test_a_publication_that_comes_to_light_under_the_lock_is_not_repeated() -> None:
    """Somebody else committed it after the ledger was asked and before the target was locked."""
    bench = Bench()
    first = bench.publish()
    bench.target.rows.clear()
    too_early = replace(bench.services, ledger=lambda _: MemoryLedger())
    assert publish(too_early, RUN) == first
    assert (bench.target.rows, bench.target.ledger.published) == ({}, [first])


def test_a_run_that_succeeded_moves_no_watermark() -> None:
    """Its task may be cleared long after younger runs have gone further."""
    bench = Bench()
    first = bench.publish()
    bench.workshop.memory.watermarks.clear()
    runs = bench.workshop.memory.runs
    runs[RUN] = runs[RUN].model_copy(update={"status": RunStatus.SUCCEEDED})
    assert bench.publish() == first
    assert bench.marks() == {}


def test_a_review_that_changes_nothing() -> None:
    """No publication is made, but what was looked at need not be asked for again."""
    bench = Bench()
    reviews = bench.workshop.memory.reviews
    (approved,) = reviews.values()
    nothing = approved.figures.model_copy(update={"outcomes": {}})
    reviews[approved.id] = approved.model_copy(update={"figures": nothing})
    assert bench.publish() is None
    assert bench.target.ledger.published == []
    assert set(bench.marks()) == {NORTH, SOUTH}


def test_a_table_that_no_longer_fits() -> None:
    """It is checked again before the transaction, and nothing is written."""
    bench = Bench()
    bench.target.trouble = TargetMismatch("hotels.id is integer, not text")
    with pytest.raises(TargetMismatch):
        bench.publish()
    assert (bench.target.ledger.published, bench.marks()) == ([], {})


def test_the_before_images_are_kept_with_the_run() -> None:
    """Under a pointer of the run, which the target is given."""
    bench = Bench()
    bench.publish()
    (undo,) = bench.services.pointers.of(RUN, ArtifactKind.UNDO)
    assert bench.target.undos == [undo]
    assert undo.records == 2
    assert set(unpack(bench.workshop.artifacts.get(undo)).values()) == {(None, None)}


def test_deletions_are_left_out_where_the_approval_left_them_out() -> None:
    """The rest of the diff is applied."""
    bench = Bench()
    bench.publish()
    (gone,) = [key for key in bench.target.rows if key == "in north"]
    bench.workshop.memory.runs.clear()
    bench.workshop.memory.shards.clear()
    bench.workshop.memory.pointers.clear()
    bench.workshop.memory.reviews.clear()
    bench.workshop.begin(mode=Mode.FULL)
    bench.workshop.bring_in(NORTH, ("new", JUNE))
    bench.workshop.bring_in(SOUTH, ("in south", JUNE))
    bench.review(Verdict.APPROVED_WITHOUT_DELETES)
    publication = bench.publish()
    assert publication is not None
    assert publication.counts == {Outcome.CREATED: 1}
    assert sorted(bench.target.rows) == [gone, "in south", "new"]


class Busy(MemoryTarget):
    """Lets something happen between the step's entry and its lock, once."""

    meanwhile: Callable[[], None] | None = None
    before_commit: Callable[[], object] | None = None

    @contextmanager
    def publishing(self, token: Token, patience: timedelta) -> Iterator[MemoryPublishing]:
        if self.meanwhile:
            self.meanwhile()
            self.meanwhile = None
        with super().publishing(token, patience) as publishing:
            publishing.after_apply = self.before_commit
            yield publishing


def busy(bench: Bench) -> Busy:
    """Put such a table in the place of the bench's."""
    target = Busy(bench.target.ledger, bench.target.clock)
    bench.workshop.target = bench.target = target
    bench.services = bench.workshop.services
    return target


def test_a_publication_of_another_request_is_only_a_queue() -> None:
    """It raised the fence after this worker had entered; whoever still has his run takes a newer token and publishes."""
    bench = Bench()
    target, memory = busy(bench), bench.workshop.memory

    def another_publishes() -> None:
        target.fence = memory.next_token()

    target.meanwhile = another_publishes
    bench.services.dead_letters.record(memory.runs[RUN], bench.workshop.shard(), [a_reject("in north")], "rejects-0")
    with capture_logs() as logs:
        assert bench.publish() is not None
    assert [entry["event"] for entry in logs].count(log_events.FENCE_RAISED) == 1
    assert target.fence == memory.runs[RUN].token
    assert set(bench.marks()) == {NORTH, SOUTH}
    assert bench.services.letter_desk.selected("hotels", Redrive(), 1) == []


def test_a_worker_who_lost_his_run_gets_no_newer_token() -> None:
    """The fence that his successor has raised stands for him: he publishes nothing and moves no watermark."""
    bench = Bench()
    target = busy(bench)

    def successor_publishes() -> None:
        target.fence = bench.services.runs.enter(RUN, Step.PUBLISH, bench.workshop.policy.lease_ttl).token

    target.meanwhile = successor_publishes
    with pytest.raises(Fenced):
        bench.publish()
    assert (target.rows, target.ledger.published, bench.marks()) == ({}, [], {})


def test_a_worker_taken_for_dead_before_his_commit_publishes_nothing() -> None:
    """Whatever happened under the lock: the lease is looked at once more before the commit."""
    bench = Bench()
    target = busy(bench)

    target.before_commit = bench.lose_the_run
    with pytest.raises(Fenced):
        bench.publish()
    assert (target.rows, target.ledger.published, bench.marks()) == ({}, [], {})


def test_other_before_images_are_another_artifact() -> None:
    """Those of a worker who is taken for dead, and of what the table held then, take nobody's place."""
    bench = Bench()
    target = busy(bench)

    target.before_commit = bench.lose_the_run
    with pytest.raises(Fenced):
        bench.publish()
    target.before_commit = None
    target.rows[ObjectKey("in north")] = {"id": "in north"}
    bench.publish()
    (undo,) = target.undos
    assert len({pointer.key for pointer in bench.services.pointers.of(RUN, ArtifactKind.UNDO)}) == 2
    assert unpack(bench.workshop.artifacts.get(undo))[ObjectKey("in north")] == ({"id": "in north"}, None)


def test_the_target_may_give_up_on_a_silent_worker() -> None:
    """As soon as the stage takes his step for stuck."""
    bench = Bench()
    bench.publish()
    assert bench.target.patience == bench.workshop.policy.no_progress_timeout


def test_an_approval_whose_diff_was_lost_counts_for_nothing() -> None:
    """Until the run is reviewed again, and then only if the diff is the same."""
    bench = Bench()
    bench.services.redos.review_again(bench.workshop.memory.runs[RUN])
    with pytest.raises(RedoNeeded, match=r"review run-1\.\w+ is void"):
        bench.publish()
    assert (bench.target.rows, bench.marks()) == ({}, {})
    review(bench.services, RUN)
    assert bench.publish() is not None


def test_rows_that_are_to_be_made_again_are_missed() -> None:
    """A publication without them would be less than what was approved."""
    bench = Bench()
    target = busy(bench)
    target.meanwhile = lambda: bench.services.redos.map_again(NORTH, [0], bench.workshop.memory.runs[RUN])
    with pytest.raises(RedoNeeded, match="the rows of shard north, chunk 0, were lost and are not made again yet"):
        bench.publish()
    assert (bench.target.rows, bench.marks()) == ({}, {})
    transform(bench.services, RUN, NORTH)
    assert bench.publish() is not None


def test_a_run_that_somebody_ended_publishes_nothing() -> None:
    """Though it was ended under the very token that its worker holds."""
    bench = Bench()
    target = busy(bench)

    def call_off() -> None:
        bench.services.runs.end(bench.services.runs.get(RUN), RunEvent.CANCEL)

    target.before_commit = call_off
    with pytest.raises(Fenced, match="was ended meanwhile"):
        bench.publish()
    assert (target.rows, target.ledger.published, bench.marks()) == ({}, [], {})
