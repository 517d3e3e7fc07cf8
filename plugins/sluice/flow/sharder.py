"""Sharding: a run comes in, its shards go out, each with the values its requests are made with and where it starts."""

from typing import Final

import structlog

from sluice import log_events
from sluice.errors import RawDataGone, UsageInvalid
from sluice.flow.entering import Entry, entered
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.raw_data import replayed
from sluice.flow.shard_plans import all_shards, by_version, question_of
from sluice.model.base import RunId
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Mode, Redrive, Run
from sluice.model.shard import Shard, ShardPlan, some_of
from sluice.model.sharding import FileShards
from sluice.model.spec import SyncSpec
from sluice.ports import Services

log: Final = structlog.get_logger()

_PLANNED_ONCE: Final = frozenset({"windows", "listed", "files"})
"""Kinds of sharding whose plan is another one a moment later. So a run, and whoever goes on from it, stays with the first."""


def plan_shards(services: Services, run_id: RunId) -> list[Shard]:
    """Plan the run's shards and return them by key; those that exist stay as they are.

    A run for which there is nothing new to be cut into shards has succeeded. Raises `UsageInvalid` if the run asks for shards
    that there are not, what `all_shards` raises, and `RawDataGone` for a replay.
    """
    is_first_try = services.runs.get(run_id).step is Step.ADMIT
    with entered(services, run_id, Step.SHARD) as entry:
        run = entry.run
        standing = services.shards.of(run_id)
        if run.status is RunStatus.SUCCEEDED:
            return standing
        if run.mode is Mode.REPLAY:
            return standing or _adopted(services, entry)
        spec = pinned_spec(services, run)
        if run.redrives is not None:
            return standing or _of_letters(services, run, run.redrives, spec)
        if standing and not _may_grow(spec, is_first_try=is_first_try):
            return standing
        question = question_of(services, run)
        plans = _wanted(all_shards(services, spec, question, entry.pulse.moved), run, spec)
        marks = {plan.key: question.marks[plan.key] for plan in plans if plan.key in question.marks}
        shards = services.shards.plan(run, by_version(spec, plans), marks)
        log.info(
            log_events.SHARDS_PLANNED,
            shards=len(shards),
            with_watermark=len(marks),
            by_canary=sum(shard.version_in(run) != run.transformer_version for shard in shards),
        )
        if not shards:
            services.runs.end(run, RunEvent.SUCCEED)
        return shards


def _may_grow(spec: SyncSpec, *, is_first_try: bool) -> bool:
    """Whether shards may join those there are: of files, those that came after a run whose plan this one goes on with."""
    if spec.sharding is None or spec.sharding.kind not in _PLANNED_ONCE:
        return True
    return spec.sharding.kind == "files" and is_first_try


def _adopted(services: Services, entry: Entry) -> list[Shard]:
    """Return the shards of the runs that are replayed, as they were fetched."""
    run = entry.run
    donors = replayed(services, run)
    plans = {
        shard.key: ShardPlan(key=shard.key, params=shard.params) for donor in donors for shard in services.shards.of(donor)
    }
    versions = {
        plan.key: plan.transformer_version
        for plan in by_version(pinned_spec(services, run), list(plans.values()))
        if plan.transformer_version is not None
    }
    shards = services.shards.adopt(run, donors, versions, services.clock.now() + entry.policy.artifact_ttl)
    if not shards:
        raise RawDataGone(f"what {some_of(donors, ' and ')} has fetched is not kept any more")
    log.info(log_events.SHARDS_ADOPTED, shards=len(shards), replays=some_of(donors))
    return shards


def _of_letters(services: Services, run: Run, redrives: Redrive, spec: SyncSpec) -> list[Shard]:
    """Return the shards that delivered the dead letters which are taken up; there are none once all of them have ended."""
    objects = services.redrives.shards(run.sync, redrives)
    plans = [ShardPlan(key=key, params={}) for key in objects]
    shards = services.shards.plan(run, by_version(spec, plans), {})
    log.info(log_events.LETTERS_TAKEN_UP, shards=len(shards), objects=sum(objects.values()))
    if not shards:
        services.runs.end(run, RunEvent.SUCCEED)
    return shards


def _wanted(plans: list[ShardPlan], run: Run, spec: SyncSpec) -> list[ShardPlan]:
    if not run.shards:
        return plans
    known = {plan.key for plan in plans}
    if unknown := [key for key in run.shards if key not in known]:
        there = some_of([plan.key for plan in plans]) or "none"
        is_of_news = run.mode is Mode.INCREMENTAL and isinstance(spec.sharding, FileShards)
        hint = " (files that are as they were published are shards of full runs alone)" if is_of_news else ""
        raise UsageInvalid(f"{run.sync} has no shard {some_of(unknown)}; its shards: {there}{hint}")
    asked = set(run.shards)
    return [plan for plan in plans if plan.key in asked]
