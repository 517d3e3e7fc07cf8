"""The gate: a review comes in; a run that may go on, or that waits for a person, goes out."""

from typing import Final

import structlog

from sluice import log_events
from sluice.errors import NothingToReview
from sluice.flow.entering import entered
from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import WAITING_VERDICTS, RunEvent, RunStatus, Step
from sluice.model.review import Decision, Review
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
    return review


def decide(services: Services, review_id: ReviewId, decision: Decision) -> Review:
    """Record a decision; raise `IllegalTransition` if the review no longer waits for one."""
    review = services.reviews.decide(review_id, decision)
    log.info(
        log_events.REVIEW_DECIDED,
        sync=review.sync,
        run=review.run,
        review=review.id,
        verdict=review.verdict,
        by=decision.by,
        via=decision.via,
    )
    return review
