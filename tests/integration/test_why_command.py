"""`sluice why` and `sluice reconcile` as a person calls them: what is printed, byte for byte where that was asked for."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere
from tests.support.places import Places, open_places

SENT = '{"id" : "a",\t"rooms":9, "rate":1.50 ,"tags":"\\u001b[31mred \\u001b[0m",  "rooms": 1 }'


@pytest.fixture
def places(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Places]:
    with open_places(tmp_path, database, artifacts) as places:
        yield places


@pytest.fixture
def sluice(places: Places, tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> CommandLineHere:
    """Return a command line in the project of the places."""
    return CommandLineHere(tmp_path, {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts})


def printed(sluice: CommandLineHere, *arguments: str) -> bytes:
    """Return what a command that ends well printed, byte for byte."""
    command = [sys.executable, "-m", "sluice", *arguments]
    return subprocess.run(command, cwd=sluice.project, env=sluice.environ, check=True, capture_output=True).stdout


def test_why(places: Places, sluice: CommandLineHere) -> None:
    """The bytes alone with --raw; all of it with --json; for people nothing that could steer a terminal."""
    first = places.bring(SENT.replace('"rooms": 1', '"rooms": 4'), by="ada", comment="first")
    second = places.bring(SENT, by="bob")
    assert printed(sluice, "why", "places", "a", "--raw") == SENT.encode()

    told: dict[str, Any] = sluice.ask("why", "places", "a")
    assert (told["object"], told["altered"], told["earlier"]) == ("a", None, 0)
    assert [entry["run"]["id"] for entry in told["history"]] == [second.id, first.id]
    assert told["history"][0]["raw"]["data"] == SENT
    assert told["history"][0]["review"]["decision"]["by"] == "bob"
    rooms = sluice.ask("why", "places", "a", "--field", "rooms")
    assert [(value["value"], value["from"]["review"]["decision"]["by"]) for value in rooms["values"]] == [
        ("1", "bob"),
        ("4", "ada"),
    ]

    shown = sluice.call("why", "places", "a").stdout
    assert "\x1b" not in shown
    assert "ada (cli, " in shown
    assert "record 0 of page 0, chunk 0 of shard all" in shown
    assert sluice.ask("why", "places", "a", "--field", "stars", code=2)["message"] == (
        "places has no field 'stars'; it has id, rooms, rate, tags, opened"
    )


def test_why_tells_as_undone_what_was_undone_of_this_object(places: Places, sluice: CommandLineHere) -> None:
    """A rollback that left an object alone, since it had changed again, has undone nothing of it."""
    places.bring('{"id": "a"}', '{"id": "b"}', by="ada")
    places.bring('{"id": "a", "rooms": 2}', '{"id": "b", "rooms": 2}', by="ada")
    places.bring('{"id": "a", "rooms": 3}', '{"id": "b", "rooms": 2}', by="ada")
    undone, *_ = places.sql("select id from sluice_ledger.publication order by id offset 1")[0]
    places.take_back(undone, by="ada")
    assert "undone" not in sluice.call("why", "places", "a").stdout
    assert "changed, and undone by publication" in sluice.call("why", "places", "b").stdout


def test_reconcile(places: Places, sluice: CommandLineHere) -> None:
    """A script learns from the exit code whether the table is in step, a person what is not."""
    places.bring(SENT)
    assert sluice.ask("reconcile", "places")["is_in_step"]
    places.sql("update places set rooms = 7")
    spoken = sluice.call("reconcile", "places")
    assert (spoken.returncode, spoken.stderr) == (4, "")
    assert "rooms: 1 → 7" in spoken.stdout
