"""Artifacts that are lost while a run waits in Airflow: its later tasks make them again, with no person's help."""

import shutil

import pytest

from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.model.artifact import ArtifactKind
from sluice.model.lifecycle import RunStatus
from sluice.ports import ConnectionInfo
from tests.dags.conftest import HOME
from tests.dags.driving import DrivenAirflow
from tests.dags.test_run import DAG, GROUPED, run_of, services, table_size
from tests.support.servers import Supplier


@pytest.mark.parametrize("dag", [DAG, GROUPED])
def test_what_was_lost_at_the_gate_is_made_again(
    airflow: DrivenAirflow, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier, dag: str
) -> None:
    """Spec, a shard's pages, all rows and the diff: the approval still counts, since the same diff comes of it all."""
    run = airflow.trigger(dag, review="always")
    airflow.drive(dag, run)
    lose(artifacts, ArtifactKind.SPEC, ArtifactKind.ROWS, ArtifactKind.DIFF)
    lose(artifacts, ArtifactKind.RAW, shard="tokyo")
    asked = len(supplier.requests())
    airflow.answer(dag, run, "Approve")
    states = airflow.drive(dag, run)
    assert set(states.values()) == {"success"}, states
    assert table_size(database, dag) == supplier.control(delay=0)["hotels"]
    again = supplier.requests()[asked:]
    assert again
    assert all("region=tokyo" in target for target in again), "what was not lost is not asked for again"
    with services() as state:
        assert run_of(state, run).status is RunStatus.SUCCEEDED
        assert {shard.key: shard.epoch for shard in state.shards.of(run_of(state, run).id)} == {"brittany": 0, "tokyo": 1}


def test_a_worker_that_died_while_it_made_something_again(
    airflow: DrivenAirflow, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier
) -> None:
    """What it had marked is what the next try finds: nothing is reviewed or published without it."""
    run = airflow.trigger(DAG, review="always")
    airflow.drive(DAG, run)
    lose(artifacts, ArtifactKind.RAW, shard="tokyo")
    with services() as state:
        entered = run_of(state, run)
        (tokyo,) = (shard.key for shard in state.shards.of(entered.id) if shard.key == "tokyo")
        state.redos.fetch_again(tokyo, entered)
    airflow.answer(DAG, run, "Approve")
    states = airflow.drive(DAG, run)
    assert set(states.values()) == {"success"}, states
    assert table_size(database) == supplier.control(delay=0)["hotels"]


def test_another_diff_than_the_approved_one_is_not_published(
    airflow: DrivenAirflow, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier
) -> None:
    """If the supplier says something else by now a person decides again, asked by the task that publishes."""
    run = airflow.trigger(DAG, review="always")
    airflow.drive(DAG, run)
    lose(artifacts, ArtifactKind.RAW, ArtifactKind.ROWS)
    supplier.control(change=30)
    airflow.answer(DAG, run, "Approve")
    states = airflow.drive(DAG, run)
    assert (states["publish"], states["settle"], states[""]) == ("awaiting_input", "None", "running")
    assert table_size(database) == 0
    airflow.answer(DAG, run, "Approve", "publish")
    states = airflow.drive(DAG, run)
    assert set(states.values()) == {"success"}, states
    assert table_size(database) == supplier.control(delay=0)["hotels"]


def lose(artifacts: ConnectionInfo, *kinds: ArtifactKind, shard: str | None = None) -> None:
    """Delete all artifacts of some kinds, of one shard or of all, and the workers' copies."""
    store = S3ArtifactStore(artifacts)
    listed = store._client.list_objects_v2(Bucket=store._bucket)["Contents"]
    for key in [entry["Key"] for entry in listed]:
        _, _, kind, place, _ = key.split("/")
        if kind in kinds and shard in (None, place):
            store._client.delete_object(Bucket=store._bucket, Key=key)
    shutil.rmtree(HOME / "cache", ignore_errors=True)
