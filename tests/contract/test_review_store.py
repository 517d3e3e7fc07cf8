"""The contract of `ReviewStore`."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import Any

import pytest

from sluice.errors import Fenced, IllegalTransition, NotFound
from sluice.model.base import ReviewId, RunId, ShardKey
from sluice.model.lifecycle import Step, Verdict
from sluice.model.review import Choice, Review
from sluice.model.run import Mode, Run
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, POLICY, a_decision, a_review, a_run, plans

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


def test_the_same_answer_with_another_number_is_another_answer(stores: Stores, run: Run) -> None:
    """A number that was let through stands; to repeat the answer without one changes nothing."""
    stores.reviews.save(a_review("r1"), run)
    decided = stores.reviews.decide(ReviewId("r1"), a_decision(deletes_at_most=39))
    assert stores.reviews.decide(ReviewId("r1"), a_decision()) == decided
    with pytest.raises(IllegalTransition):
        stores.reviews.decide(ReviewId("r1"), a_decision(deletes_at_most=40))
    assert stores.reviews.get(ReviewId("r1")) == decided


def test_all_reviews_of_a_run_are_told_the_newest_first(stores: Stores, run: Run) -> None:
    """Those of other runs are not among them."""
    for name in ("r1", "r2"):
        stores.reviews.save(a_review(name), run)
    assert [review.id for review in stores.reviews.of(RUN)] == ["r2", "r1"]
    assert stores.reviews.of(RunId("run-9")) == []


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


def another(stores: Stores, name: str = "run-2", **facts: Any) -> Run:
    """Another run, which was admitted later."""
    return stores.runs.open(a_run(name, request_key=name, **facts), POLICY)


@pytest.mark.parametrize("verdict", [Verdict.NEEDS_HUMAN, Verdict.BLOCKED, Verdict.AUTO_APPROVED])
def test_a_newer_review_supersedes_those_of_older_runs_that_it_covers(stores: Stores, run: Run, verdict: Verdict) -> None:
    """Whatever is thought of the newer one: the older state of things is asked about no more, and knows its successor."""
    stores.reviews.save(a_review("r1"), run)
    stores.reviews.save(a_review("r2", run="run-2", verdict=verdict), another(stores))
    superseded = stores.reviews.get(ReviewId("r1"))
    assert (superseded.verdict, superseded.superseded_by) == (Verdict.SUPERSEDED, "r2")
    assert stores.reviews.superseded_by(ReviewId("r2")) == [superseded]
    assert stores.reviews.get(ReviewId("r2")).verdict is verdict


def test_what_a_newer_review_does_not_cover_stays_open(stores: Stores, run: Run) -> None:
    """Another sync, and a part of the shards, say nothing about the rest; nor does an older run whose review comes late."""
    stores.reviews.save(a_review("r1"), run)
    stores.reviews.save(a_review("r2", run="run-2", sync="rates"), another(stores, sync="rates"))
    stores.reviews.save(a_review("r3", run="run-3"), another(stores, "run-3", shards=(ShardKey("paris"),)))
    stores.reviews.save(a_review("r4"), run)
    assert [review.id for review in stores.reviews.waiting()] == ["r2", "r3", "r4"]


@pytest.mark.parametrize(("mark", "is_covered"), [("1", True), ("2", False)])
def test_an_incremental_review_covers_what_began_at_the_same_watermarks(stores: Stores, mark: str, *, is_covered: bool) -> None:
    """Once they have moved, what the older run had found is asked for no more."""
    names = ["run-1", "run-2"]
    runs = [another(stores, name, mode=Mode.INCREMENTAL) for name in names]
    for opened, watermark in zip(runs, ("1", mark), strict=True):
        stores.shards.plan(opened, plans("paris", "rome"), {ShardKey("paris"): watermark})
    for name, opened in zip(names, runs, strict=True):
        stores.reviews.save(a_review(f"r of {name}", run=name), opened)
    assert (stores.reviews.get(ReviewId("r of run-1")).verdict is Verdict.SUPERSEDED) is is_covered


def test_answers_that_were_given_outlive_newer_reviews(stores: Stores, run: Run) -> None:
    """What is decided is no longer asked about, so nothing takes its place."""
    stores.reviews.save(a_review("r1"), run)
    decided = stores.reviews.decide(ReviewId("r1"), a_decision())
    stores.reviews.save(a_review("r2", run="run-2"), another(stores))
    assert stores.reviews.get(ReviewId("r1")) == decided
    assert stores.reviews.superseded_by(ReviewId("r2")) == []


@pytest.mark.parametrize("choice", list(Choice))
def test_a_superseded_review_takes_no_answer(stores: Stores, run: Run, choice: Choice) -> None:
    """Whoever gives one is told which review to look at, and of which run."""
    stores.reviews.save(a_review("r1"), run)
    stores.reviews.save(a_review("r2", run="run-2"), another(stores))
    with pytest.raises(IllegalTransition, match="review r1 is superseded by review r2 of run run-2"):
        stores.reviews.decide(ReviewId("r1"), a_decision(choice))
    assert stores.reviews.get(ReviewId("r1")).decision is None


def test_two_runs_are_reviewed_and_one_is_decided_at_once(stores: Stores, run: Run) -> None:
    """None of the three waits for the others for ever, and the older review has one end."""
    stores.reviews.save(a_review("r1"), run)
    second, third = another(stores), another(stores, "run-3")
    start = Barrier(3)

    def save(name: str, of: Run) -> None:
        start.wait(timeout=30)
        stores.reviews.save(a_review(name, run=of.id), of)

    def answer() -> None:
        start.wait(timeout=30)
        with suppress(IllegalTransition):
            stores.reviews.decide(ReviewId("r1"), a_decision())

    with ThreadPoolExecutor(3) as people:
        work = [people.submit(save, "r2", second), people.submit(save, "r3", third), people.submit(answer)]
        for done in work:
            done.result(timeout=30)
    assert stores.reviews.get(ReviewId("r1")).verdict in {Verdict.APPROVED, Verdict.SUPERSEDED}
    assert stores.reviews.get(ReviewId("r3")).verdict is Verdict.NEEDS_HUMAN


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
    third = stores.runs.open(a_run("run-3", request_key="3", sync="offers"), POLICY)
    stores.reviews.save(a_review("r1", verdict=Verdict.BLOCKED), run)
    stores.reviews.save(a_review("r2", run="run-2", sync="rates"), rates)
    stores.reviews.save(a_review("r3", run="run-3", sync="offers", verdict=Verdict.AUTO_APPROVED), third)
    assert [review.id for review in stores.reviews.waiting()] == ["r1", "r2"]
    assert [review.id for review in stores.reviews.waiting("rates")] == ["r2"]
    assert stores.reviews.count_waiting() == 2
    stores.reviews.decide(ReviewId("r1"), a_decision())
    assert [review.id for review in stores.reviews.waiting()] == ["r2"]
    assert stores.reviews.count_waiting() == 1
