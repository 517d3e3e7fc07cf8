"""What a person says about a review on its page in; the decision recorded, and its run set going, out."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final

import structlog
from pydantic import Field, StringConstraints

from sluice import log_events
from sluice.errors import IllegalTransition, NotFound, SluiceError, StateTooNew, StateUnreadable, UsageInvalid
from sluice.flow.gate import decide
from sluice.flow.inline import resume_inline
from sluice.model.airflow_names import dag_id_of
from sluice.model.lifecycle import WAITING_VERDICTS
from sluice.model.review import LONGEST_COMMENT, MOST_DELETES, Choice, Decision, Review, no_longer_waits
from sluice.model.run import Run
from sluice.ports import Services
from sluice.web.surroundings import Surroundings
from sluice.web.writing import Done, Form

log: Final = structlog.get_logger()

_SAID: Final = {
    Choice.APPROVE: "Approved.",
    Choice.APPROVE_WITHOUT_DELETES: "Approved without deletions.",
    Choice.REJECT: "Rejected: nothing of it is published.",
}


class Answer(Form):
    """The form of a review."""

    choice: Choice
    comment: Annotated[str, StringConstraints(strip_whitespace=True, max_length=LONGEST_COMMENT)] | None = None
    deletes_at_most: int | None = Field(default=None, ge=0, le=MOST_DELETES)


@dataclass(frozen=True)
class Person:
    """Who answers, as the trail and as `approvers` name them."""

    name: str
    id: str


def decided(around: Surroundings, services: Services, review: Review, answer: Answer, person: Person) -> Done:
    """Record the answer and let the run go on; the same answer again only does the latter.

    Of a run in Airflow the gate has to ask when the answer comes: nothing is recorded that nobody would hear of. Raises
    `DecisionRefused` and `IllegalTransition` as `decide` does.
    """
    if answer.choice not in _SAID:
        raise UsageInvalid(f"one of {', '.join(_SAID)} is to be chosen")
    run = services.runs.get(review.run)
    if run.undoes is not None and answer.choice is not Choice.REJECT and not answer.comment:
        raise UsageInvalid("say why the publication is taken back: whoever looks later wants to know")
    decision = Decision(
        choice=answer.choice,
        by=person.name,
        via="pages",
        comment=answer.comment or "",
        deletes_at_most=answer.deletes_at_most if answer.choice is Choice.APPROVE else None,
        at=services.clock.now(),
    )
    is_new = review.verdict in WAITING_VERDICTS
    if is_new and run.origin.is_airflow:
        services.gates.require_unanswered(run)
    elif not is_new and not _is_given(review, decision):
        raise IllegalTransition(no_longer_waits(review, _successor(services, review)))
    kept = decide(services, review.id, decision, person.id)
    return Done(
        message=_set_going(around, services, run, kept, is_new=is_new), next=f"dags/{dag_id_of(run.sync)}/runs/{run.id}"
    )


def _is_given(review: Review, decision: Decision) -> bool:
    return review.decision is not None and review.decision.answers_as(decision)


def _successor(services: Services, review: Review) -> Review | None:
    try:
        return services.reviews.get(review.superseded_by) if review.superseded_by is not None else None
    except (NotFound, StateTooNew, StateUnreadable):
        return None


def _set_going(around: Surroundings, services: Services, run: Run, review: Review, *, is_new: bool) -> str:
    """Let the run go on, and say how: here, or in Airflow, whose gate waits no longer than until it learns of the decision."""
    said = _SAID[review.decision.choice] if review.decision is not None else "Decided."
    if not run.origin.is_airflow:
        around.later(run.id, partial(resume_inline, run_id=run.id))
        return f"{said} The run goes on."
    try:
        if review.decision is not None:
            services.gates.release(run, review.id, review.decision)
    except SluiceError as error:
        if not is_new and isinstance(error, NotFound | IllegalTransition):
            return f"{said} It had been before: its gate in Airflow asks no more."
        log.warning(log_events.GATE_LEFT_OPEN, run=run.id, review=review.id, message=error.message)
        return f"{said} That stands, but its gate in Airflow could not be told: {error.message}. Say it again to try again."
    log.info(log_events.GATE_RELEASED, run=run.id, review=review.id)
    return f"{said} The run goes on in Airflow."
