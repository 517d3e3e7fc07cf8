"""The gate: a review comes in; a run that may go on, or that waits for a person, goes out. And decisions: an answer in."""

from datetime import datetime
from typing import Final

import structlog

from sluice import log_events
from sluice.checks.policy import is_mass_deletion, unanswered
from sluice.errors import DecisionRefused, NothingToReview
from sluice.flow.entering import entered
from sluice.flow.measuring import tell_waiting
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.turned_down import end_waiting
from sluice.model.base import ReviewId, RunId
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import WAITING_VERDICTS, RunEvent, RunStatus, Step
from sluice.model.review import LONGEST_COMMENT, Choice, Decision, Review
from sluice.model.spec import ReviewPolicy
from sluice.ports import Services

log: Final = structlog.get_logger()


def hold(services: Services, run_id: RunId) -> Review:
    """Return the run's newest review; while it waits for a person, park the run, which frees its flight."""
    with entered(services, run_id, Step.GATE) as entry:
        review = services.reviews.latest(run_id)
        if review is None:
            raise NothingToReview(f"run {run_id} has no review yet")
        if review.verdict in WAITING_VERDICTS and entry.run.status is RunStatus.RUNNING:
            services.runs.end(entry.run, RunEvent.PARK)
            log.info(log_events.RUN_PARKED, review=review.id, reasons=list(review.reasons))
            tell_waiting(services)
            # Whoever superseded the review in the meantime saw a run at work, and left it alone.
            review = services.reviews.get(review.id)
            if review.verdict not in WAITING_VERDICTS:
                end_waiting(services, review)
    return review


def decide(services: Services, review_id: ReviewId, decision: Decision, known_as: str | None = None) -> Review:
    """Record a decision. `known_as` is how `approvers` would name who decides; None: as `decision.by` does.

    Raises `DecisionRefused` if this answer may not be given, or not by this person: nothing is recorded, and the review keeps
    waiting. Raises `IllegalTransition` if it no longer waits: then the answer changes nothing.
    """
    present = services.reviews.get(review_id)
    if present.verdict in WAITING_VERDICTS and decision.via != "policy":
        run = services.runs.get(present.run)
        if not run.origin.is_airflow and services.clock.now() >= expires_at(services, present):
            _time_out(services, present)
        else:
            require_allowed(services, present, decision, known_as)
    review = services.reviews.decide(review_id, _bounded(decision))
    stands = review.decision or decision
    log.info(
        log_events.REVIEW_DECIDED,
        sync=review.sync,
        run=review.run,
        review=review.id,
        verdict=review.verdict,
        by=stands.by,
        via=stands.via,
    )
    return review


def expires_at(services: Services, review: Review) -> datetime:
    """Return when policy decides in a person's place. Airflow counts from when it asks, which is a little later."""
    return review.created_at + _policy(services, review).timeout


def require_allowed(services: Services, review: Review, decision: Decision, known_as: str | None = None) -> None:
    """Raise `DecisionRefused`, saying what may be answered instead, or by whom. Airflow looks by itself who answers there."""
    policy = _policy(services, review)
    if decision.via != "airflow" and policy.approvers and (known_as or decision.by) not in policy.approvers:
        who = ", ".join(policy.approvers)
        raise DecisionRefused(f"{decision.by} may not decide about review {review.id}: {who} may (review.approvers)")
    if decision.choice is not Choice.APPROVE:
        return
    deleted, number = review.figures.count(Outcome.DELETED), decision.deletes_at_most
    instead = f"approve with deletes_at_most {deleted} or more, approve without deletions, or reject"
    if number is not None and number < deleted:
        raise DecisionRefused(f"review {review.id} deletes {deleted:,} objects, more than {number:,}: {instead}")
    if number is None and is_mass_deletion(policy, review.figures):
        raise DecisionRefused(
            f"review {review.id} deletes {deleted:,} of {review.figures.live_before:,} objects, more than block.deleted allows "
            f"({policy.block.deleted}), so the approval has to name a number: {instead}"
        )


def _time_out(services: Services, review: Review) -> None:
    """Let policy decide about what nobody has answered in time, and end the run that waits for it.

    Outside Airflow nobody watches the clock: the first answer that comes too late finds out.
    """
    expired = services.reviews.decide(review.id, unanswered(_policy(services, review), services.clock.now()))
    end_waiting(services, expired)


def _policy(services: Services, review: Review) -> ReviewPolicy:
    return pinned_spec(services, services.runs.get(review.run)).review


def _bounded(decision: Decision) -> Decision:
    """Return the decision as it is kept: a number belongs to an approval with deletions alone."""
    number = decision.deletes_at_most if decision.choice is Choice.APPROVE else None
    return decision.model_copy(update={"comment": decision.comment[:LONGEST_COMMENT], "deletes_at_most": number})
