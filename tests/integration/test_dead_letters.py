"""Dead letters, end to end: an object that could not be taken in, until it comes right."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere, copy_project
from tests.support.scripted_supplier import answer, scripted

SPEC = {
    "sync": "places",
    "stage": "hotel-content",
    "source": {
        "kind": "rest",
        "connection": "shop",
        "path": "/places",
        "records": "places",
        "cursor": {"path": "next", "parameter": "cursor"},
    },
    "object": {"key": ["id"]},
    "fields": [{"name": "id", "type": "text"}, {"name": "rooms", "type": "integer"}],
    "review": {"first_load": "auto-approve", "auto_approve": {"rejected": "100%", "changed": "100%", "created": "100%"}},
    "target": {"table": "public.places"},
}


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> CommandLineHere:
    """Return a command line whose project has a sync of places."""
    project = copy_project(tmp_path)
    (project / "include/syncs/places.yaml").write_text(yaml.safe_dump(SPEC), encoding="utf-8")
    return CommandLineHere(project, {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts})


def bring(sluice: CommandLineHere, *places: Any) -> Any:
    """Run the sync over one page."""
    with scripted(answer({"places": list(places), "next": None})) as supplier:
        sluice.define("shop", supplier.connection())
        return sluice.ask("run", "places", "--inline")


def letters(database: ConnectionInfo) -> list[tuple[Any, ...]]:
    """Return all dead letters, the oldest first."""
    with psycopg.connect(conninfo(database)) as connection:
        query = "select object_key, error, attempts, status from sluice_state.dead_letter order by id"
        return connection.execute(query).fetchall()


def test_a_bad_object_stops_no_good_one_and_is_closed_when_it_comes_right(
    sluice: CommandLineHere, database: ConnectionInfo
) -> None:
    """The good objects are published; the bad one waits as a dead letter, once, however often it comes, until it is good."""
    first = bring(sluice, {"id": "a", "rooms": 1}, {"id": "b", "rooms": "many"})
    assert first["publication"]["counts"] == {"created": 1, "rejected": 1}
    assert letters(database) == [("b", "type", 1, "open")]
    bring(sluice, {"id": "a", "rooms": 1}, {"id": "b", "rooms": "more"})
    assert letters(database) == [("b", "type", 2, "open")]
    assert bring(sluice, {"id": "a", "rooms": 1}, {"id": "b", "rooms": 2})["publication"]["counts"] == {"created": 1}
    assert letters(database) == [("b", "type", 2, "closed")]


def test_an_object_that_comes_as_it_was_is_right_again(sluice: CommandLineHere, database: ConnectionInfo) -> None:
    """A known object that was bad for one day closes its dead letter though nothing is written; the bad day deletes nothing."""
    bring(sluice, {"id": "a", "rooms": 1}, {"id": "b", "rooms": 1})
    assert bring(sluice, {"id": "a", "rooms": 1.5}, {"id": "b", "rooms": 1})["publication"] is None
    assert letters(database) == [("a", "type", 1, "open")]
    assert bring(sluice, {"id": "a", "rooms": 1}, {"id": "b", "rooms": 1})["publication"] is None
    assert letters(database) == [("a", "type", 1, "closed")]
