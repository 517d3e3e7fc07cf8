"""How often a task that asks is tried: as often as its stage allows, whatever was answered meanwhile."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.definitions.retry_policy import RetryAction

from sluice.airflow_glue.asking import AnswerRefused, AskingStep, TriesOfTheStage, _take, has_tries_left
from sluice.errors import ReviewWaiting
from sluice.model.lifecycle import Step, Verdict
from tests.support.nouns import a_decision, a_review
from tests.unit.flow.workshop import Workshop

REFUSALS = 20


def context(try_number: int, max_tries: int, refused: Any = None) -> dict[str, Any]:
    """Return the context of a try."""
    return {"ti": SimpleNamespace(try_number=try_number, max_tries=max_tries), "task_state_store": StateStore(refused)}


class StateStore:
    """The state store of a task, as far as it is asked."""

    def __init__(self, refused: Any) -> None:
        self.refused = refused

    def get(self, _: str, default: Any) -> Any:
        """Return what was refused."""
        return default if self.refused is None else self.refused

    def set(self, _: str, refused: Any) -> None:
        """Keep what was refused."""
        self.refused = refused


def refused(times: int, max_tries: int) -> dict[str, Any]:
    """Return what is kept after so many refusals."""
    return {"review": "r", "why": "no", "times": times, "max_tries": max_tries}


@pytest.mark.parametrize(
    ("try_number", "kept", "is_left"),
    [
        (1, None, True),
        (2, None, True),
        (3, None, False),
        (5, refused(3, 2 + REFUSALS), True),
        (6, refused(3, 2 + REFUSALS), False),
        (3, refused(3, 1 + REFUSALS), False),
        (3, "nonsense", False),
        (3, {"times": "many"}, False),
    ],
    ids=["first", "second", "last", "refused", "refused and last", "refused before a clear", "text", "edited"],
)
def test_refused_answers_use_up_no_try(try_number: int, kept: Any, *, is_left: bool) -> None:
    """Two retries of a stage are two, however many answers were refused; what people write there does no harm."""
    attempt = context(try_number, 2 + REFUSALS, kept)
    assert has_tries_left(attempt) is is_left
    decision = TriesOfTheStage().evaluate(ValueError(), try_number, 2 + REFUSALS, attempt)  # type: ignore[arg-type]
    assert decision.action is (RetryAction.DEFAULT if is_left else RetryAction.FAIL)


def test_another_review_than_was_answered_has_a_question_of_its_own() -> None:
    """Within one try Airflow keeps the words of the first, by which nobody may decide about the second."""

    def publish(*_: Any) -> None:
        raise ReviewWaiting(review="r2")

    attempt = context(1, REFUSALS)
    step = AskingStep(step=Step.PUBLISH, body=publish, include=Path(), task_retries=0)
    place: Any = SimpleNamespace(context=attempt)
    with pytest.raises(AnswerRefused, match="it was about review r1, and this is another one by now"):
        step._go(place, attempt, a_review("r1", verdict=Verdict.APPROVED))  # type: ignore[arg-type]
    assert attempt["task_state_store"].refused["review"] == "r2"
    assert has_tries_left(context(2, REFUSALS, attempt["task_state_store"].refused)) is has_tries_left(context(1, REFUSALS))


def test_a_stage_without_retries_has_none() -> None:
    """The tries that answers may use are no tries for errors."""
    assert not has_tries_left(context(1, REFUSALS))


def test_a_refused_answer_is_asked_about_again_at_once() -> None:
    """Nobody waits for the delay between two tries; Airflow shows why there is another."""
    decision = TriesOfTheStage().evaluate(AnswerRefused("why so"), 9, 9)
    assert decision.action is RetryAction.RETRY
    assert decision.retry_delay is not None
    assert decision.retry_delay.total_seconds() == 0
    assert decision.reason == "why so"


def test_what_was_decided_in_the_pages_only_lets_the_gate_go_on() -> None:
    """The answer that does so is none of its own: nothing is said to be void."""
    workshop = Workshop()
    run = workshop.begin()
    review = workshop.services.reviews.save(a_review("r1", run.id), run)
    decided = workshop.services.reviews.decide(review.id, a_decision(by="ann", via="pages"))
    place: Any = SimpleNamespace(services=workshop.services, context={"ti": SimpleNamespace()})
    assert _take(place, review.id, {"chosen_options": ["Approve"]}) == decided
