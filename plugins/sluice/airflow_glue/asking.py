"""A step that may have to wait for a person in; a question in Airflow's human-in-the-loop, and the step's report, out."""

from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

import structlog
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy
from airflow.sdk.exceptions import AirflowException, TaskAwaitingInput
from airflow.sdk.execution_time.hitl import HITLUser
from pydantic import ValidationError

from sluice import log_events
from sluice.airflow_glue.answers import answer_form, read_answer
from sluice.airflow_glue.connections import AirflowConnections
from sluice.airflow_glue.packet import markdown_text, review_body, review_subject
from sluice.airflow_glue.workplace import Workplace, working
from sluice.errors import ConnectionInvalid, DecisionRefused, IllegalTransition, ReviewWaiting
from sluice.model.airflow_names import ANSWERS
from sluice.model.base import Frozen, ReviewId
from sluice.model.connections import AIRFLOW
from sluice.model.lifecycle import WAITING_VERDICTS, Step
from sluice.model.review import Review

log: Final = structlog.get_logger()

_MOST_REFUSALS: Final = 20
"""Airflow keeps the words of a question for as long as a try lasts: to say why it asks again, it needs another try."""

_REFUSED: Final = "refused_answers"
"""Where Airflow keeps them from one try to the next."""

Answered = Review | None
"""The review that was asked about, once somebody has answered; None: the step has only begun."""


class Refused(Frozen):
    """What Airflow keeps for a task from one of its tries to the next."""

    review: str = ""
    why: str = ""
    times: int = 0
    max_tries: int = -1
    """Airflow raises it when a person clears the task: what was refused before counts no more."""


class AnswerRefused(AirflowException):
    """An answer was none: the task asks again at once, in another try."""


class TriesOfTheStage(RetryPolicy):
    """Lets a task that asks fail as often as its stage allows, whatever was answered meanwhile."""

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,  # noqa: ARG002 - Airflow's names
        max_tries: int,  # noqa: ARG002
        context: Context | None = None,
    ) -> RetryDecision:
        """Return whether there is to be another try, and when."""
        if isinstance(exception, AnswerRefused):
            return RetryDecision.retry(timedelta(0), reason=str(exception))
        if context is None or has_tries_left(context):
            return RetryDecision.default()
        return RetryDecision.fail("it has failed as often as its stage allows")


def has_tries_left(context: Any) -> bool:
    """Whether a task that asks is tried again should this try of it fail; refused answers have used none up."""
    attempt = context["ti"]
    return bool(attempt.try_number - _refused(context).times <= attempt.max_tries - _MOST_REFUSALS)


