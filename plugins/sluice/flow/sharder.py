"""Sharding: a run comes in, its shards go out, each with the values its requests are made with and where it starts."""

from typing import Final

import structlog

from sluice import log_events
from sluice.errors import UsageInvalid
from sluice.flow.entering import entered
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.shard_plans import declared_shards
from sluice.model.base import RunId
from sluice.model.lifecycle import RunStatus, Step
from sluice.model.run import Mode, Run
from sluice.model.shard import Shard, ShardPlan
from sluice.ports import Services

log: Final = structlog.get_logger()


def plan_shards(services: Services, run_id: RunId) -> list[Shard]:
    """Plan the run's shards and return them by key; those that exist stay as they are.

    Raises `UsageInvalid` if the run asks for shards that its spec does not declare.
    """
    with entered(services, run_id, Step.SHARD) as entry:
        run = entry.run
        if run.status is RunStatus.SUCCEEDED:
            return services.shards.of(run_id)
        plans = _wanted(declared_shards(pinned_spec(services, run)), run)
        marks = services.watermarks.of(run.sync) if run.mode is Mode.INCREMENTAL else {}
        marks = {plan.key: marks[plan.key] for plan in plans if plan.key in marks}
        shards = services.shards.plan(run, plans, marks)
        log.info(log_events.SHARDS_PLANNED, shards=len(shards), with_watermark=len(marks))
        return shards


def _wanted(declared: list[ShardPlan], run: Run) -> list[ShardPlan]:
    if not run.shards:
        return declared
    allowed = [plan.key for plan in declared]
    unknown = [key for key in run.shards if key not in allowed]
    if unknown:
        raise UsageInvalid(f"{run.sync} has no shard {', '.join(unknown)}; its shards: {', '.join(allowed)}")
    return [plan for plan in declared if plan.key in run.shards]
