"""The gate: what waits is parked and frees its flight, what need not wait goes on, and a review is decided once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import DecisionRefused, IllegalTransition, NotFound, NothingToReview
from sluice.flow.gate import decide, hold
from sluice.model.base import ReviewId, RunId
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import WAITING_VERDICTS, RunStatus, Step, Verdict
from sluice.model.review import LONGEST_COMMENT, Choice, Figures, Review
from sluice.model.run import Failure, Origin
from tests.support.nouns import a_decision, a_review, a_run
from tests.unit.fakes.review_store import MemoryReviewStore
from tests.unit.flow.workshop import RUN, Workshop, sync_spec

R = ReviewId("r")


def reviewed(verdict: Verdict = Verdict.NEEDS_HUMAN, deleted: int = 0, **policy: Any) -> Workshop:
    """A workshop whose run has a review, of so many deletions out of a hundred objects."""
    workshop = Workshop(spec=sync_spec(review=policy))
    figures = Figures(seen=10, unchanged=7, live_before=100, outcomes={Outcome.CHANGED: 2, Outcome.DELETED: deleted})
    made = a_review("r", verdict=verdict, figures=figures, created_at=workshop.memory.clock.now())
    workshop.services.reviews.save(made, workshop.begin())
    return workshop


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_what_waits_is_parked(verdict: Verdict) -> None:
    """A parked run holds no flight; any other goes on with the one it has."""
    workshop = reviewed(verdict)
    with capture_logs() as logs:
        assert hold(workshop.services, RUN) == workshop.memory.reviews[R]
    waits = verdict in WAITING_VERDICTS
    run = workshop.memory.runs[RUN]
    assert (run.status, run.step) == (RunStatus.WAITING if waits else RunStatus.RUNNING, Step.GATE)
    assert (workshop.memory.leases == {}) is waits
    parked = [entry for entry in logs if entry["event"] == log_events.RUN_PARKED]
    assert [(entry["review"], entry["reasons"]) for entry in parked] == [("r", ["first load"])] * waits


def test_holding_twice() -> None:
    """A task of the gate that is repeated finds the run waiting, and leaves it so."""
    workshop = reviewed()
    hold(workshop.services, RUN)
    hold(workshop.services, RUN)
    assert (workshop.memory.runs[RUN].status, workshop.memory.leases) == (RunStatus.WAITING, {})


def test_a_run_that_succeeded_is_not_parked() -> None:
    """Its gate may be cleared in Airflow; it is over all the same."""
    workshop = reviewed()
    runs = workshop.memory.runs
    runs[RUN] = ended = runs[RUN].model_copy(update={"status": RunStatus.SUCCEEDED})
    hold(workshop.services, RUN)
    assert runs[RUN] == ended


def test_a_run_without_a_review() -> None:
    """There is nothing to hold; settlement will say why."""
    workshop = Workshop()
    workshop.begin()
    with pytest.raises(NothingToReview, match="run-1 has no review yet"):
        hold(workshop.services, RUN)
    assert workshop.memory.runs[RUN].status is RunStatus.RUNNING


def test_a_decision_is_recorded_and_told() -> None:
    """With who gave it, and by which way."""
    workshop = reviewed()
    with capture_logs() as logs:
        decided = decide(workshop.services, R, a_decision(Choice.APPROVE_WITHOUT_DELETES))
    assert decided == workshop.memory.reviews[R]
    assert (decided.verdict, decided.decision) == (
        Verdict.APPROVED_WITHOUT_DELETES,
        a_decision(Choice.APPROVE_WITHOUT_DELETES),
    )
    assert logs == [
        {
            "event": log_events.REVIEW_DECIDED,
            "log_level": "info",
            "sync": "hotels",
            "run": RUN,
            "review": "r",
            "verdict": Verdict.APPROVED_WITHOUT_DELETES,
            "by": "ada",
            "via": "cli",
        }
    ]


def test_deciding_twice() -> None:
    """The same answer again changes nothing, its giver included; another answer comes too late."""
    workshop = reviewed()
    first = decide(workshop.services, R, a_decision())
    assert decide(workshop.services, R, a_decision(by="bob")) == first
    with pytest.raises(IllegalTransition, match="review r is approved, by ada"):
        decide(workshop.services, R, a_decision(Choice.REJECT, by="bob"))
    assert workshop.memory.reviews[R] == first


def test_a_decision_about_nothing() -> None:
    """A review that nobody made is named."""
    with pytest.raises(NotFound, match="there is no review r"):
        decide(Workshop().services, R, a_decision())


def test_an_approval_without_a_number_is_of_the_deletions_reviewed() -> None:
    """As many as there are, if policy does not take them for too many."""
    workshop = reviewed(deleted=20)
    decided = decide(workshop.services, R, a_decision())
    assert (decided.decision, decided.deletions_allowed) == (a_decision(), 20)


@pytest.mark.parametrize("number", [21, 22, 2**40])
def test_a_mass_deletion_is_let_through_by_its_number(number: int) -> None:
    """The number is kept, and is what a publication may delete at most."""
    workshop = reviewed(Verdict.BLOCKED, deleted=21)
    decided = decide(workshop.services, R, a_decision(deletes_at_most=number))
    assert (decided.verdict, decided.deletions_allowed) == (Verdict.APPROVED, number)


@pytest.mark.parametrize(
    ("deleted", "number", "why"),
    [
        (21, None, r"review r deletes 21 of 100 objects, more than block.deleted allows \(20%\), so the approval has to name"),
        (
            21,
            20,
            "review r deletes 21 objects, more than 20: approve with deletes_at_most 21 or more, approve without deletions",
        ),
        (21, 0, "review r deletes 21 objects, more than 0: "),
        (5, 4, "review r deletes 5 objects, more than 4: "),
    ],
)
def test_an_approval_of_fewer_deletions_is_refused(deleted: int, number: int | None, why: str) -> None:
    """Nothing is recorded, the review keeps waiting, and the person is told what to answer."""
    workshop = reviewed(Verdict.BLOCKED, deleted=deleted)
    before = workshop.memory.reviews[R]
    with pytest.raises(DecisionRefused, match=why):
        decide(workshop.services, R, a_decision(deletes_at_most=number))
    assert workshop.memory.reviews[R] == before
    assert decide(workshop.services, R, a_decision(deletes_at_most=deleted)).verdict is Verdict.APPROVED


@pytest.mark.parametrize("choice", [Choice.APPROVE_WITHOUT_DELETES, Choice.REJECT])
def test_no_number_belongs_to_an_answer_that_deletes_nothing(choice: Choice) -> None:
    """It is taken all the same, and the number is left out."""
    workshop = reviewed(Verdict.BLOCKED, deleted=21)
    decided = decide(workshop.services, R, a_decision(choice, deletes_at_most=7))
    assert decided.decision == a_decision(choice)


def test_a_long_comment_is_cut() -> None:
    """It is a remark, and no place to keep things."""
    workshop = reviewed()
    decided = decide(workshop.services, R, a_decision(comment="x" * (LONGEST_COMMENT + 1)))
    assert decided.decision == a_decision(comment="x" * LONGEST_COMMENT)


@pytest.mark.parametrize("choice", [Choice.APPROVE, Choice.APPROVE_WITHOUT_DELETES, Choice.REJECT])
def test_only_approvers_decide(choice: Choice) -> None:
    """Whoever is none of them is told who may; Airflow has looked by itself who answers there."""
    workshop = reviewed(approvers=["ada", "grace"])
    with pytest.raises(DecisionRefused, match=r"bob may not decide about review r: ada, grace may \(review.approvers\)"):
        decide(workshop.services, R, a_decision(choice, by="bob"))
    assert workshop.memory.reviews[R].verdict is Verdict.NEEDS_HUMAN
    assert decide(workshop.services, R, a_decision(choice, by="ada")).decision is not None
    in_airflow = reviewed(approvers=["ada", "grace"])
    assert decide(in_airflow.services, R, a_decision(choice, by="Ada Lovelace", via="airflow")).decision is not None


@pytest.mark.parametrize(
    ("on_timeout", "verdict", "status"),
    [("expire", Verdict.EXPIRED, RunStatus.FAILED), ("reject", Verdict.REJECTED, RunStatus.CANCELLED)],
)
def test_an_answer_that_comes_too_late_changes_nothing(on_timeout: str, verdict: Verdict, status: RunStatus) -> None:
    """Outside Airflow nobody watches the clock, so who answers too late is told; policy has decided, the run is over."""
    workshop = reviewed(timeout="1h", on_timeout=on_timeout)
    hold(workshop.services, RUN)
    workshop.memory.clock.move(timedelta(hours=1))
    with pytest.raises(IllegalTransition, match=f"review r is {verdict}, by policy at"):
        decide(workshop.services, R, a_decision())
    expired, run = workshop.memory.reviews[R], workshop.memory.runs[RUN]
    assert expired.decision is not None
    assert (expired.verdict, expired.decision.via, run.status) == (verdict, "policy", status)
    told = workshop.metrics.spans["review_wait", (("stage", "hotel-content"), ("verdict", str(verdict)))]
    assert told == [timedelta(hours=1)]


def test_airflow_keeps_the_time_of_its_gates_itself() -> None:
    """What it brings was answered in time."""
    workshop = reviewed(timeout="1h")
    workshop.memory.runs[RUN] = workshop.memory.runs[RUN].model_copy(update={"origin": Origin(dag_id="d", dag_run_id="r")})
    workshop.memory.clock.move(timedelta(hours=2))
    assert decide(workshop.services, R, a_decision(via="airflow")).verdict is Verdict.APPROVED


class MeanwhileReviewStore(MemoryReviewStore):
    """A store in which something happens once the newest review was asked for."""

    meanwhile: Callable[[], object] | None = None

    def latest(self, run: RunId) -> Review | None:
        found = super().latest(run)
        if self.meanwhile:
            self.meanwhile()
        return found


def test_a_review_that_is_superseded_while_its_run_is_parked() -> None:
    """Nobody else ends a run that is at work, so the gate does, and it waits for nothing."""
    workshop = reviewed()
    reviews = MeanwhileReviewStore(workshop.memory)

    def another_review() -> None:
        newer = a_run("run-2", request_key="2")
        opened = workshop.services.runs.open(newer, workshop.policy)
        workshop.services.reviews.save(a_review("newer", run="run-2"), opened)

    reviews.meanwhile = another_review
    assert hold(replace(workshop.services, reviews=reviews), RUN).verdict is Verdict.SUPERSEDED
    run = workshop.memory.runs[RUN]
    assert run.status is RunStatus.CANCELLED
    assert run.failure == Failure(error="ReviewNotApproved", message="review r was superseded by review newer")
