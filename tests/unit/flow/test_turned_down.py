"""Runs whose reviews nobody approved: how they end, why, and who ends those that wait."""

from typing import Any

import pytest

from sluice.flow.gate import hold
from sluice.flow.turned_down import end_superseded, end_waiting, turned_down
from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import APPROVALS, RunEvent, RunStatus, Step, Verdict
from sluice.model.review import Choice, Review
from sluice.model.run import Failure
from tests.support.nouns import a_decision, a_review, a_run
from tests.unit.flow.workshop import RUN, Workshop

R = ReviewId("r")


def waiting() -> Workshop:
    """A workshop whose run waits for a person."""
    workshop = Workshop()
    workshop.services.reviews.save(a_review("r"), workshop.begin())
    hold(workshop.services, RUN)
    return workshop


def reviewed_later(workshop: Workshop) -> Review:
    """A later run's review, which covers the first."""
    opened = workshop.services.runs.open(a_run("run-2", request_key="2"), workshop.policy)
    return workshop.services.reviews.save(a_review("r2", run="run-2"), opened)


@pytest.mark.parametrize("verdict", sorted(APPROVALS))
def test_an_approval_ends_nothing(verdict: Verdict) -> None:
    """The run goes on."""
    assert turned_down(a_review("r", verdict=verdict)) is None


@pytest.mark.parametrize(
    ("facts", "event", "message"),
    [
        ({"verdict": Verdict.REJECTED}, RunEvent.CANCEL, "review r was rejected"),
        (
            {"verdict": Verdict.REJECTED, "decision": a_decision(Choice.REJECT)},
            RunEvent.CANCEL,
            "review r was rejected by ada: looks right",
        ),
        (
            {"verdict": Verdict.SUPERSEDED, "superseded_by": ReviewId("r2")},
            RunEvent.CANCEL,
            "review r was superseded by review r2",
        ),
        (
            {"verdict": Verdict.EXPIRED},
            RunEvent.FAIL,
            "review r was not answered in time: trigger the run again to have it reviewed again",
        ),
        (
            {"verdict": Verdict.BLOCKED},
            RunEvent.FAIL,
            "review r is blocked: to be asked about it, clear the task `gate` with downstream",
        ),
    ],
)
def test_why_a_run_ends(facts: dict[str, Any], event: RunEvent, message: str) -> None:
    """A person's no calls it off, and so does a newer review; without an answer it has failed."""
    assert turned_down(a_review("r", **facts)) == (event, Failure(error="ReviewNotApproved", message=message))


def test_a_run_whose_review_is_superseded_ends_at_once() -> None:
    """It waits for nobody, names its successor, and its gate asks no more; once is enough."""
    workshop = waiting()
    newer = reviewed_later(workshop)
    for _ in range(2):
        end_superseded(workshop.services, newer)
    run = workshop.memory.runs[RUN]
    assert (run.status, run.failure) == (
        RunStatus.CANCELLED,
        Failure(error="ReviewNotApproved", message="review r was superseded by review r2"),
    )
    assert workshop.gates.closed == [(RUN, "r2")]


def test_a_run_at_work_finds_out_by_itself() -> None:
    """Its token stays good, and the gate is not touched: it meets the verdict at its next step."""
    workshop = waiting()
    workshop.services.runs.enter(RUN, Step.GATE, workshop.policy.lease_ttl)
    newer = reviewed_later(workshop)
    end_superseded(workshop.services, newer)
    assert (workshop.memory.runs[RUN].status, workshop.gates.closed) == (RunStatus.RUNNING, [])
    assert hold(workshop.services, RUN).verdict is Verdict.SUPERSEDED


def test_a_cleared_run_goes_on_waiting_for_its_newer_review() -> None:
    """What superseded its older review, and is made once more, neither ends it nor closes the gate that asks again."""
    workshop = waiting()
    newer = reviewed_later(workshop)
    end_superseded(workshop.services, newer)
    workshop.services.runs.enter(RUN, Step.REVIEW, workshop.policy.lease_ttl)
    workshop.services.reviews.save(a_review("r1b"), workshop.memory.runs[RUN])
    hold(workshop.services, RUN)
    end_superseded(workshop.services, newer)
    assert (workshop.memory.runs[RUN].status, len(workshop.gates.closed)) == (RunStatus.WAITING, 1)


def test_a_run_that_waits_for_an_answer_goes_on_waiting() -> None:
    """As long as its review is approved, or gives way to another one of its own run."""
    workshop = waiting()
    newer = workshop.services.reviews.save(a_review("r1b"), workshop.memory.runs[RUN])
    end_superseded(workshop.services, newer)
    approved = workshop.services.reviews.decide(newer.id, a_decision())
    assert end_waiting(workshop.services, approved) is None
    assert (workshop.memory.runs[RunId(RUN)].status, workshop.gates.closed) == (RunStatus.WAITING, [])