class AskingStep(HITLOperator):
    """Goes through a step. While that waits for a person (`ReviewWaiting`), it asks one, parks, and goes through it again.

    Nothing is approved by default, nor by what cannot be understood: that is asked again.
    """

    template_fields: Collection[str] = ()
    """Subject and body are made when the task runs, from what must never be taken for a template."""

    def __init__(
        self, *, step: Step, body: Callable[[Workplace, Answered], Any], include: Path, task_retries: int, **kwargs: Any
    ) -> None:
        # What a DAG gives to all its tasks comes with `kwargs`.
        kwargs |= {
            "params": answer_form(review=""),
            "retries": task_retries + _MOST_REFUSALS,
            "retry_policy": TriesOfTheStage(),
        }
        super().__init__(task_id=step.value, subject="Review", options=list(ANSWERS.values()), **kwargs)
        self.step = step
        self.work = body
        self.include = include

    def execute(self, context: Context) -> Any:
        """Go through the step, or ask."""
        with working(self.step, self.include) as place:
            return self._go(place, context, None)

    def execute_complete(self, context: Context, event: dict[str, Any], review_id: str = "") -> Any:
        """Take the answer about the review that was asked about, and go on; one that is none is asked for again."""
        with working(self.step, self.include) as place:
            try:
                answered = _take(place, ReviewId(review_id), event)
            except DecisionRefused as refused:
                self._ask_again(place, context, ReviewId(review_id), refused.message)
            return self._go(place, context, answered)

    def _go(self, place: Workplace, context: Context, answered: Answered) -> Any:
        try:
            return self.work(place, answered)
        except ReviewWaiting as waiting:
            review_id = ReviewId(str(waiting.review))
            if answered is not None and answered.id != review_id:
                # This try's question has the words of the review that was answered.
                self._ask_again(place, context, review_id, f"it was about review {answered.id}, and this is another one by now")
            if place.services.reviews.get(review_id).verdict in WAITING_VERDICTS:
                self._ask(place, context, review_id)
            # It was decided, or a newer one has taken its place, while the step was about to ask.
            return self.work(place, answered)

    def _ask(self, place: Workplace, context: Context, review_id: ReviewId) -> NoReturn:
        from sluice.airflow_glue.notifiers import sender
        from sluice.flow.alerting import tell_of_review
        from sluice.flow.packet import evidence_of
        from sluice.flow.pinned_spec import pinned_spec

        run = place.services.runs.get(place.run_id)
        review = place.services.reviews.get(review_id)
        spec = pinned_spec(place.services, run)
        self.response_timeout = spec.review.timeout
        self.assigned_users = _may_answer(spec.review.approvers)
        self.params = ParamsDict(answer_form(review.id))
        self.subject = review_subject(spec, review)
        evidence = evidence_of(place.services, review)
        self.body = _refusal(context, review) + review_body(spec, run, review, evidence, place.services.airflow_url)
        log.info(log_events.REVIEW_ASKED, review=review.id, url=self._url(place, context))
        tell_of_review(place.services, run, review, sender(place))
        try:
            super().execute(context)
        except TaskAwaitingInput as parked:
            # The answer is to this review and to no later one.
            raise TaskAwaitingInput(
                method_name=parked.method_name, timeout=parked.timeout, kwargs={"review_id": review.id}
            ) from None
        raise AssertionError("to ask is to park")

    def _url(self, place: Workplace, context: Context) -> str | None:
        """Return where the question stands; None: this Airflow has not been told its own address."""
        base = place.services.airflow_url
        return self.generate_link_to_ui_from_context(context=context, base_url=base) if base else None

    def _ask_again(self, place: Workplace, context: Context, review_id: ReviewId, why: str) -> NoReturn:
        """Ask in another try, whose question says why; should those be used up, in this one, whose log does."""
        attempt: Any = context["ti"]
        log.warning(log_events.REVIEW_ASKED_AGAIN, review=review_id, message=why)
        if attempt.try_number > attempt.max_tries:
            self._ask(place, context, review_id)
        times = _refused(context).times + 1
        refused = Refused(review=review_id, why=why, times=times, max_tries=attempt.max_tries)
        place.context["task_state_store"].set(_REFUSED, refused.model_dump())
        raise AnswerRefused(f"{why}: the review still waits, and is asked about again")


def _take(place: Workplace, review_id: ReviewId, event: dict[str, Any]) -> Review:
    """Record the answer; one about a review that waits no more, whoever gave it, changes nothing and is told as such."""
    from sluice.flow.gate import decide
    from sluice.flow.pinned_spec import pinned_spec

    services = place.services
    review = services.reviews.get(review_id)
    if review.verdict in WAITING_VERDICTS:
        policy = pinned_spec(services, services.runs.get(review.run)).review
        decision = read_answer(event, review.id, policy, services.clock.now())
        try:
            return decide(services, review_id, decision)
        except IllegalTransition:
            review = services.reviews.get(review_id)
    if review.decision is not None and review.decision.via == "pages":
        return review  # the answer only lets the gate go on: the person has given theirs there
    message = f"review {review.id} is {review.verdict} already: the answer {event.get('chosen_options')} changes nothing"
    log.warning(log_events.REVIEW_ANSWER_VOID, review=review.id, verdict=review.verdict, message=message)
    place.context["ti"].xcom_push(key="void_answer", value=message)
    return review


def _refused(context: Any) -> Refused:
    """Return what was refused last since the task was cleared; a person may have written anything there."""
    try:
        kept = Refused.model_validate(context["task_state_store"].get(_REFUSED, default={}))
    except ValidationError:
        return Refused()
    return kept if kept.max_tries == context["ti"].max_tries else Refused()


def _refusal(context: Any, review: Review) -> str:
    """Return what a person reads first where the last answer was none."""
    refused = _refused(context)
    return f"**The last answer was not taken**: {markdown_text(refused.why)}.\n\n" if refused.review == review.id else ""


def _may_answer(approvers: Collection[str]) -> list[HITLUser]:
    """Return whom Airflow lets answer: the approvers, and who closes the gates of superseded reviews; nobody named: anybody."""
    if not approvers:
        return []
    users = list(approvers)
    with suppress(ConnectionInvalid):
        users.append(AirflowConnections().get(AIRFLOW).login or users[0])
    return [HITLUser(id=user, name=user) for user in dict.fromkeys(users)]
