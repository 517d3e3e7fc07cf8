"""What becomes of a run whose review nobody has approved: the review in, the run's end and why out."""

from contextlib import suppress
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import Fenced, IllegalTransition, ReviewNotApproved
from sluice.flow.measuring import tell_wait
from sluice.model.lifecycle import APPROVALS, RunEvent, RunStatus, Verdict
from sluice.model.review import Review, by_whom
from sluice.model.run import Failure, Run
from sluice.ports import Services

log: Final = structlog.get_logger()


def turned_down(review: Review) -> tuple[RunEvent, Failure] | None:
    """Return how the run ends, and why; None if the review is approved."""
    if review.verdict in APPROVALS:
        return None
    if review.verdict in (Verdict.REJECTED, Verdict.SUPERSEDED):
        return RunEvent.CANCEL, _failure(f"review {review.id} was {review.verdict}{by_whom(review)}")
    if review.verdict is Verdict.EXPIRED:
        return RunEvent.FAIL, _failure(
            f"review {review.id} was not answered in time: trigger the run again to have it reviewed again"
        )
    return RunEvent.FAIL, _failure(
        f"review {review.id} is {review.verdict}: to be asked about it, clear the task `gate` with downstream"
    )


def end_waiting(services: Services, review: Review) -> Run | None:
    """End the run of a review that waits no longer, if it still waits for it; a run that is at work finds out by itself.

    One that was cleared since, and waits for a newer review of its own, goes on waiting.
    """
    run = services.runs.get(review.run)
    ending = turned_down(review)
    if ending is None or run.status is not RunStatus.WAITING or run.is_following:
        return None
    newest = services.reviews.latest(run.id)
    if newest is None or newest.id != review.id:
        return None
    with suppress(Fenced, IllegalTransition):  # somebody has gone on with it, and meets the verdict
        ended = services.runs.end(run, *ending)
        tell_wait(services, review, run.stage)
        return ended
    return None


def end_superseded(services: Services, review: Review) -> None:
    """End the older runs that wait for reviews which that one has superseded, and let their gates ask no more.

    Nobody is at work in them who could. What a worker leaves who dies in the middle of this is done when the review is made
    again.
    """
    for older in services.reviews.superseded_by(review.id):
        if older.run != review.run and (ended := end_waiting(services, older)) is not None:
            log.info(log_events.RUN_SUPERSEDED, superseded=ended.id, by=review.id)
            services.gates.close(ended, older.id, review.id)


def _failure(message: str) -> Failure:
    return Failure(error=ReviewNotApproved.__name__, message=message)
