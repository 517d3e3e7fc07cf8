"""`sluice dlq` as a person calls it: what is listed, shown, taken up again and given up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere
from tests.support.places import SPEC, Places, open_places

BAD = '{"id": "b",\t"rooms": "\\u001b[31mmany", "beds": 2}'


@pytest.fixture
def places(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Places]:
    with open_places(tmp_path, database, artifacts) as places:
        yield places


@pytest.fixture
def sluice(places: Places, tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> CommandLineHere:
    """Return a command line in the project of the places."""
    return CommandLineHere(tmp_path, {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts})


def test_from_the_list_to_the_table(places: Places, sluice: CommandLineHere) -> None:
    """Listed by cause, shown with the record as it was sent, explained, in vain at first, and right once the spec is mended."""
    places.bring('{"id": "a", "rooms": 1, "beds": 1}', BAD)
    listed = sluice.ask("dlq", "list", "places")
    assert [(group["cause"], group["objects"], group["attempts"]) for group in listed["groups"]] == [("type:rooms", 1, 1)]
    number = str(listed["letters"][0]["id"])

    spoken = sluice.call("dlq", "show", number)
    assert (spoken.returncode, "\x1b" in spoken.stdout) == (0, False)
    assert f"sluice dlq redrive places {number}" in spoken.stdout
    assert sluice.call("dlq", "show", "places", "b", "--raw").stdout == BAD
    assert f"sluice dlq redrive places {number}" in sluice.call("why", "places", "b").stdout
    for broken in ({"object": "none"}, {"fields": []}):
        places.declare(**broken)
        assert sluice.call("dlq", "show", number, "--raw").stdout == BAD
    places.declare()

    for _ in range(2):  # which is answered with the outcome of the first
        again = sluice.call("dlq", "redrive", "places", number, "--inline")
        assert (again.returncode, "0 of 1 objects are closed, 1 are still open\n" in again.stderr) == (0, True)
    fields = [{**field, "path": "beds"} if field["name"] == "rooms" else field for field in SPEC["fields"]]
    places.declare(fields=fields, version=2)
    right = sluice.ask("dlq", "redrive", "places", "--cause", "type:rooms", "--inline")
    assert right["publication"]["counts"] == {"created": 1}
    assert places.sql("select id, rooms from places order by id") == [("a", 1), ("b", 2)]


def test_giving_up_says_why_and_asks_for_more_than_one(places: Places, sluice: CommandLineHere) -> None:
    """Where nobody can be asked it takes --yes; who gave it up, and why, is kept."""
    places.bring('{"id": "a", "rooms": "x"}', BAD, '{"id": "c"}')
    assert "say --yes" in sluice.ask("dlq", "discard", "places", "--cause", "type:rooms", "--reason", "old", code=2)["message"]
    discarded = sluice.ask("dlq", "discard", "places", "--cause", "type:rooms", "--reason", "old", "--yes")
    assert discarded["discarded"] == 2
    shown = sluice.ask("dlq", "show", "places", "b")["letter"]
    assert (shown["status"], shown["reason"], bool(shown["ended_by"])) == ("discarded", "old", True)
