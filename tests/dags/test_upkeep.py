"""The DAG that removes what has outlived its time, in a real Airflow."""

import psycopg

from sluice.adapters.postgres import conninfo
from sluice.model.airflow_names import UPKEEP_DAG
from sluice.model.artifact import ArtifactKind
from sluice.ports import ConnectionInfo
from tests.dags.driving import DrivenAirflow
from tests.dags.test_run import DAG, run_of, services


def test_it_looks_first_and_removes_then(airflow: DrivenAirflow, database: ConnectionInfo) -> None:
    """Asked to look, it removes nothing, and says what it would; else it removes just that, in the name of who asked."""
    synced = airflow.trigger(DAG)
    airflow.drive(DAG, synced)
    with psycopg.connect(conninfo(database)) as connection:
        connection.execute("update sluice_state.artifact set expires_at = now() where kind in ('raw', 'rows')")

    looked = airflow.trigger(UPKEEP_DAG, dry_run=True)
    states = airflow.drive(UPKEEP_DAG, looked)
    assert (states["look"], states["remove"], states[""]) == ("success", "skipped", "success")
    would = airflow.xcom(UPKEEP_DAG, looked, "look")
    with services() as state:
        run = run_of(state, synced)
        assert state.pointers.of(run.id, ArtifactKind.RAW) != []

    removed = airflow.trigger(UPKEEP_DAG)
    assert set(airflow.drive(UPKEEP_DAG, removed).values()) == {"success"}
    did = airflow.xcom(UPKEEP_DAG, removed, "remove")
    assert did == would
    assert did["artifacts"] > 0
    assert did["syncs"]["hotels"]["artifacts"] == {"objects": did["artifacts"], "bytes": did["bytes"]}
    with services() as state:
        assert state.pointers.of(run.id, ArtifactKind.RAW) == []
        assert [(entry.act, entry.by.name) for entry in state.audit.of(None, None, 1)] == [("collect-garbage", "ann")]
