"""A step's work in; how long it took, what became of it and how often it was tried again, as metrics, out."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from sluice.errors import Fenced, NoProgress, Permanent, ReviewWaiting, SluiceError
from sluice.guard.heartbeat import Heartbeat
from sluice.guard.retries import retries_told
from sluice.model import metric
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunStatus, Step
from sluice.model.metric import FlightResult, RetryScope, StepOutcome
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.ports import Metrics, Services


@contextmanager
def measured(services: Services, stage: str, step: Step) -> Iterator[None]:
    """Time the block, and count the requests that are repeated in it."""
    began = services.clock.elapsed()
    outcome = StepOutcome.BROKEN
    try:
        with retries_told(partial(count_retry, services, stage, step, RetryScope.REQUEST)):
            yield
        outcome = StepOutcome.FINISHED
    except SluiceError as error:
        outcome = outcome_of(error)
        raise
    finally:
        span = timedelta(seconds=services.clock.elapsed() - began)
        services.metrics.timing(metric.STEP_DURATION, span, stage=stage, step=step, outcome=outcome)


def outcome_of(error: SluiceError) -> StepOutcome:
    """Return what an error makes of the step that raised it."""
    match error:
        case NoProgress():
            return StepOutcome.STUCK
        case ReviewWaiting():
            return StepOutcome.FINISHED  # as far as it could
        case Fenced():
            return StepOutcome.FENCED
        case Permanent():
            return StepOutcome.FAILED
        case _:
            return StepOutcome.RETRYABLE


def count_retry(services: Services, stage: str, step: Step, scope: RetryScope) -> None:
    """Count one try that was not the first."""
    services.metrics.count(metric.RETRIES, stage=stage, step=step, scope=scope)


def count_reopened(services: Services, before: Run, step: Step) -> None:
    """Count a run that goes on though it had ended: as it was before it was entered."""
    if before.status in FINAL_RUN_STATUSES and before.status is not RunStatus.SUCCEEDED:
        count_retry(services, before.stage, step, RetryScope.RUN)


def tell_admitted(services: Services, run: Run) -> None:
    """Count what a request that is new has met."""
    answered = FlightResult.FOLLOWED if run.is_following else FlightResult.REPLAYED
    result = FlightResult.OWNED if run.follows is None else answered
    services.metrics.count(metric.FLIGHTS, stage=run.stage, result=result)


def tell_wait(services: Services, review: Review, stage: str) -> None:
    """Tell how long a review has waited that was decided about, or was superseded just now."""
    until = review.decision.at if review.decision is not None else services.clock.now()
    services.metrics.timing(metric.REVIEW_WAIT, until - review.created_at, stage=stage, verdict=review.verdict)


def tell_waiting(services: Services) -> None:
    """Tell how many reviews wait."""
    services.metrics.gauge(metric.REVIEWS_WAITING, services.reviews.count_waiting())


def stuck_counted(pulse: Heartbeat, metrics: Metrics, stage: str, step: Step) -> Heartbeat:
    """Return the heartbeat; should it end because the work stands still, that is counted, be its worker stuck or not."""

    def stopped(end: Future[Any]) -> None:
        if not end.cancelled() and isinstance(end.exception(), NoProgress):
            metrics.count(metric.STEPS_STUCK, stage=stage, step=step)

    pulse.stopped.add_done_callback(stopped)
    return pulse
