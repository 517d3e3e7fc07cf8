"""What changes after an approval is reviewed again: published if policy lets it pass, asked about if not, but not for ever."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import ApprovalVoid, LedgerMoved, ReviewWaiting, SluiceError, SupplierRefused
from sluice.flow import redo
from sluice.flow.gate import decide
from sluice.flow.inline import resume_inline, run_inline
from sluice.model.base import ObjectKey, ShardKey, Token
from sluice.model.lifecycle import RunStatus, Verdict
from sluice.model.review import Review
from sluice.model.run import Mode, Origin, ReviewMode, Run, RunRequest
from tests.support.nouns import a_decision
from tests.unit.fakes.source import RegionalSource
from tests.unit.fakes.target import MemoryPublishing, MemoryTarget
from tests.unit.flow.workshop import JUNE, MAY, NORTH, RUN, SOUTH, Workshop, page, sync_spec

TRUSTING = {"first_load": "auto-approve", "auto_approve": {"created": "100%", "changed": "100%"}}


@dataclass
class MovingTarget(MemoryTarget):
    """A table whose ledger moves undecidably before a publication, so many times."""

    moves: int = 0
    trouble_of_load: type[SluiceError] = LedgerMoved

    @contextmanager
    def publishing(self, token: Token, patience: timedelta) -> Iterator[MemoryPublishing]:
        with super().publishing(token, patience) as publishing:
            if self.moves:
                self.moves -= 1
                raise self.trouble_of_load
            yield publishing


class Bench:
    """A run of which one shard was lost, and whose review a person has approved."""

    def __init__(self, review: ReviewMode = ReviewMode.ALWAYS, policy: dict[str, Any] | None = None) -> None:
        self.workshop = Workshop(spec=sync_spec(review=policy or TRUSTING))
        self.target = MovingTarget(self.workshop.equip().ledger, self.workshop.memory.clock)
        self.workshop.target = self.target
        self.services = self.workshop.services
        self.workshop.begin(mode=Mode.FULL, review=review)
        self.workshop.lose(NORTH)
        self.workshop.bring_in(SOUTH, ("c", JUNE))
        redo.review(self.services, RUN)

    def approve(self) -> Review:
        """Let a person approve what waits."""
        (waiting,) = self.services.reviews.waiting()
        return decide(self.services, waiting.id, a_decision())

    def latest(self) -> Review:
        """The newest review."""
        found = self.services.reviews.latest(RUN)
        assert found is not None
        return found

    def held(self) -> list[ObjectKey]:
        """What the table holds."""
        return sorted(self.target.rows)


def test_a_shard_that_comes_in_after_the_approval_is_asked_about() -> None:
    """Publishing refuses and asks: the run waits for the new review, and the old approval lets nothing pass."""
    bench = Bench()
    old = bench.approve()
    bench.workshop.bring_in(NORTH, ("a", MAY))
    with pytest.raises(ReviewWaiting) as asked:
        redo.publish(bench.services, RUN)
    new = bench.latest()
    assert (asked.value.review, new.verdict, new.id == old.id) == (new.id, Verdict.NEEDS_HUMAN, False)
    assert (bench.held(), bench.target.ledger.published) == ([], [])
    assert bench.workshop.memory.runs[RUN].status is RunStatus.WAITING
    with pytest.raises(ReviewWaiting):
        redo.publish(bench.services, RUN)
    bench.approve()
    published = redo.publish(bench.services, RUN)
    assert published is not None
    assert (published.review, bench.held()) == (new.id, ["a", "c"])


def test_what_a_person_let_pass_is_asked_about_again_though_policy_alone_would_let_it_pass() -> None:
    """Whoever approved without deletions, or with a number in mind, did not mean what is there now."""
    bench = Bench()
    approved = bench.approve()
    runs = bench.workshop.memory.runs
    runs[RUN] = runs[RUN].model_copy(update={"review": ReviewMode.POLICY})
    bench.workshop.bring_in(NORTH, ("a", MAY))
    for _ in range(2):
        with pytest.raises(ReviewWaiting):
            redo.publish(bench.services, RUN)
        assert redo.review(bench.services, RUN) == bench.latest()
    assert bench.latest().reasons == ("it is not what ada let pass before: something has changed since",)
    assert (bench.latest().id == approved.id, bench.held()) == (False, [])
    bench.approve()
    assert redo.publish(bench.services, RUN) is not None


def test_what_was_published_meanwhile_is_no_reason_to_ask() -> None:
    """A person let the first part pass, and it is in the table; the rest is for policy to judge."""
    bench = Bench()
    bench.approve()
    redo.publish(bench.services, RUN)
    runs = bench.workshop.memory.runs
    runs[RUN] = runs[RUN].model_copy(update={"review": ReviewMode.POLICY})
    bench.workshop.bring_in(NORTH, ("a", MAY))
    assert redo.review(bench.services, RUN).verdict is Verdict.AUTO_APPROVED
    redo.publish(bench.services, RUN)
    assert bench.held() == ["a", "c"]


def test_a_table_that_lacks_something_else_by_now_is_asked_about() -> None:
    """An approval is of the statements that were shown, too."""
    bench = Bench()
    bench.target.planned = ("alter table hotels add column stars text",)
    redo.review(bench.services, RUN)
    bench.approve()
    bench.target.planned = ("alter table hotels add column stars text", "alter table hotels add column rooms integer")
    with pytest.raises(ReviewWaiting):
        redo.publish(bench.services, RUN)
    bench.approve()
    assert redo.publish(bench.services, RUN) is not None


def test_what_policy_lets_pass_is_published_without_asking() -> None:
    """A shard that came in late only makes the run whole."""
    bench = Bench(ReviewMode.POLICY)
    first = bench.latest()
    bench.workshop.bring_in(NORTH, ("a", MAY))
    with capture_logs() as logs:
        published = redo.publish(bench.services, RUN)
    assert published is not None
    assert (published.review == first.id, bench.held()) == (False, ["a", "c"])
    repeated = [entry["message"] for entry in logs if entry["event"] == log_events.STEP_REPEATED]
    assert repeated == [f"what is staged, its spec or its table has changed since review {first.id}: {ApprovalVoid.__doc__}"]


def test_a_ledger_that_moved_is_held_against_the_run_again() -> None:
    """If the diff is the same all the same, the approval of it stands."""
    bench = Bench()
    approved = bench.approve()
    bench.target.moves = 1
    published = redo.publish(bench.services, RUN)
    assert published is not None
    assert (published.review, bench.held()) == (approved.id, ["c"])


@pytest.mark.parametrize("error", [LedgerMoved, ApprovalVoid])
def test_what_moves_again_and_again_is_left_for_a_later_try(error: type[SluiceError]) -> None:
    """The step fails as one that may be repeated, and the run with its approval is none the worse for it."""
    bench = Bench()
    bench.approve()
    bench.target.moves, bench.target.trouble_of_load = redo.MOST_REDOS + 1, error
    with pytest.raises(error):
        redo.publish(bench.services, RUN)
    assert (bench.held(), bench.workshop.memory.runs[RUN].status) == ([], RunStatus.RUNNING)
    assert redo.publish(bench.services, RUN) is not None


class InlineBench:
    """Runs without a scheduler, of a supplier with two regions."""

    def __init__(self, **policy: Any) -> None:
        self.workshop = Workshop(spec=sync_spec(review={**TRUSTING, **policy}))
        self.target = self.workshop.equip()
        self.services = self.workshop.services

    def bring(self, north: tuple[Any, ...], south: tuple[Any, ...] = (), **request: Any) -> Run:
        """Run the sync with these hotels."""
        answers: dict[str, Any] = {"north": (page(1, *north, is_last=True),), "south": (page(1, *south, is_last=True),)}
        self.workshop.supplier = RegionalSource(**answers)
        return run_inline(self.services, RunRequest(sync="hotels", mode=Mode.FULL, origin=Origin(), **request))

    def review_of(self, run: Run) -> Review:
        """The newest review of a run."""
        found = self.services.reviews.latest(run.id)
        assert found is not None
        return found


def test_an_inline_run_whose_approval_is_void_waits_again() -> None:
    """It does not fail: the command that approved ends with a question about what is there now."""
    bench = InlineBench()
    waiting = bench.bring((("a", MAY),), (("c", MAY),), review=ReviewMode.ALWAYS)
    decide(bench.services, bench.review_of(waiting).id, a_decision())
    bench.services.redos.fetch_again(NORTH, bench.services.runs.get(waiting.id))
    bench.workshop.supplier = RegionalSource(north=(page(1, ("a", MAY), ("b", MAY), is_last=True),))
    again = resume_inline(bench.services, waiting.id)
    assert (again.id, again.status, bench.target.rows) == (waiting.id, RunStatus.WAITING, {})
    decide(bench.services, bench.review_of(again).id, a_decision())
    assert resume_inline(bench.services, waiting.id).status is RunStatus.SUCCEEDED
    assert sorted(bench.target.rows) == ["a", "b", "c"]


def test_a_review_that_waits_holds_up_nobody_and_gives_way_to_a_newer_one() -> None:
    """The next run goes through all its steps; the older one is over at once, and names what has taken its place."""
    bench = InlineBench()
    older = bench.bring((("a", MAY),), review=ReviewMode.ALWAYS)
    assert older.status is RunStatus.WAITING
    newer = bench.bring((("a", MAY), ("b", MAY)))
    assert (newer.status, sorted(bench.target.rows)) == (RunStatus.SUCCEEDED, ["a", "b"])
    ended = bench.services.runs.get(older.id)
    assert ended.failure is not None
    assert (ended.status, bench.review_of(older).verdict) == (RunStatus.CANCELLED, Verdict.SUPERSEDED)
    assert ended.failure.message == f"review {bench.review_of(older).id} was superseded by review {bench.review_of(newer).id}"
    assert bench.workshop.gates.closed == [(older.id, bench.review_of(newer).id)]


def test_a_review_that_is_not_covered_waits_beside_a_newer_one() -> None:
    """A run of one region says nothing about the other."""
    bench = InlineBench()
    older = bench.bring((("a", MAY),), (("c", MAY),), review=ReviewMode.ALWAYS)
    newer = bench.bring((("a", MAY), ("b", MAY)), shards=(ShardKey("north"),))
    assert newer.status is RunStatus.SUCCEEDED
    assert (bench.services.runs.get(older.id).status, bench.workshop.gates.closed) == (RunStatus.WAITING, [])
    decide(bench.services, bench.review_of(older).id, a_decision())
    assert resume_inline(bench.services, older.id).status is RunStatus.SUCCEEDED


def test_a_shard_that_is_lost_leaves_the_older_review_waiting() -> None:
    """The newer run has not looked at all that the older one had."""
    bench = InlineBench()
    older = bench.bring((("a", MAY),), (("c", MAY),), review=ReviewMode.ALWAYS)
    bench.workshop.supplier = RegionalSource(
        north=(page(1, ("a", MAY), is_last=True),), south=(SupplierRefused("403 Forbidden"),)
    )
    partial = run_inline(bench.services, RunRequest(sync="hotels", mode=Mode.FULL, origin=Origin()))
    assert (partial.status, bench.services.runs.get(older.id).status) == (RunStatus.PARTIAL, RunStatus.WAITING)
