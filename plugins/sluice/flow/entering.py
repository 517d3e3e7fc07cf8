"""How a step enters its run: one of the whole run under a new token, logged, its failure kept; one of a shard beside others.

While the block works, a heartbeat keeps the flight.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Final

import structlog
from structlog.contextvars import bound_contextvars

from sluice import log_events
from sluice.errors import Fenced, IllegalTransition, NothingToReview, Permanent, ReviewNotApproved, SluiceError
from sluice.flow.measuring import count_reopened, measured, stuck_counted
from sluice.flow.rebuilding import rebuilding
from sluice.guard.heartbeat import Heartbeat
from sluice.guard.log_level import logged_from
from sluice.guard.memory import lack_of_memory_told
from sluice.model.base import RunId, Token
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Failure, Run
from sluice.model.shard import Shard
from sluice.model.stage import StagePolicy
from sluice.ports import Services

log: Final = structlog.get_logger()

_SHARD_STEPS: Final = (Step.FETCH, Step.TRANSFORM)

_LEFT_TO_SETTLEMENT: Final = (NothingToReview, ReviewNotApproved)
"""What the failures of shards, or a person's decision, explain better than the step that met them."""


class Entry:
    """A run at one of its steps: the run with the token that this worker holds, its stage's policy, and its heartbeat."""

    def __init__(self, services: Services, run: Run, policy: StagePolicy) -> None:
        self.run = run
        self.policy = policy
        self._facts = _identity(run, run.token, run.step)
        pulse = Heartbeat(self.renew, policy, services.clock, self._facts, policy.gap(run.origin))
        self.pulse = stuck_counted(pulse, services.metrics, run.stage, run.step)
        self._services = services
        self._exchange = threading.Lock()

    def renew(self, lease_ttl: timedelta) -> None:
        """Keep the flight for longer; raise `Fenced` if this worker has lost it. A run that is over keeps none."""
        if self.run.status is not RunStatus.RUNNING:
            return
        with self._exchange:
            self._services.runs.renew(self.run, lease_ttl)

    def require_running(self) -> None:
        """Keep the flight for longer; raise `Fenced` if this worker has lost it, or somebody has ended the run."""
        with self._exchange:
            if not self._services.runs.renew(self.run, self.policy.lease_ttl):
                raise Fenced(f"run {self.run.id} was ended meanwhile", run=self.run.id)

    def take_next_token(self) -> Run:
        """Exchange the token for a newer one and return the run with it; raise `Fenced` if this worker has lost the run."""
        with self._exchange:
            self.run = self._services.runs.next_token(self.run)
            self._facts["token"] = self.run.token
            return self.run


@contextmanager
def entered(services: Services, run_id: RunId, step: Step) -> Iterator[Entry]:
    """Put the run at `step`; fail it if the block raises what no repetition mends.

    Every later write of the block carries the run's new token. A retryable error leaves the run as it is, with its flight.
    """
    before = services.runs.get(run_id)
    policy = services.policy(before.stage)
    run = services.runs.enter(run_id, step, policy.lease_ttl)
    count_reopened(services, before, step)
    entry = Entry(services, run, policy)
    began = services.clock.elapsed()
    with bound_contextvars(**run.log_context, step=str(step)), logged_from(policy.log_level):
        log.info(log_events.STEP_STARTED)
        try:
            with measured(services, run.stage, step), lack_of_memory_told(), rebuilding(services), entry.pulse:
                yield entry
        except _LEFT_TO_SETTLEMENT as error:
            log.info(log_events.STEP_FAILED, error=type(error).__name__, message=error.message)
            raise
        except SluiceError as error:
            error.facts["held"] = entry.run.token
            log.warning(log_events.STEP_FAILED, error=type(error).__name__, message=error.message)
            if isinstance(error, Permanent):
                with suppress(Fenced, IllegalTransition):
                    services.runs.end(entry.run, RunEvent.FAIL, Failure.of(error))
            raise
        log.info(log_events.STEP_FINISHED, seconds=round(services.clock.elapsed() - began, 3))


def entered_for_a_shard(services: Services, run_id: RunId, step: Step) -> Run:
    """Return the run, at a step of its shards; shards do not fence each other.

    The first of them moves the run on. And a run that ended without a shard, whose task was cleared, is reopened.
    """
    run = services.runs.get(run_id)
    if run.status is RunStatus.RUNNING and run.step in _SHARD_STEPS:
        return run
    entered_again = services.runs.enter(run_id, step, services.policy(run.stage).lease_ttl)
    count_reopened(services, run, step)
    return entered_again


def heartbeat_of(services: Services, run: Run, shard: Shard, step: Step, policy: StagePolicy) -> Heartbeat:
    """Return the heartbeat of a shard that this worker has claimed."""

    def renew(lease_ttl: timedelta) -> None:
        services.shards.renew(shard, lease_ttl)

    facts = {**_identity(run, shard.token, step), "shard": shard.key}
    pulse = Heartbeat(renew, policy, services.clock, facts, policy.gap(run.origin))
    return stuck_counted(pulse, services.metrics, run.stage, step)


def _identity(run: Run, token: Token, step: Step) -> dict[str, object]:
    """Return what tells whose lease it is that ends."""
    return {"stage": run.stage, "key": run.request_key, "owner": run.id, "token": token, "step": str(step)}
