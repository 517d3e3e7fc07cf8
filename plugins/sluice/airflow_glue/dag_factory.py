"""The spec of a sync in, its DAG out, laid out as `flow.pipeline` states the order."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, CronTriggerTimetable, TriggerRule, task, task_group
from airflow.sdk.definitions.param import ParamsDict

from sluice.adapters.spec_files import SpecFiles
from sluice.airflow_glue.asking import AskingStep
from sluice.airflow_glue.known_shards import shards_to_choose_from
from sluice.airflow_glue.params import params_form
from sluice.airflow_glue.spec_page import spec_page
from sluice.airflow_glue.tasks import SyncTasks
from sluice.airflow_glue.workplace import settings
from sluice.flow.pipeline import PIPELINE, PipelineStep
from sluice.model.airflow_names import TAG, dag_id_of, pool_of
from sluice.model.lifecycle import Step
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy

SHARDS_GROUP: Final = "shards"
_ACTIVE_RUNS: Final = 16
"""A run that waits for a person must not hold up tomorrow's."""

_ASKING: Final = frozenset({Step.GATE, Step.PUBLISH})
"""What a person approved may not be what would be published: then publishing asks once more."""

_EPOCH: Final = datetime(2020, 1, 1, tzinfo=UTC)
"""Airflow wants a start; without catch-up any past one does."""


def sync_dag(name: str, include: Path | None = None) -> DAG:
    """Return the DAG `sluice_<name>`; raise `SpecInvalid`, which Airflow shows as an import error of this one file."""
    folder = settings(include).include
    files = SpecFiles(folder)
    spec = files.sync(name, tries_patterns=False)
    policy = files.policy(spec.stage)
    asset = Asset(name=f"sluice/{spec.sync}", uri=f"x-sluice://{spec.sync}")
    with DAG(
        dag_id=dag_id_of(spec.sync),
        description=spec.description or None,
        schedule=_schedule(spec),
        start_date=_EPOCH,
        catchup=False,
        max_active_runs=_ACTIVE_RUNS,
        tags=[TAG, spec.stage, spec.tenant],
        doc_md=spec_page(spec, policy),
        default_args={
            "owner": "sluice",
            "retries": policy.task_retries,
            "retry_delay": policy.task_retry_delay,
            "execution_timeout": policy.timeouts.step,
        },
    ) as dag:
        _lay_out(spec, policy, SyncTasks(sync=spec.sync, include=folder, asset=asset))
    # Last: Airflow would copy the form into each of the tasks, which takes longer than all else.
    dag.params = ParamsDict(params_form(spec, shards_to_choose_from(spec)))
    return dag


def _schedule(spec: SyncSpec) -> CronTriggerTimetable | CronDataIntervalTimetable | None:
    """Return when the sync runs. With a window each run has a data interval, as a backfill needs: else there would be none."""
    if spec.schedule is None:
        return None
    timetable = CronDataIntervalTimetable if spec.uses_window else CronTriggerTimetable
    return timetable(spec.schedule, timezone=spec.schedule_zone)


def _lay_out(spec: SyncSpec, policy: StagePolicy, tasks: SyncTasks) -> None:
    """Chain the tasks in the order of the pipeline; steps of shard grain become one mapped group."""
    previous: Any = None
    came_by_shard = False
    for grain, steps in groupby(PIPELINE, key=lambda step: step.grain):
        if grain == "shard":
            previous = _mapped_group(spec, policy, tasks, list(steps)).expand(group=previous)
            came_by_shard = True
            continue
        for step in steps:
            node = _run_task(spec, policy, tasks, step, after_shards=came_by_shard)
            came_by_shard = False
            if previous is not None:
                previous >> node
            previous = node


def _run_task(spec: SyncSpec, policy: StagePolicy, tasks: SyncTasks, step: PipelineStep, *, after_shards: bool) -> Any:
    rule = TriggerRule.ALL_SUCCESS
    if step.always:
        rule = TriggerRule.ALL_DONE
    elif after_shards:
        rule = TriggerRule.ALL_DONE_MIN_ONE_SUCCESS
    body: Callable[..., Any] = getattr(tasks, step.step.value)
    if step.step in _ASKING:
        return AskingStep(
            step=step.step,
            body=body,
            include=tasks.include,
            task_retries=policy.task_retries,
            response_timeout=spec.review.timeout,
            trigger_rule=rule,
            outlets=[tasks.asset] if step.step is Step.PUBLISH else [],
        )
    return task(task_id=step.step.value, trigger_rule=rule)(body)()


def _mapped_group(spec: SyncSpec, policy: StagePolicy, tasks: SyncTasks, steps: list[PipelineStep]) -> Any:
    """Return the group that is mapped over the shards, or over groups of them.

    A shard that has its own task is not transformed unless it was fetched. Several shards in one task are: their fetch fails if
    one of them did, yet the others came in. So it is where only planning shows how many shards there are.
    """
    number = 1 if spec.sharding is None else spec.sharding.number
    has_own_task = number is not None and number <= policy.groups
    later_rule = TriggerRule.ALL_SUCCESS if has_own_task else TriggerRule.ALL_DONE

    @task_group(group_id=SHARDS_GROUP)
    def shards(group: Any) -> None:
        previous: Any = None
        for step in steps:
            body: Callable[..., Any] = getattr(tasks, step.step.value)
            options: dict[str, Any] = {"pool": pool_of(spec.stage)} if step.step is Step.FETCH else {}
            node = task(
                task_id=step.step.value,
                map_index_template="{{ task.op_kwargs['group']['name'] }}",
                trigger_rule=TriggerRule.ALL_SUCCESS if previous is None else later_rule,
                **options,
            )(body)(group=group)
            if previous is not None:
                previous >> node
            previous = node

    return shards
