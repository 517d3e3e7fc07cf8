"""The inline runner: the same steps in this process, without a scheduler; a request goes in, a settled run comes out."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import groupby
from typing import Any, Final
from uuid import uuid4

import structlog

from sluice import log_events
from sluice.errors import Fenced, FlightTaken, NothingToReview, ReviewNotApproved, Scope, SluiceError
from sluice.flow.admission import admit
from sluice.flow.fetcher import fetch
from sluice.flow.gate import hold
from sluice.flow.pipeline import PIPELINE, PipelineStep
from sluice.flow.publisher import publish
from sluice.flow.reviewer import review
from sluice.flow.settlement import settle
from sluice.flow.sharder import plan_shards
from sluice.flow.transformer import transform
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
_SHARD_STEPS: Final[Mapping[Step, Callable[[Services, RunId, ShardKey], Any]]] = {
    Step.FETCH: fetch,
    Step.TRANSFORM: transform,
}


def run_inline(services: Services, request: RunRequest) -> Run:
    """Execute the request to its end, or until it waits for a person, going on from what a dead run of it left.

    A shard that fails does not stop the others. Raises what stops the whole run, after settling it.
    """
    run = _admitted(services, request)
    return _go_through(services, run.id, after=Step.ADMIT)


def resume_inline(services: Services, run_id: RunId) -> Run:
    """Go on with a run that waited at the gate."""
    return _go_through(services, run_id, after=Step.REVIEW)


def _admitted(services: Services, request: RunRequest) -> Run:
    """Take the flight. A holder that died is waited for until its lease ends; one that lives on is not."""
    run_id = RunId(f"inline-{uuid4().hex[:12]}")
    try:
        return admit(services, request, run_id)
    except FlightTaken as taken:
        log.warning(log_events.FLIGHT_AWAITED, owner=taken.facts["owner"], expires_at=str(taken.facts["expires_at"]))
        services.clock.wait_until(taken.facts["expires_at"])
        return admit(services, request, run_id)


def _go_through(services: Services, run_id: RunId, after: Step) -> Run:
    order = [step.step for step in PIPELINE]
    ahead = [step for step in PIPELINE if order.index(step.step) > order.index(after) and not step.always]
    try:
        for grain, steps in groupby(ahead, key=lambda step: step.grain):
            if grain == "shard":
                _bring_in(services, run_id, list(steps))
                continue
            for step in steps:
                _RUN_STEPS[step.step](services, run_id)
                if services.runs.get(run_id).status is RunStatus.WAITING:
                    return services.runs.get(run_id)
    except (NothingToReview, ReviewNotApproved):
        return settle(services, run_id)
    except Fenced:
        raise
    except SluiceError:
        settle(services, run_id)
        raise
    except KeyboardInterrupt:
        stopped = Failure(error="Interrupted", message="stopped from the keyboard; run it again to go on from here")
        with suppress(SluiceError):
            services.runs.end(services.runs.get(run_id), RunEvent.FAIL, stopped)
        raise
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
