"""Flights in Airflow: two DagRuns of one request, a result that is replayed, and whoever has to wait for another run."""

import re
from typing import Any

import pytest

from sluice.airflow_glue.mending import what_to_mend
from sluice.airflow_glue.run_ids import run_id_of
from sluice.errors import UsageInvalid
from sluice.model.lifecycle import RunStatus
from sluice.ports import ConnectionInfo
from tests.dags.driving import DrivenAirflow
from tests.dags.test_run import DAG, GROUPED, run_of, services, table_size
from tests.support.servers import Supplier


def test_of_two_dag_runs_of_one_request_one_works_and_one_follows(
    airflow: DrivenAirflow, database: ConnectionInfo, supplier: Supplier
) -> None:
    """The second waits without a worker and without using up a try, ends as the first did, and nothing is done twice."""
    first, second = airflow.trigger(DAG), airflow.trigger(DAG)
    airflow.drive(DAG, first, up_to="review")
    states = airflow.drive(DAG, second)
    assert (states["admit"], states["settle"], states[""]) == ("up_for_reschedule", "None", "running")
    airflow.let_it_look_again(DAG, second, "admit")
    assert airflow.drive(DAG, second)["admit"] == "up_for_reschedule"
    with services() as state:
        assert (run_of(state, second).status, run_of(state, second).follows) == (RunStatus.WAITING, run_of(state, first).id)
    assert told_on_the_page(airflow, second) == ("follows", run_id_of(DAG, first))
    assert f"follows <code>{run_id_of(DAG, first)}</code>" in airflow.client.get(f"/sluice/dags/{DAG}").text

    assert set(airflow.drive(DAG, first).values()) == {"success"}
    asked, events = supplier.requests(), airflow.asset_events("x-sluice://hotels")
    airflow.let_it_look_again(DAG, second, "admit")
    states = airflow.drive(DAG, second)
    assert (states.pop("settle"), states.pop("")) == ("success", "success")
    assert set(states.values()) == {"skipped"}, states
    assert {"admit", "shard", "fetch", "transform", "review", "gate", "publish"} <= set(states)
    assert airflow.tries(DAG, second, "admit") == 1
    assert supplier.requests() == asked
    assert airflow.asset_events("x-sluice://hotels") == events
    with services() as state:
        assert airflow.xcom(DAG, second, "settle") == {
            "run": run_of(state, second).id,
            "status": "succeeded",
            "follows": run_of(state, first).id,
            "publication": airflow.xcom(DAG, first, "publish")["publication"],
        }
    assert told_on_the_page(airflow, second) == ("result of", run_id_of(DAG, first))
    assert table_size(database) == supplier.control(delay=0)["hotels"]


def told_on_the_page(airflow: DrivenAirflow, dag_run_id: str) -> tuple[str, str]:
    """Return what the page of a run says of the run it follows; the link to that leads somewhere."""
    page = airflow.client.get(f"/sluice/dags/{DAG}/dagRuns/{dag_run_id}")
    found = re.search(r'<dt>(follows|result of)</dt><dd><a href="([^"]+)"><code>([^<]+)</code>', page.text)
    assert found is not None
    assert airflow.client.get(page.url.join(found[2])).status_code == 200
    return found[1], found[3]


def test_a_follower_of_a_run_that_fails_is_red_and_says_where_to_mend(airflow: DrivenAirflow, supplier: Supplier) -> None:
    """Its last task names the run that failed; cleared, it works itself."""
    first, second = airflow.trigger(DAG), airflow.trigger(DAG)
    airflow.drive(DAG, first, up_to="shards.fetch")
    assert airflow.drive(DAG, second)["admit"] == "up_for_reschedule"
    supplier.control(fail=500)
    airflow.drive(DAG, first)
    airflow.let_it_look_again(DAG, second, "admit")
    states = airflow.drive(DAG, second)
    assert (states["admit"], states["settle"], states[""]) == ("skipped", "failed", "failed")
    with services() as state:
        assert run_of(state, second).status is RunStatus.FAILED
        advice = what_to_mend(state, run_of(state, second))
        assert f"it followed run {run_of(state, first).id} (DagRun {first} of {DAG}), which is failed" in advice
        assert "ShardsFailed: shard brittany" in advice
        assert "clear the task `admit`, with downstream" in advice

    supplier.control(fail=None)
    airflow.clear(DAG, second, "admit")
    states = airflow.drive(DAG, second)
    assert set(states.values()) == {"success"}, states


