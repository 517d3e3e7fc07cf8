"""Many shards that a supplier lists, in a few mapped tasks: each is fetched, fails and is brought in by itself."""

import pytest

from sluice.airflow_glue.mending import what_to_mend
from sluice.airflow_glue.run_ids import run_id_of
from sluice.cli.local.services import as_variable
from sluice.model.lifecycle import RunStatus
from sluice.ports import ConnectionInfo
from tests.dags.driving import DrivenAirflow
from tests.dags.test_run import services, table_size
from tests.support.cities import HOTELS, cities

DAG = "sluice_cities"
GROUPS = 4
SHARDS = 60


def test_one_of_many_shards_fails_and_is_brought_in_by_a_clear(
    airflow: DrivenAirflow, database: ConnectionInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are published; the list is asked for once, however often tasks are cleared; what has moved is no deletion."""
    with cities(SHARDS) as supplier:
        monkeypatch.setenv("AIRFLOW_CONN_CITIES", as_variable(supplier.connection))
        supplier.out_of = {"city-0042"}
        run = airflow.trigger(DAG)
        states = airflow.drive(DAG, run)
        assert airflow.names(DAG, run)["shards.fetch"] == [f"group {n + 1} of {GROUPS}" for n in range(GROUPS)]
        groups = airflow.xcom(DAG, run, "shard")
        broken = next(place for place, group in enumerate(groups) if "city-0042" in group["shards"])
        failed = {name for name, state in states.items() if state == "failed"}
        assert failed == {"", f"fetch[{broken}]", "settle"}
        assert states["publish"] == "success"
        assert table_size(database, DAG) == (SHARDS - 1) * HOTELS
        with services() as state:
            ended = state.runs.get(run_id_of(DAG, run))
            assert ended.status is RunStatus.PARTIAL
            assert "`shards.fetch` (city-0042) with downstream" in what_to_mend(state, ended)

        supplier.out_of = set()
        supplier.names = [*supplier.names, "city-new"]
        asked = len(supplier.asked)
        airflow.clear(DAG, run, "shards.fetch", broken)
        states = airflow.drive(DAG, run)
        assert set(states.values()) == {"success"}, states
        assert supplier.asked[asked:] == ["/hotels?city=city-0042"]
        assert table_size(database, DAG) == SHARDS * HOTELS


@pytest.mark.long
def test_what_is_listed_no_more_is_gone_once_every_shard_came_in(
    airflow: DrivenAirflow, database: ConnectionInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shorter list of a full run takes its objects away, if the review lets it; no list at all takes nothing."""
    with cities(6) as supplier:
        monkeypatch.setenv("AIRFLOW_CONN_CITIES", as_variable(supplier.connection))
        airflow.drive(DAG, airflow.trigger(DAG))
        supplier.names = supplier.names[:5]
        run = airflow.trigger(DAG)
        assert set(airflow.drive(DAG, run).values()) == {"success"}
        assert airflow.xcom(DAG, run, "publish")["counts"] == {"deleted": HOTELS}
        supplier.names = []
        run = airflow.trigger(DAG)
        states = airflow.drive(DAG, run)
        assert (states["shard"], states["publish"], states["settle"]) == ("failed", "upstream_failed", "failed")
        with services() as state:
            failure = state.runs.get(run_id_of(DAG, run)).failure
            assert failure is not None
            assert failure.error == "ShardsUnusable"


@pytest.mark.long
def test_a_run_without_a_new_file_is_green(
    airflow: DrivenAirflow, database: ConnectionInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no shard to map tasks over, nothing is reviewed, and the run has succeeded."""
    dag = "sluice_drop"
    with cities(2) as supplier:
        monkeypatch.setenv("AIRFLOW_CONN_CITIES", as_variable(supplier.connection))
        assert set(airflow.drive(dag, airflow.trigger(dag)).values()) == {"success"}
        run = airflow.trigger(dag)
        states = airflow.drive(dag, run)
        assert (states["shard"], states["review"], states["publish"]) == ("success", "skipped", "skipped")
        assert (states["settle"], states[""]) == ("success", "success")
        assert table_size(database, dag) == 2 * HOTELS
