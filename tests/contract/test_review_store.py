"""The contract of `ReviewStore`."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from sluice.errors import Fenced, IllegalTransition, NotFound
from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import Step, Verdict
from sluice.model.review import Choice, Review
from sluice.model.run import Run
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, POLICY, a_decision, a_review, a_run

RUN = RunId("run-1")


@pytest.fixture
def run(stores: Stores) -> Run:
    """A run that is being reviewed."""
    stores.runs.open(a_run(), POLICY)
    return stores.runs.enter(RUN, Step.REVIEW, MINUTE)


def test_a_review_comes_back_whole(stores: Stores, run: Run) -> None:
    """Figures, reasons, and the pointer to the diff are those that were saved."""
    saved = stores.reviews.save(a_review("r1"), run)
    assert saved == a_review("r1")
    assert stores.reviews.get(ReviewId("r1")) == saved
    assert stores.reviews.latest(RUN) == saved


def test_saving_again_returns_the_decision_that_was_given_meanwhile(stores: Stores, run: Run) -> None:
    """A reviewer that is tried again does not ask the same question twice."""
    stores.reviews.save(a_review("r1"), run)
    decided = stores.reviews.decide(ReviewId("r1"), a_decision())
    assert stores.reviews.save(a_review("r1"), run) == decided
    assert decided.decision == a_decision()


def test_a_newer_review_of_the_run_supersedes_what_waits(stores: Stores, run: Run) -> None:
    """Only the newest question is open; answers that were given stand."""
    stores.reviews.save(a_review("r1"), run)
    stores.reviews.decide(ReviewId("r1"), a_decision())
    stores.reviews.save(a_review("r2", verdict=Verdict.BLOCKED), run)
    stores.reviews.save(a_review("r3"), run)
    verdicts = [stores.reviews.get(ReviewId(name)).verdict for name in ("r1", "r2", "r3")]
    assert verdicts == [Verdict.APPROVED, Verdict.SUPERSEDED, Verdict.NEEDS_HUMAN]
    latest = stores.reviews.latest(RUN)
    assert latest is not None
    assert latest.id == "r3"


def test_reviews_of_other_runs_stay_open(stores: Stores, run: Run) -> None:
    """Superseding is a matter within one run."""
    other = stores.runs.open(a_run("run-2", request_key="another"), POLICY)
    stores.reviews.save(a_review("r1"), run)
    stores.reviews.save(a_review("r2", run="run-2"), other)
    assert stores.reviews.get(ReviewId("r1")).verdict is Verdict.NEEDS_HUMAN


def test_saving_under_an_older_token_is_fenced(stores: Stores, run: Run) -> None:
    """A reviewer that was overtaken leaves no review."""
    stores.runs.enter(RUN, Step.REVIEW, MINUTE)
    with pytest.raises(Fenced):
        stores.reviews.save(a_review("r1"), run)
    assert stores.reviews.latest(RUN) is None


def test_an_unknown_review_is_not_found_by_name(stores: Stores) -> None:
    """Missing is an answer, and names what is missing."""
    with pytest.raises(NotFound, match="r9"):
        stores.reviews.get(ReviewId("r9"))
    with pytest.raises(NotFound, match="r9"):
        stores.reviews.decide(ReviewId("r9"), a_decision())
    assert stores.reviews.latest(RunId("run-9")) is None


@pytest.mark.parametrize(
    ("choice", "verdict"),
    [
        (Choice.APPROVE, Verdict.APPROVED),
        (Choice.APPROVE_WITHOUT_DELETES, Verdict.APPROVED_WITHOUT_DELETES),
        (Choice.REJECT, Verdict.REJECTED),
        (Choice.EXPIRE, Verdict.EXPIRED),
    ],
)
@pytest.mark.parametrize("waiting", [Verdict.NEEDS_HUMAN, Verdict.BLOCKED])
def test_each_answer_gives_its_verdict(stores: Stores, run: Run, waiting: Verdict, choice: Choice, verdict: Verdict) -> None:
    """A review that wants a person takes every answer, also one that policy has blocked."""
    stores.reviews.save(a_review("r1", verdict=waiting), run)
    decided = stores.reviews.decide(ReviewId("r1"), a_decision(choice))
    assert (decided.verdict, decided.decision) == (verdict, a_decision(choice))
    assert stores.reviews.get(ReviewId("r1")) == decided


def test_the_same_answer_again_changes_nothing(stores: Stores, run: Run) -> None:
    """Who answered first is who answered."""
    stores.reviews.save(a_review("r1"), run)
    first = stores.reviews.decide(ReviewId("r1"), a_decision(by="ada"))
    assert stores.reviews.decide(ReviewId("r1"), a_decision(by="bob")) == first


def test_another_answer_is_refused_with_who_gave_the_first(stores: Stores, run: Run) -> None:
    """A decision stands, and the error tells whose it is."""
    stores.reviews.save(a_review("r1"), run)
    first = stores.reviews.decide(ReviewId("r1"), a_decision(Choice.REJECT, by="ada"))
    with pytest.raises(IllegalTransition, match="r1 is rejected, by ada"):
        stores.reviews.decide(ReviewId("r1"), a_decision(Choice.APPROVE, by="bob"))
    assert stores.reviews.get(ReviewId("r1")) == first


@pytest.mark.parametrize("choice", list(Choice))
def test_what_policy_approved_takes_no_answer(stores: Stores, run: Run, choice: Choice) -> None:
    """There is no question, so there is no decision."""
    stores.reviews.save(a_review("r1", verdict=Verdict.AUTO_APPROVED), run)
    with pytest.raises(IllegalTransition, match="auto-approved"):
        stores.reviews.decide(ReviewId("r1"), a_decision(choice))
    assert stores.reviews.get(ReviewId("r1")).decision is None


def test_of_two_opposite_answers_at_once_one_stands(stores: Stores, run: Run) -> None:
    """Two people answer in the same instant: one is told that the other was first."""
    stores.reviews.save(a_review("r1"), run)
    start = Barrier(2)

    def answer(choice: Choice) -> Review | IllegalTransition:
        start.wait(timeout=30)
        try:
            return stores.reviews.decide(ReviewId("r1"), a_decision(choice))
        except IllegalTransition as refused:
            return refused

    with ThreadPoolExecutor(2) as people:
        answers = list(people.map(answer, [Choice.APPROVE, Choice.REJECT]))
    stand = [answer for answer in answers if isinstance(answer, Review)]
    assert stand == [stores.reviews.get(ReviewId("r1"))]


def test_waiting_reviews_come_oldest_first(stores: Stores, run: Run) -> None:
    """What waits longest stands on top; what policy or a person decided is not there."""
    rates = stores.runs.open(a_run("run-2", request_key="2", sync="rates"), POLICY)
    third = stores.runs.open(a_run("run-3", request_key="3"), POLICY)
    stores.reviews.save(a_review("r1", verdict=Verdict.BLOCKED), run)
    stores.reviews.save(a_review("r2", run="run-2", sync="rates"), rates)
    stores.reviews.save(a_review("r3", run="run-3", verdict=Verdict.AUTO_APPROVED), third)
    assert [review.id for review in stores.reviews.waiting()] == ["r1", "r2"]
    assert [review.id for review in stores.reviews.waiting("rates")] == ["r2"]
    stores.reviews.decide(ReviewId("r1"), a_decision())
    assert [review.id for review in stores.reviews.waiting()] == ["r2"]
