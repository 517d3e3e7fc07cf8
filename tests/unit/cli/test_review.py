"""`sluice review`: what is refused before Airflow is asked, and how long a review has waited and will."""

from datetime import timedelta

import pytest

from sluice.cli.commands.review import Answer, _expires_at, _is_new, _until
from sluice.errors import DecisionRefused, IllegalTransition
from sluice.model.base import ReviewId
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.review import Choice, Figures, Review
from sluice.packet.words import lasting
from tests.support.nouns import NOW, a_decision, a_review, a_run
from tests.unit.flow.workshop import Workshop

YES, NO = Answer(Choice.APPROVE, ""), Answer(Choice.REJECT, "")


def reviewed(deleted: int = 0) -> tuple[Workshop, Review]:
    """A workshop whose run has a review that deletes so many of a hundred objects."""
    workshop = Workshop()
    figures = Figures(seen=10, unchanged=0, live_before=100, outcomes={Outcome.DELETED: deleted})
    review = a_review("r", figures=figures, verdict=Verdict.BLOCKED)
    return workshop, workshop.services.reviews.save(review, workshop.begin())


def test_airflow_gets_no_answer_that_its_gate_would_refuse() -> None:
    """It would only ask again; a number that is high enough, or no deletion at all, goes through."""
    workshop, review = reviewed(deleted=39)
    with pytest.raises(DecisionRefused, match="approve with deletes_at_most 39 or more"):
        _is_new(workshop.services, review, YES)
    for answer in (Answer(Choice.APPROVE, "", 39), Answer(Choice.APPROVE_WITHOUT_DELETES, ""), NO):
        assert _is_new(workshop.services, review, answer)


def test_airflow_gets_no_answer_about_a_review_that_waits_no_longer() -> None:
    """Who has superseded it is told, even if that one is gone.

    The same answer again is not given: what is asked about by now may be another review of the run.
    """
    workshop, review = reviewed()
    opened = workshop.services.runs.open(a_run("run-2", request_key="2"), workshop.policy)
    workshop.services.reviews.save(a_review("r2", run="run-2"), opened)
    superseded = workshop.services.reviews.get(review.id)
    with pytest.raises(IllegalTransition, match="review r is superseded by review r2 of run run-2: decide about that one"):
        _is_new(workshop.services, superseded, YES)
    del workshop.memory.reviews[ReviewId("r2")]
    with pytest.raises(IllegalTransition, match="review r is superseded by review r2: decide about that one"):
        _is_new(workshop.services, superseded, YES)
    approved = a_review("r3", verdict=Verdict.APPROVED, decision=a_decision())
    assert not _is_new(workshop.services, approved, YES)
    with pytest.raises(IllegalTransition, match="review r3 is approved, by ada at 2026-01-31T12:00:00Z"):
        _is_new(workshop.services, approved, NO)


def test_an_approval_that_counts_no_more_is_not_taken_for_an_answer() -> None:
    """What was approved has changed since, so the run waits again: for the answer about another review."""
    workshop, review = reviewed()
    services = workshop.services
    approved = services.reviews.decide(review.id, a_decision())
    services.reviews.save(a_review("r2", verdict=Verdict.NEEDS_HUMAN), services.runs.get(review.run))
    for answer in (YES, NO):
        with pytest.raises(IllegalTransition, match="was approved, which counts no more: its run asks about review r2 by now"):
            _is_new(services, approved, answer)
    assert _is_new(services, services.reviews.get(ReviewId("r2")), YES)


def test_when_a_review_expires() -> None:
    """As the spec of its run says; unknown, where that spec is gone."""
    workshop, review = reviewed()
    assert _expires_at(workshop.services, review) == review.created_at + timedelta(hours=24)
    workshop.memory.pointers.clear()
    assert _expires_at(workshop.services, review) is None


@pytest.mark.parametrize(
    ("seconds", "spelled"), [(0, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (90000, "1d"), (-5, "0s")]
)
def test_spans_are_told_in_their_largest_unit(seconds: int, spelled: str) -> None:
    """Nobody needs the minutes of a day, and no clock that is behind makes it less than nothing."""
    assert lasting(timedelta(seconds=seconds)) == spelled


def test_what_should_have_been_answered_is_overdue() -> None:
    """A moment that has passed is told as such."""
    assert _until(NOW + timedelta(hours=5), NOW) == "in 5h"
    assert _until(NOW, NOW) == "overdue"
    assert _until(None, NOW) == ""
