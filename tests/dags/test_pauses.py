"""Suppliers that ask for a pause longer than a worker waits: Airflow waits in its place, and uses up no try."""

from datetime import UTC, datetime, timedelta

import psycopg

from sluice.adapters.postgres import conninfo
from sluice.airflow_glue.run_ids import run_id_of
from sluice.model.lifecycle import ShardStatus
from sluice.model.shard import Shard
from sluice.ports import ConnectionInfo
from tests.dags.driving import DrivenAirflow
from tests.dags.test_run import DAG, GROUPED, TOKYO, services, table_size
from tests.support.servers import Supplier

FETCH = "shards.fetch"


def shard_of(dag_id: str, dag_run_id: str, key: str) -> Shard:
    """Return how a shard of the DagRun's run stands."""
    with services() as state:
        (found,) = [shard for shard in state.shards.of(run_id_of(dag_id, dag_run_id)) if shard.key == key]
        return found


def test_a_long_pause_is_airflows(airflow: DrivenAirflow, database: ConnectionInfo, supplier: Supplier) -> None:
    """In mid-shard the supplier asks for 400 s: the task gives its worker back until then, and goes on from there."""
    supplier.control(fail={"status": 429, "region": "tokyo", "after": 2, "retry_after": 400})
    run = airflow.trigger(DAG)
    before = datetime.now(UTC)
    states = airflow.drive(DAG, run)
    assert (states[f"fetch[{TOKYO}]"], states["review"], states[""]) == ("up_for_reschedule", "None", "running")
    pause = airflow.looks_again_at(DAG, run, FETCH, TOKYO) - before
    assert timedelta(seconds=400) <= pause <= timedelta(seconds=400) + timedelta(minutes=2)

    shard = shard_of(DAG, run, "tokyo")
    assert (shard.status, shard.failure and shard.failure.error) == (ShardStatus.FAILED, "RateLimited")
    assert "It asks for a pause of 400 s. Not before 20" in str(shard.failure)
    assert "Airflow asks again then, from the last checkpoint on" in str(shard.failure)
    with psycopg.connect(conninfo(database)) as state:
        kept = state.execute("select expires_at from sluice_state.lease where owner = %s", (run_id_of(DAG, run),)).fetchone()
        assert kept is not None
        assert kept[0] > before + timedelta(seconds=400)
    asked = supplier.requests()

    supplier.control(fail=None)
    airflow.let_it_look_again(DAG, run, FETCH, TOKYO)
    states = airflow.drive(DAG, run)
    assert set(states.values()) == {"success"}, states
    assert airflow.tries(DAG, run, FETCH, TOKYO) == 1
    again = supplier.requests()[len(asked) :]
    assert not set(again) & {target for target in asked if "tokyo" in target} - {asked[-1]}
    assert table_size(database) == supplier.control(delay=0)["hotels"]


def test_a_supplier_that_says_later_forever_comes_to_an_end(airflow: DrivenAirflow, supplier: Supplier) -> None:
    """Waits of one task are bounded by the stage's `wait_timeout` in all; then the task fails for good, and says why."""
    supplier.control(fail={"status": 429, "region": "tokyo", "retry_after": 400})
    run = airflow.trigger(DAG)
    airflow.drive(DAG, run)
    airflow.let_it_look_again(DAG, run, FETCH, TOKYO)
    states = airflow.drive(DAG, run)
    assert states[f"fetch[{TOKYO}]"] == "up_for_reschedule"
    airflow.let_it_look_again(DAG, run, FETCH, TOKYO, began_ago=timedelta(hours=12))
    states = airflow.drive(DAG, run)
    assert states[f"fetch[{TOKYO}]"] == "failed"
    assert airflow.tries(DAG, run, FETCH, TOKYO) == 1


def test_an_outage_is_not_waited_out_in_silence(airflow: DrivenAirflow, database: ConnectionInfo, supplier: Supplier) -> None:
    """A supplier that fails and is left alone has `no_progress_timeout` to recover; then its task fails, for all to see."""
    rest = (
        "insert into sluice_state.breaker (host, stage, resting_until, reason) "
        "values (%s, 'hotel-content', now() + interval '10 minutes', '503')"
    )
    with psycopg.connect(conninfo(database)) as state:
        state.execute(rest, (f"{supplier.connection.host}:{supplier.connection.port}",))
    run = airflow.trigger(DAG)
    states = airflow.drive(DAG, run)
    assert states[f"fetch[{TOKYO}]"] == "up_for_reschedule"
    airflow.let_it_look_again(DAG, run, FETCH, TOKYO, began_ago=timedelta(minutes=16))
    states = airflow.drive(DAG, run)
    assert states[f"fetch[{TOKYO}]"] == "failed"
    assert shard_of(DAG, run, "tokyo").failure
    assert supplier.requests() == []


def test_a_group_waits_as_one(airflow: DrivenAirflow, supplier: Supplier) -> None:
    """Once one shard is sent away no other of the group is asked for; all of them come in after the pause."""
    supplier.control(fail={"status": 503, "retry_after": 400})
    run = airflow.trigger(GROUPED)
    states = airflow.drive(GROUPED, run)
    assert states["fetch[0]"] == "up_for_reschedule"
    assert len(supplier.requests()) == 1
    supplier.control(fail=None)
    airflow.let_it_look_again(GROUPED, run, FETCH, 0)
    states = airflow.drive(GROUPED, run)
    assert set(states.values()) == {"success"}, states
    assert airflow.tries(GROUPED, run, FETCH, 0) == 1
