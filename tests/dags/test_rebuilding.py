"""Rows of state that make no sense any more, met by tasks in Airflow: nobody has to mend anything."""

from typing import LiteralString

import psycopg
import pytest

from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.dags.driving import DrivenAirflow
from tests.support.servers import Supplier

DAG = "sluice_grouped"
"""Its tasks are tried again once."""

DAMAGE: dict[str, LiteralString] = {
    "shard": """update sluice_state.shard set params = '{"region": 7}' where key = 'tokyo'""",
    "run": "update sluice_state.run set window_start = created_at, window_end = created_at",
    "review": "update sluice_state.review set figures = '{}'",
}


def damage(database: ConnectionInfo, table: str) -> None:
    """Write to the state what nobody can read."""
    with psycopg.connect(conninfo(database)) as connection:
        assert connection.execute(DAMAGE[table]).rowcount == 1


def table_size(database: ConnectionInfo) -> int:
    """Return how many rows were published."""
    with psycopg.connect(conninfo(database)) as connection:
        row = connection.execute("select count(*) from public.grouped").fetchone()
    assert row is not None
    return int(row[0])


# Each task and each table: what is rebuilt, and how, is the same for all tasks.
@pytest.mark.parametrize(
    ("task", "table"), [("shards.transform", "shard"), ("review", "run"), ("publish", "shard"), ("publish", "run")]
)
def test_a_row_that_cannot_be_read_is_made_again_by_the_next_task(
    airflow: DrivenAirflow, database: ConnectionInfo, supplier: Supplier, task: str, table: str
) -> None:
    """It finds it unreadable, rebuilds it and does what is missing; the table is as if nothing had been."""
    run = airflow.trigger(DAG)
    airflow.drive(DAG, run, up_to=task)
    damage(database, table)
    states = airflow.drive(DAG, run)
    assert set(states.values()) == {"success"}, states
    assert table_size(database) == supplier.control(delay=0)["hotels"]


def test_a_review_that_cannot_be_read_is_asked_about_again(airflow: DrivenAirflow, database: ConnectionInfo) -> None:
    """An approval of what makes no sense counts for nothing: the run is reviewed again, and waits again."""
    run = airflow.trigger(DAG, review="always", shards=["brittany"])
    assert airflow.drive(DAG, run)["gate"] == "awaiting_input"
    damage(database, "review")
    airflow.answer(DAG, run, "Approve")
    assert airflow.drive(DAG, run)["gate"] == "awaiting_input"
    airflow.answer(DAG, run, "Approve")
    states = airflow.drive(DAG, run)
    assert set(states.values()) == {"success"}, states
    assert table_size(database) > 0
