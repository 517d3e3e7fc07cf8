"""How a step enters its run: one of the whole run under a new token, logged, its failure kept; one of a shard beside others."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import structlog
from structlog.contextvars import bound_contextvars

from sluice import log_events
from sluice.errors import Fenced, IllegalTransition, NothingToReview, Permanent, ReviewNotApproved, SluiceError
from sluice.model.base import RunId
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Failure, Run
from sluice.model.stage import StagePolicy
from sluice.ports import Services

log: Final = structlog.get_logger()

_SHARD_STEPS: Final = (Step.FETCH, Step.TRANSFORM)

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
        except _LEFT_TO_SETTLEMENT as error:
            log.info(log_events.STEP_FAILED, error=type(error).__name__, message=error.message)
            raise
        except SluiceError as error:
            log.warning(log_events.STEP_FAILED, error=type(error).__name__, message=error.message)
            if isinstance(error, Permanent):
                with suppress(Fenced, IllegalTransition):
                    services.runs.end(run, RunEvent.FAIL, Failure.of(error))
            raise
        log.info(log_events.STEP_FINISHED)


def entered_for_a_shard(services: Services, run_id: RunId, step: Step) -> Run:
    """Return the run, at a step of its shards; shards do not fence each other.

    The first of them moves the run on. And a run that ended without a shard, whose task was cleared, is reopened.
    """
    run = services.runs.get(run_id)
    if run.status is RunStatus.RUNNING and run.step in _SHARD_STEPS:
        return run
    return services.runs.enter(run_id, step, services.policy(run.stage).lease_ttl)
