"""Acts by hand upon DagRuns: what a person has ended stays so through Airflow's own tries, until a person clears it."""

from functools import partial

import psycopg

from sluice.adapters.postgres import conninfo
from sluice.flow.pinned_spec import pinned_ledger
from sluice.model.audit import Act
from sluice.model.base import ShardKey
from sluice.model.lifecycle import RunStatus
from sluice.ports import ConnectionInfo
from sluice.upkeep.by_hand import cancel_run, stop_shard
from tests.dags.driving import DrivenAirflow
from tests.dags.test_run import DAG, GROUPED, run_of, services, table_size
from tests.support.nouns import an_actor
from tests.support.servers import Supplier


def test_a_stopped_shard_and_a_cancelled_run_go_on_once_they_are_cleared(
    airflow: DrivenAirflow, database: ConnectionInfo, supplier: Supplier
) -> None:
    """The others of a stopped shard's group come in, and it is not tried again; of a cancelled run no task does anything."""
    run = airflow.trigger(GROUPED)
    airflow.drive(GROUPED, run, up_to="shards.fetch")
    with services() as state:
        stop_shard(state, run_of(state, run).id, ShardKey("tokyo"), an_actor())
    assert airflow.drive(GROUPED, run, up_to="review")["fetch[0]"] == "failed"
    assert airflow.tries(GROUPED, run, "shards.fetch", 0) == 1
    assert {target.partition("region=")[2].partition("&")[0] for target in supplier.requests()} == {"brittany"}
    with services() as state:
        cancelled = cancel_run(state, run_of(state, run).id, an_actor(), partial(pinned_ledger, state))
    assert cancelled.run.status is RunStatus.CANCELLED
    states = airflow.drive(GROUPED, run)
    assert (states["review"], states["publish"], states["settle"], states[""]) == ("skipped", "skipped", "success", "success")
    assert airflow.xcom(GROUPED, run, "settle")["status"] == "cancelled"

    airflow.clear(GROUPED, run, "shards.fetch", 0)
    states = airflow.drive(GROUPED, run)
    assert set(states.values()) == {"success"}, states
    assert table_size(database, GROUPED) == supplier.control(delay=0)["hotels"]


def test_a_cancelled_runs_dag_run_is_ended_by_airflow(
    airflow: DrivenAirflow, api: ConnectionInfo, database: ConnectionInfo
) -> None:
    """Where it can be asked: its gate asks nobody any more. Who has triggered what is forced is in the audit trail, too.

    A clearing before the run was opened is known once it is: no later task takes it for one after the act.
    """
    assert api.conn_id == "sluice_airflow"
    run = airflow.trigger(DAG, review="always", force=True)
    airflow.clear(DAG, run, "admit")
    airflow.drive(DAG, run, up_to="shard")
    with psycopg.connect(conninfo(database)) as connection:
        assert connection.execute("select clearings from sluice_state.run").fetchall() == [(1,)]
    assert airflow.drive(DAG, run)["gate"] == "awaiting_input"
    with services() as state:
        cancel_run(state, run_of(state, run).id, an_actor(), partial(pinned_ledger, state))
        trail = state.audit.of(None, run_of(state, run).id, 10)
    states = airflow.client.get(f"/api/v2/dags/{DAG}/dagRuns/{run}").json()["state"], airflow.drive(DAG, run)["gate"]
    assert states == ("failed", "failed")
    assert table_size(database) == 0
    told = [(entry.act, entry.by.name) for entry in trail]
    assert told == [(Act.DECIDE_REVIEW, "ada"), (Act.CANCEL_RUN, "ada"), (Act.FORCE_RUN, "ann")]
