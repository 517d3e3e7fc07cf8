"""The inline runner: the same steps in this process, without a scheduler; a request goes in, a settled run comes out."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any, Final
from uuid import uuid4

import structlog

from sluice import log_events
from sluice.errors import (
    Fenced,
    FlightTaken,
    IllegalTransition,
    NothingToReview,
    RedoNeeded,
    ReviewNotApproved,
    ReviewWaiting,
    Scope,
    SluiceError,
)
from sluice.flow.admission import admit, look_again
from sluice.flow.fetcher import fetch
from sluice.flow.gate import hold
from sluice.flow.pipeline import PIPELINE, PipelineStep
from sluice.flow.rebuilding import rebuilding
from sluice.flow.redo import MOST_REDOS, publish, transform
from sluice.flow.reviewer import review
from sluice.flow.rollback import review_rollback
from sluice.flow.settlement import settle
from sluice.flow.sharder import plan_shards
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Failure, Run, RunRequest
from sluice.ports import Services

log: Final = structlog.get_logger()

_RUN_STEPS: Final[Mapping[Step, Callable[[Services, RunId], Any]]] = {
    Step.SHARD: plan_shards,
    Step.REVIEW: review,
    Step.GATE: hold,
    Step.PUBLISH: publish,
}
_ROLLBACK_STEPS: Final[Mapping[Step, Callable[[Services, RunId], Any]]] = {
    Step.REVIEW: review_rollback,
    Step.GATE: hold,
    Step.PUBLISH: publish,
}
_SHARD_STEPS: Final[Mapping[Step, Callable[[Services, RunId, ShardKey], Any]]] = {
    Step.FETCH: fetch,
    Step.TRANSFORM: transform,
}


def new_inline_run() -> RunId:
    """Return an id for a run that no DagRun executes."""
    return RunId(f"inline-{uuid4().hex[:12]}")


def run_inline(services: Services, request: RunRequest, run_id: RunId | None = None) -> Run:
    """Execute the request to its end, or until it waits for a person, going on from what a dead run of it left.

    While another run of the request is alive, this one follows it. A shard that fails does not stop the others. With a
    `run_id`, the run is called so, and goes on if it was admitted before. Raises what stops the whole run, after settling it.
    """
    run = _admit(services, request, run_id or new_inline_run())
    with _stoppable(services, run.id):
        run = _follow(services, run)
        return run if run.follows is not None else _go_through(services, run.id, after=Step.ADMIT)


def resume_inline(services: Services, run_id: RunId) -> Run:
    """Go on with a run that waited at the gate."""
    with _stoppable(services, run_id):
        return _go_through(services, run_id, after=Step.REVIEW)


def _admit(services: Services, request: RunRequest, run_id: RunId) -> Run:
    """Admit the run; an earlier one of the request that cannot be read is rebuilt first."""
    with suppress(RedoNeeded), rebuilding(services):
        return admit(services, request, run_id)
    return admit(services, request, run_id)


@contextmanager
def _stoppable(services: Services, run_id: RunId) -> Iterator[None]:
    """End the run if the block is stopped from the keyboard."""
    try:
        yield
    except KeyboardInterrupt:
        stopped = Failure(error="Interrupted", message="stopped from the keyboard; run it again to go on from here")
        with suppress(SluiceError):
            services.runs.end(services.runs.get(run_id), RunEvent.FAIL, stopped)
        raise


def _follow(services: Services, run: Run) -> Run:
    """Look at every heartbeat what has become of the run, until it has ended as its owner did, or is the owner itself."""
    if run.is_following:
        log.info(log_events.FLIGHT_AWAITED, **run.log_context, owner=run.follows)
    policy = services.policy(run.stage)
    while run.is_following:
        services.clock.wait(policy.heartbeat)
        run = look_again(services, run)
    return run


def _go_through(services: Services, run_id: RunId, after: Step) -> Run:
    """Take the run through the steps behind `after`; where something has to be made again, through all of them."""
    redone = 0
    while True:
        try:
            with rebuilding(services):
                return _work_off(services, run_id, after)
        except ReviewWaiting:
            return services.runs.get(run_id)
        except (NothingToReview, ReviewNotApproved):
            return settle(services, run_id)
        except (Fenced, FlightTaken):  # the run is somebody else's, or has to wait for somebody else; or a person has ended it
            if (run := services.runs.get(run_id)).status is RunStatus.CANCELLED:
                return run
            raise
        except SluiceError as error:
            if not isinstance(error, RedoNeeded) or redone == MOST_REDOS:
                _stop(services, run_id, error)
                raise
            redone += 1
            after = Step.ADMIT


def _stop(services: Services, run_id: RunId, error: SluiceError) -> None:
    """End the run by what stopped it. Settlement alone would take one for done whose publication nothing has followed.

    It is ended under the token of the step that was stopped: who has entered the run since is not stopped by that.
    """
    run = services.runs.get(run_id)
    held = run.model_copy(update={"token": error.facts.get("held", run.token)})
    try:
        services.runs.end(held, RunEvent.FAIL, Failure.of(error))
    except Fenced:
        return
    except IllegalTransition:
        pass
    settle(services, run_id)


def _work_off(services: Services, run_id: RunId, after: Step) -> Run:
    order = [step.step for step in PIPELINE]
    ahead = [step for step in PIPELINE if order.index(step.step) > order.index(after) and not step.always]
    is_rollback = services.runs.get(run_id).undoes is not None
    work = _ROLLBACK_STEPS if is_rollback else _RUN_STEPS
    for grain, steps in groupby(ahead, key=lambda step: step.grain):
        if grain == "shard":
            _bring_in(services, run_id, list(steps))
            continue
        for step in steps:
            if step.step not in work:
                continue
            work[step.step](services, run_id)
            if services.runs.get(run_id).status is RunStatus.WAITING:
                return services.runs.get(run_id)
    return settle(services, run_id)


def _bring_in(services: Services, run_id: RunId, steps: list[PipelineStep]) -> None:
    """Take shard by shard through the steps; one that fails has told so itself, and stops no other."""
    for shard in services.shards.of(run_id):
        try:
            for step in steps:
                _SHARD_STEPS[step.step](services, run_id, shard.key)
        except SluiceError as error:
            if error.scope is not Scope.SHARD:
                raise
