"""The gate: what waits is parked and frees its flight, what need not wait goes on, and a review is decided once."""

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import IllegalTransition, NotFound, NothingToReview
from sluice.flow.gate import decide, hold
from sluice.model.base import ReviewId
from sluice.model.lifecycle import WAITING_VERDICTS, RunStatus, Step, Verdict
from sluice.model.review import Choice
from tests.support.nouns import a_decision, a_review
from tests.unit.flow.workshop import RUN, Workshop

R = ReviewId("r")


def reviewed(verdict: Verdict = Verdict.NEEDS_HUMAN) -> Workshop:
    """A workshop whose run has a review."""
    workshop = Workshop()
    workshop.services.reviews.save(a_review("r", verdict=verdict), workshop.begin())
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
