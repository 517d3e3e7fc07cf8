"""What the factory makes of a spec: tasks, their order, their rules, and the form."""

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import CronTriggerTimetable

from sluice.adapters.spec_files import SpecFiles
from sluice.airflow_glue.shard_groups import spread
from sluice.airflow_glue.spec_page import spec_page
from sluice.cli.local.services import stage_pools
from sluice.flow.pipeline import PIPELINE
from sluice.model.base import ShardKey
from sluice.model.canary import CanarySpec
from sluice.model.fields import FieldSpec
from sluice.model.stage import StagePolicy
from tests.unit.flow.workshop import sync_spec


@pytest.fixture
def dag(airflow_home: Path) -> Any:
    """The DAG of the sync `hotels`."""
    from sluice.airflow_glue import sync_dag

    return sync_dag("hotels")


def test_the_order_is_the_pipeline_s(dag: Any) -> None:
    """The tasks are the pipeline's steps in its order; those of shard grain are one mapped group."""
    order = [task.task_id.removeprefix("shards.") for task in dag.topological_sort()]
    assert order == [step.step.value for step in PIPELINE]
    mapped = {task.task_id for task in dag.tasks if task.get_closest_mapped_task_group() is not None}
    assert mapped == {f"shards.{step.step.value}" for step in PIPELINE if step.grain == "shard"}


def test_only_fetching_takes_slots_of_the_stage_s_pool(dag: Any) -> None:
    """The pool named after the stage limits fetching and nothing else."""
    assert {task.task_id: task.pool for task in dag.tasks if task.pool != "default_pool"} == {
        "shards.fetch": "sluice_hotel_content"
    }


def test_trigger_rules(dag: Any) -> None:
    """A failed shard stops no review of the others, nothing but an approval leads to publishing, and the end always comes."""
    rules = {task.task_id: task.trigger_rule.value for task in dag.tasks}
    assert rules == {
        "admit": "all_success",
        "shard": "all_success",
        "shards.fetch": "all_success",
        "shards.transform": "all_success",
        "review": "all_done_min_one_success",
        "gate": "all_success",
        "publish": "all_success",
        "settle": "all_done",
    }


def test_a_task_of_several_shards_is_transformed_though_one_failed(airflow_home: Path) -> None:
    """Where shards share a task, its transform runs after its fetch, whatever became of it."""
    from sluice.airflow_glue import sync_dag

    assert sync_dag("grouped").get_task("shards.transform").trigger_rule.value == "all_done"


def test_what_the_spec_says_is_on_the_dag(dag: Any) -> None:
    """Schedule, tags, documentation and the policy's retries come from spec and stage."""
    assert dag.dag_id == "sluice_hotels"
    assert dag.schedule == CronTriggerTimetable("@daily", timezone="UTC")
    assert not dag.catchup
    assert dag.max_active_runs > 1
    assert dag.tags == {"sluice", "hotel-content", "default"}
    assert "`public.hotels`" in dag.doc_md
    assert "| without an answer | expired after 1d |" in dag.doc_md
    assert "rejected 1%, seen at least 80%, drift 0.25; first load: " in dag.doc_md
    assert {task.retries for task in dag.tasks if task.task_id not in {"gate", "publish"}} == {0}
    assert {task.owner for task in dag.tasks} == {"sluice"}


def test_the_page_of_a_dag_says_where_values_come_from() -> None:
    """An expression stays within its cell of the table, whatever texts it puts together."""
    field = FieldSpec.model_validate({"name": "place", "type": "text", "concat": ["city", {"text": " | "}, "rooms[0].code"]})
    spec = sync_spec()
    page = spec_page(spec.model_copy(update={"fields": (*spec.fields, field)}), StagePolicy())
    (row,) = [line for line in page.splitlines() if line.startswith("| `place` |")]
    assert row == r'| `place` | text | concat\(city, " \| ", rooms\[0\]\.code\) |  |  |'


def test_the_page_of_a_dag_names_its_canary() -> None:
    """By its version and its share."""
    canary = CanarySpec.model_validate({"version": 2, "share": "2.50%"})
    page = spec_page(sync_spec(canary=canary), StagePolicy())
    assert "| stage | hotel-content, tenant default, version 1; version 2 for 2.5% of the shards |" in page


def test_stages_differ_in_their_tasks(airflow_home: Path) -> None:
    """Tries of a task, the wait between them, its longest time, and how many shards are fetched at a time: each stage's own."""
    from sluice.airflow_glue import sync_dag

    fetches = [sync_dag(name).get_task("shards.fetch") for name in ("hotels", "grouped")]
    assert [task.retries for task in fetches] == [0, 1]
    assert [task.retry_delay.total_seconds() for task in fetches] == [30, 0]
    assert [task.execution_timeout.total_seconds() for task in fetches] == [6 * 3600, 2 * 3600]
    pools = stage_pools(airflow_home / "include")
    assert [pools[task.pool].slots for task in fetches] == [4, 9]


def test_stages_differ_in_how_many_tasks_share_the_shards(airflow_home: Path) -> None:
    """Of two shards, one stage gives each a task, the other puts both into one."""
    files = SpecFiles(airflow_home / "include")
    shards = [ShardKey("tokyo"), ShardKey("brittany")]
    groups = [files.policy(stage).groups for stage in ("hotel-content", "in-one-group")]
    assert [len(spread(shards, number)) for number in groups] == [2, 1]


@pytest.mark.parametrize("name", ["gate", "publish"])
def test_nothing_approves_by_default(dag: Any, name: str) -> None:
    """Who asks has no answer of its own, offers the three there are, and expires as the spec says."""
    asking = dag.get_task(name)
    assert asking.defaults is None
    assert asking.options == ["Approve", "Approve without deletions", "Reject"]
    assert asking.response_timeout.total_seconds() == 24 * 3600
    assert asking.execution_timeout.total_seconds() == 6 * 3600
    assert set(asking.serialized_params) == {"comment", "deletes_at_most", "review_id"}


def test_the_form(dag: Any) -> None:
    """Left as it is, the form asks for what the schedule asks for; declared shards can be picked from a list."""
    assert dag.params.dump() == {
        "mode": None,
        "replays": None,
        "letters": [],
        "cause": None,
        "version": None,
        "window_start": None,
        "window_end": None,
        "shards": [],
        "force": False,
        "review": "policy",
    }
    assert dag.params.get_param("shards").schema["examples"] == ["tokyo", "brittany"]
    assert all(dag.params.get_param(name).description for name in dag.params)