def test_a_follower_whose_admission_gives_up_ends_at_once(
    airflow: DrivenAirflow, supplier: Supplier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for nobody any more, and says so."""
    first, second = airflow.trigger(DAG), airflow.trigger(DAG)
    airflow.drive(DAG, first, up_to="review")
    airflow.drive(DAG, second)
    airflow.let_it_look_again(DAG, second, "admit")
    with monkeypatch.context() as patch:
        patch.setattr("sluice.airflow_glue.tasks.run_request", refused)
        states = airflow.drive(DAG, second)
    assert (states["admit"], states["settle"], states[""]) == ("failed", "failed", "failed")
    with services() as state:
        ended = run_of(state, second)
        assert ended.failure is not None
        assert (ended.status, ended.failure.error) == (RunStatus.FAILED, "RunIncomplete")
        assert f"it waits for run {run_of(state, first).id} no longer" in ended.failure.message
    assert set(airflow.drive(DAG, first).values()) == {"success"}


def refused(*_: Any) -> None:
    """Find the request unusable."""
    raise UsageInvalid("the form makes no sense any more")


def test_a_result_is_replayed_within_its_time(airflow: DrivenAirflow, supplier: Supplier) -> None:
    """Asked again, a stage that says so has what it had: all is skipped, and green. With force all is done again."""
    first = airflow.trigger(GROUPED)
    assert set(airflow.drive(GROUPED, first).values()) == {"success"}
    asked = supplier.requests()
    second = airflow.trigger(GROUPED)
    states = airflow.drive(GROUPED, second)
    assert (states["admit"], states["publish"], states["settle"], states[""]) == ("skipped", "skipped", "success", "success")
    assert supplier.requests() == asked
    report = airflow.xcom(GROUPED, second, "settle")
    assert report["publication"] == airflow.xcom(GROUPED, first, "publish")["publication"]
    forced = airflow.trigger(GROUPED, force=True)
    assert airflow.drive(GROUPED, forced)["admit"] == "success"
    assert len(supplier.requests()) > len(asked)


def test_an_approved_run_waits_for_another_one_of_its_request(airflow: DrivenAirflow, database: ConnectionInfo) -> None:
    """It uses up no try while it does, and is published then."""
    parked = airflow.trigger(DAG, review="always")
    assert airflow.drive(DAG, parked)["gate"] == "awaiting_input"
    other = airflow.trigger(DAG, review="always")
    airflow.drive(DAG, other, up_to="review")
    airflow.answer(DAG, parked, "Approve")
    states = airflow.drive(DAG, parked)
    assert (states["publish"], states["settle"]) == ("up_for_reschedule", "None")
    assert table_size(database) == 0
    assert airflow.drive(DAG, other)["gate"] == "awaiting_input"
    airflow.let_it_look_again(DAG, parked, "publish")
    states = airflow.drive(DAG, parked)
    assert set(states.values()) == {"success"}, states
    assert airflow.tries(DAG, parked, "publish") == 1
    assert table_size(database) > 0


def test_a_cleared_task_of_the_owner_enters_its_own_flight(airflow: DrivenAirflow, supplier: Supplier) -> None:
    """It is not held up by itself, stays one run, and fetches nothing again."""
    run = airflow.trigger(DAG)
    airflow.drive(DAG, run, up_to="review")
    asked = supplier.requests()
    airflow.clear(DAG, run, "admit")
    states = airflow.drive(DAG, run)
    assert set(states.values()) == {"success"}, states
    assert supplier.requests() == asked
    with services() as state:
        assert run_of(state, run).follows is None
