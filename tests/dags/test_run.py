"""Runs in Airflow from end to end: real tasks, database, object store and supplier; a person answers through the API."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from sluice.airflow_glue.mending import what_to_mend
from sluice.model.lifecycle import RunStatus, Verdict
from sluice.model.review import Choice, Decision
from sluice.model.run import Run
from sluice.ports import ConnectionInfo, Services
from tests.dags.driving import DrivenAirflow
from tests.support.servers import Supplier

DAG = "sluice_hotels"
GROUPED = "sluice_grouped"
TOKYO = 1
"""The map index of the second shard; they go by key."""


def test_a_first_load_runs_through(airflow: DrivenAirflow, database: ConnectionInfo, supplier: Supplier) -> None:
    """What the policy approves is published without asking anybody; Airflow sees the counts, and tasks named by shard."""
    run = airflow.trigger(DAG)
    states = airflow.drive(DAG, run)
    assert set(states.values()) == {"success"}, states
    hotels = supplier.control(delay=0)["hotels"]
    assert table_size(database) == hotels
    assert airflow.xcom(DAG, run, "publish")["counts"] == {"created": hotels}
    assert airflow.asset_events("x-sluice://hotels")[-1]["counts"] == {"created": hotels}
    assert airflow.names(DAG, run) == {"shards.fetch": ["brittany", "tokyo"], "shards.transform": ["brittany", "tokyo"]}


def test_an_approval_publishes(airflow: DrivenAirflow, database: ConnectionInfo) -> None:
    """A run that needs a person waits without occupying a worker; the approval, with who and why, is kept in our state."""
    run = airflow.trigger(DAG, review="always")
    states = airflow.drive(DAG, run)
    assert states["gate"] == "awaiting_input"
    question = airflow.question(DAG, run)
    assert question["subject"].startswith("hotels: change ")
    assert "a review was asked for" in question["body"]
    with services() as state:
        assert run_of(state, run).status is RunStatus.WAITING
    airflow.answer(DAG, run, "Approve", comment="looked at it")
    states = airflow.drive(DAG, run)
    assert set(states.values()) == {"success"}, states
    assert table_size(database) > 0
    with services() as state:
        decision = decision_of(state, run)
        assert (decision.choice, decision.by, decision.via) == (Choice.APPROVE, "ann", "airflow")
        assert decision.comment == "looked at it"


@pytest.mark.parametrize("form", [{"comment": 5}, {"another": "thing"}])
def test_an_odd_form_breaks_no_answer(airflow: DrivenAirflow, form: dict[str, Any]) -> None:
    """Airflow does not check what comes with an answer, so nothing in it can make the gate fail."""
    run = airflow.trigger(DAG, review="always", shards=["brittany"])
    airflow.drive(DAG, run)
    airflow.answer(DAG, run, "Reject", **form)
    assert airflow.drive(DAG, run)["gate"] == "success"
    with services() as state:
        assert decision_of(state, run).comment == ""


def test_a_rejection_publishes_nothing(airflow: DrivenAirflow, database: ConnectionInfo) -> None:
    """A rejected run ends cancelled; its DagRun is green, since a person's decision is no failure."""
    run = airflow.trigger(DAG, review="always", shards=["brittany"])
    airflow.drive(DAG, run)
    airflow.answer(DAG, run, "Reject", comment="no")
    states = airflow.drive(DAG, run)
    assert (states["gate"], states["publish"], states["settle"], states[""]) == ("success", "skipped", "success", "success")
    assert table_size(database) == 0
    with services() as state:
        assert run_of(state, run).status is RunStatus.CANCELLED


def test_nobody_answers(airflow: DrivenAirflow, database: ConnectionInfo) -> None:
    """A review that nobody answers in time expires, which fails the gate by name; nothing is published."""
    run = airflow.trigger(DAG, review="always", shards=["brittany"])
    airflow.drive(DAG, run)
    airflow.let_it_expire(DAG, run)
    states = airflow.drive(DAG, run)
    assert (states["gate"], states["publish"], states["settle"], states[""]) == (
        "failed",
        "upstream_failed",
        "failed",
        "failed",
    )
    assert table_size(database) == 0
    with services() as state:
        assert newest_verdict(state, run) is Verdict.EXPIRED
        assert run_of(state, run).status is RunStatus.FAILED


def test_an_answer_that_comes_too_late_changes_nothing(airflow: DrivenAirflow, database: ConnectionInfo) -> None:
    """Whatever Airflow's form says, a review that was rejected meanwhile stays rejected."""
    from sluice.flow.gate import decide

    run = airflow.trigger(DAG, review="always", shards=["brittany"])
    airflow.drive(DAG, run)
    with services() as state:
        review = state.reviews.latest(run_of(state, run).id)
        assert review is not None
        decide(state, review.id, Decision(choice=Choice.REJECT, by="bob", via="cli", at=state.clock.now()))
    airflow.answer(DAG, run, "Approve")
    states = airflow.drive(DAG, run)
    assert (states["gate"], states["publish"]) == ("success", "skipped")
    assert table_size(database) == 0
    with services() as state:
        assert decision_of(state, run).by == "bob"


