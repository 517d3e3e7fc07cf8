"""How a step that acts on a whole run begins and ends: entered under a new token, logged, and its failure kept."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import structlog
from structlog.contextvars import bound_contextvars

from sluice import log_events
from sluice.errors import Fenced, IllegalTransition, NothingToReview, Permanent, ReviewNotApproved, SluiceError
from sluice.model.base import RunId
from sluice.model.lifecycle import RunEvent, Step
from sluice.model.run import Failure, Run
from sluice.model.stage import StagePolicy
from sluice.ports import Services

log: Final = structlog.get_logger()

_LEFT_TO_SETTLEMENT: Final = (NothingToReview, ReviewNotApproved)
"""What the failures of shards, or a person's decision, explain better than the step that met them."""


@contextmanager
def entered(services: Services, run_id: RunId, step: Step) -> Iterator[tuple[Run, StagePolicy]]:
    """Put the run at `step`; fail it if the block raises what no repetition mends.

    Every later write of the block carries the run's new token. A retryable error leaves the run as it is, with its flight.
    """
    policy = services.policy(services.runs.get(run_id).stage)
    run = services.runs.enter(run_id, step, policy.lease_ttl)
    with bound_contextvars(**run.log_context, step=str(step)):
        log.info(log_events.STEP_STARTED)
        try:
            yield run, policy
        except SluiceError as error:
            log.warning(log_events.STEP_FAILED, error=type(error).__name__, message=error.message)
            if isinstance(error, Permanent) and not isinstance(error, _LEFT_TO_SETTLEMENT):
                with suppress(Fenced, IllegalTransition):
                    services.runs.end(run, RunEvent.FAIL, Failure.of(error))
            raise
        log.info(log_events.STEP_FINISHED)
