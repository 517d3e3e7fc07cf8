"""The gate on Airflow's human-in-the-loop: a review in, and nothing out before a person decided, or the policy did."""

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import structlog
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context, Param
from airflow.sdk.exceptions import TaskAwaitingInput

from sluice import log_events
from sluice.airflow_glue.packet import review_body, review_subject
from sluice.airflow_glue.workplace import Workplace, working
from sluice.errors import IllegalTransition, ReviewNotApproved
from sluice.model.airflow_names import ANSWERS, COMMENT
from sluice.model.base import ReviewId
from sluice.model.lifecycle import WAITING_VERDICTS, Step, Verdict
from sluice.model.review import Choice, Decision, Review

log: Final = structlog.get_logger()

_CHOICES: Final = {label: choice for choice, label in ANSWERS.items()}
_LONGEST_COMMENT: Final = 2000


def answer_form() -> dict[str, Param]:
    """Return the params of the gate: what a person may add to an answer."""
    return {COMMENT: Param("", type=["null", "string"], description="Kept with the decision; may stay empty.")}


class ReviewGate(HITLOperator):
    """Parks the run until a person answers; passes at once where the policy has approved. Nothing approves by default."""

    template_fields: Collection[str] = ()
    """Subject and body are made when the task runs, from what must never be taken for a template."""

    def __init__(self, *, include: Path, **kwargs: Any) -> None:
        super().__init__(subject="Review", options=list(_CHOICES), **kwargs)
        self.include = include

    def execute(self, context: Context) -> dict[str, str]:
        """Pass, or put the question and park."""
        from sluice.flow.pinned_spec import pinned_spec
        from sluice.flow.redo import held

        with working(Step.GATE, self.include) as work:
            review = held(work.services, work.run_id)
            if review.verdict not in WAITING_VERDICTS:
                return _passed(review)
            run = work.services.runs.get(work.run_id)
            spec = pinned_spec(work.services, run)
            self.response_timeout = spec.review.timeout
            self.subject = review_subject(spec, review)
            self.body = review_body(run, review)
        try:
            super().execute(context)
        except TaskAwaitingInput as parked:
            # The answer is to this review and to no later one.
            raise TaskAwaitingInput(
                method_name=parked.method_name, timeout=parked.timeout, kwargs={"review_id": review.id}
            ) from None
        return _passed(review)

    def execute_complete(self, context: Context, event: dict[str, Any], review_id: str = "") -> dict[str, str]:  # noqa: ARG002
        """Record the answer about the review that was asked about; an answer that comes too late changes nothing."""
        with working(Step.GATE, self.include) as work:
            decision = _decision(event, work)
            return _passed(_record(work, ReviewId(review_id), decision))


def _record(work: Workplace, review_id: ReviewId, decision: Decision) -> Review:
    from sluice.flow.gate import decide

    try:
        return decide(work.services, review_id, decision)
    except IllegalTransition:
        review = work.services.reviews.get(review_id)
        log.warning(
            log_events.REVIEW_ANSWER_VOID,
            review=review.id,
            verdict=review.verdict,
            answer=decision.choice,
            message="this review was decided already, or superseded by a newer one: the answer changes nothing",
        )
        return review


def _decision(event: dict[str, Any], work: Workplace) -> Decision:
    """Read the answer, without trusting that Airflow has checked the form."""
    now = work.services.clock.now()
    if event.get("error_type") == "timeout":
        return Decision(choice=Choice.EXPIRE, by="policy", via="policy", comment="nobody answered in time", at=now)
    if "error" in event:
        raise ReviewNotApproved(f"Airflow could not wait for an answer: {event['error']}")
    chosen = event.get("chosen_options") or []
    if len(chosen) != 1 or chosen[0] not in _CHOICES:
        raise ReviewNotApproved(f"{chosen!r} is no answer; allowed is one of {', '.join(_CHOICES)}")
    user = event.get("responded_by_user") or {}
    answered_at = event.get("responded_at")
    comment = (event.get("params_input") or {}).get(COMMENT)
    return Decision(
        choice=_CHOICES[chosen[0]],
        by=str(user.get("name") or user.get("id") or "unknown"),
        via="airflow",
        comment=comment[:_LONGEST_COMMENT] if isinstance(comment, str) else "",
        at=answered_at.astimezone(UTC) if isinstance(answered_at, datetime) else now,
    )


def _passed(review: Review) -> dict[str, str]:
    """Return what the gate leaves in XCom; publish reads the decision again, from our row."""
    if review.verdict is Verdict.EXPIRED:
        raise ReviewNotApproved(
            f"nobody answered in time: review {review.id} has expired, and nothing is published; "
            "trigger the run again to have it reviewed again"
        )
    return {"review": review.id, "verdict": review.verdict.value}