def test_a_passing_trouble_is_retried_from_the_last_checkpoint(airflow: DrivenAirflow, supplier: Supplier) -> None:
    """Airflow's retry of a task goes on where it stood: no page that was checkpointed is asked for again."""
    supplier.control(fail={"status": 503, "region": "tokyo", "after": 4, "times": 1})
    run = airflow.trigger(GROUPED)
    states = airflow.drive(GROUPED, run)
    assert set(states.values()) == {"success"}, states
    assert airflow.tries(GROUPED, run, "shards.fetch", 0) == 2
    asked = [target for target in supplier.requests() if "region=tokyo" in target]
    assert len(asked) - len(set(asked)) == 1, "only the page that failed was asked for twice"


@pytest.mark.parametrize(("dag", "status"), [(DAG, 503), (GROUPED, 404)])
def test_a_failed_shard_fails_alone_and_is_resumed_by_a_clear(
    airflow: DrivenAirflow, database: ConnectionInfo, supplier: Supplier, dag: str, status: int
) -> None:
    """The others are published, the DagRun is red; clearing the failed fetch goes on where it stood, to another review."""
    supplier.control(fail={"status": status, "region": "tokyo", "after": 4})
    run = airflow.trigger(dag, review="always")
    airflow.drive(dag, run)
    airflow.answer(dag, run, "Approve")
    states = airflow.drive(dag, run)
    fetch = f"fetch[{TOKYO if dag == DAG else 0}]"
    assert (states[fetch], states["publish"], states["settle"], states[""]) == ("failed", "success", "failed", "failed")
    assert airflow.tries(dag, run, "shards.fetch", TOKYO if dag == DAG else 0) == 1
    with services() as state:
        assert run_of(state, run).status is RunStatus.PARTIAL
        advice = what_to_mend(state, run_of(state, run))
        assert "shard tokyo is failed: Supplier" in advice
        assert "clear the failed mapped tasks `shards.fetch` (tokyo) with downstream" in advice
        checkpointed = {shard.key: shard.pages for shard in state.shards.of(run_of(state, run).id)}["tokyo"]
    assert checkpointed == 4
    some = table_size(database, dag)
    asked = len(supplier.requests())
    hotels = supplier.control(fail=None)["hotels"]

    airflow.clear(dag, run, "shards.fetch", TOKYO if dag == DAG else 0)
    assert airflow.drive(dag, run)["gate"] == "awaiting_input"
    airflow.answer(dag, run, "Approve")
    states = airflow.drive(dag, run)
    assert set(states.values()) == {"success"}, states
    assert 0 < some < table_size(database, dag) == hotels
    again = supplier.requests()[asked:]
    assert all("region=tokyo" in target and "cursor=" in target for target in again)


def test_all_shards_fail(airflow: DrivenAirflow, supplier: Supplier) -> None:
    """Where no shard comes through nothing is reviewed, the run is failed, and the last task says what to clear."""
    supplier.control(fail=500)
    run = airflow.trigger(DAG)
    states = airflow.drive(DAG, run)
    assert (states["review"], states["gate"], states["publish"]) == ("upstream_failed",) * 3
    assert (states["settle"], states[""]) == ("failed", "failed")
    with services() as state:
        assert run_of(state, run).status is RunStatus.FAILED


@contextmanager
def services() -> Iterator[Services]:
    """Yield the services, as a task has them."""
    from sluice.airflow_glue.connections import AirflowConnections
    from sluice.airflow_glue.workplace import settings
    from sluice.wiring import open_services

    with open_services(settings(), AirflowConnections()) as opened:
        yield opened


def run_of(state: Services, dag_run_id: str) -> Run:
    """Return the run of a DagRun."""
    runs = [run for run in state.runs.recent(None, list(RunStatus), 100) if run.origin.dag_run_id == dag_run_id]
    assert len(runs) == 1
    return runs[0]


def decision_of(state: Services, dag_run_id: str) -> Decision:
    """Return the decision about the newest review of a DagRun."""
    review = state.reviews.latest(run_of(state, dag_run_id).id)
    assert review is not None
    assert review.decision is not None
    return review.decision


def newest_verdict(state: Services, dag_run_id: str) -> Verdict:
    """Return the verdict of the newest review of a DagRun."""
    review = state.reviews.latest(run_of(state, dag_run_id).id)
    assert review is not None
    return review.verdict


def table_size(database: ConnectionInfo, dag: str = DAG) -> int:
    """Return how many rows the target has; none if it is not there."""
    table = f"public.{dag.removeprefix('sluice_')}"
    where = {"host": database.host, "port": database.port, "user": database.login, "password": database.password}
    with psycopg.connect(**where, dbname=database.schema) as session:  # type: ignore[arg-type]
        row = session.execute("SELECT to_regclass(%s)", [table]).fetchone()
        if row is None or row[0] is None:
            return 0
        counted = session.execute(f"SELECT count(*) FROM {table}").fetchone()  # type: ignore[arg-type]
        return int(counted[0]) if counted else 0
