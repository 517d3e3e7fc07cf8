"""`sluice rollback` as a person uses it: real processes, a real Postgres, a real S3 API and the demo supplier."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sluice.adapters.postgres import conninfo
from sluice.cli.person import os_user
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere, command_line
from tests.support.servers import Supplier

HOTELS = 488
Rows = list[tuple[Any, ...]]


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLineHere:
    """Return a command line with everything it needs."""
    return command_line(tmp_path, database, artifacts, supplier)


@pytest.fixture
def hand(database: ConnectionInfo) -> Callable[[str], Rows]:
    """Return what asks or changes the target by hand."""

    def execute(query: str) -> Rows:
        with psycopg.connect(conninfo(database)) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    return execute


def test_a_rollback_from_its_preview_to_its_undoing(sluice: CommandLineHere, hand: Callable[[str], Rows]) -> None:
    """Without a terminal the review waits; answered, the table is what it was; and the rollback can be taken back."""
    sluice.ask("run", "hotels", "--inline")
    whole = hand("select * from public.hotels order by id")
    first = sluice.ask("publications", "hotels")["publications"]
    assert [(made["id"], made["counts"], made["approved_by"]) for made in first] == [(1, {"created": HOTELS}, "policy")]
    hand("update public.hotels set name = 'mine' where id = 'node/251055437'")

    waits = sluice.ask("rollback", "1", code=3)
    assert waits["review"]["figures"]["outcomes"] == {"rolled-back": HOTELS - 1}
    assert [(left["key"], left["why"]) for left in waits["conflicts"]] == [("node/251055437", "others changed it in the table")]
    assert hand("select count(*) from public.hotels") == [(HOTELS,)]
    shown = sluice.ask("review", "show", waits["run"]["id"])
    assert shown["review"] == waits["review"]
    done = sluice.ask("review", "approve", waits["review"]["id"], "--comment", "wrong file")
    assert done["publication"]["counts"] == {"rolled-back": HOTELS - 1}
    assert done["review"]["decision"]["by"] == os_user()
    assert hand("select name from public.hotels") == [("mine",)]

    again = sluice.call("rollback", "1", "--yes")
    assert (again.returncode, again.stdout) == (0, "publication 1 is taken back already, by publication 2\n")
    redone = sluice.ask("rollback", "2", "--yes")
    assert (redone["publication"]["id"], redone["publication"]["undoes"]) == (3, 2)
    assert hand("select count(*) from public.hotels") == [(HOTELS,)]
    assert len([row for row in hand("select * from public.hotels order by id") if row not in whole]) == 1
    refused = sluice.call("rollback", "1", "--yes")
    assert refused.returncode == 1
    assert "publication 1 was taken back by 2, which was taken back by 3: take that one back" in refused.stderr
    listed = sluice.ask("publications")["publications"]
    assert [(made["id"], made["undoes"], made["rolled_back_by"]) for made in listed] == [(3, 2, None), (2, 1, 3), (1, None, 2)]


def answered(sluice: CommandLineHere, words: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call a command at a terminal at which somebody types."""
    ours, its = pty.openpty()
    try:
        os.write(ours, words.encode())
        return subprocess.run(
            [sys.executable, "-m", "sluice", *arguments],
            cwd=sluice.project,
            env=sluice.environ,
            stdin=its,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(its)


def test_a_person_is_asked_after_seeing_what_would_change(sluice: CommandLineHere, hand: Callable[[str], Rows]) -> None:
    """A no leaves all as it is; a yes restores, and says what."""
    sluice.ask("run", "hotels", "--inline")
    hand("update public.hotels set name = 'mine' where id = 'node/251055437'")
    declined = answered(sluice, "n\n", "rollback", "1")
    assert (declined.returncode, declined.stdout.splitlines()[-1].strip()) == (0, "nothing was restored")
    for shown in ("publication 1 of hotels", "others changed it in the table", "Restore them?"):
        assert shown in declined.stdout + declined.stderr
    assert hand("select count(*) from public.hotels") == [(HOTELS,)]
    assert [run["status"] for run in sluice.ask("runs")["runs"]] == ["cancelled", "succeeded"]

    done = answered(sluice, "y\n", "rollback", "1", "--comment", "wrong file")
    assert (done.returncode, done.stdout.splitlines()[-1].strip()) == (0, "publication 2 takes 1 back: 487 objects restored")
    assert hand("select name from public.hotels") == [("mine",)]


def test_two_who_do_not_ask(sluice: CommandLineHere, hand: Callable[[str], Rows]) -> None:
    """Both end well, whoever of them did it; it is done once. And then nothing is left to restore of what others changed."""
    sluice.ask("run", "hotels", "--inline")
    with (
        sluice.start("rollback", "1", "--yes", stdout=subprocess.PIPE) as one,
        sluice.start("rollback", "1", "--yes", stdout=subprocess.PIPE) as other,
    ):
        said = [process.communicate(timeout=120) for process in (one, other)]
    assert [process.returncode for process in (one, other)] == [0, 0], said
    assert hand("select count(*) from public.hotels") == [(0,)]
    assert hand("select count(*) from sluice_ledger.publication where undoes = 1") == [(1,)]

    sluice.ask("run", "hotels", "--inline", "--mode", "full", "--force", code=3)
    hand("update public.hotels set name = 'mine'")
    assert sluice.call("rollback", "9").stderr.startswith("there is no publication 9: `sluice publications` lists them")


def test_nothing_is_left_to_restore(sluice: CommandLineHere, hand: Callable[[str], Rows]) -> None:
    """A sentence says so, nothing is published, and nobody is asked."""
    sluice.ask("run", "hotels", "--inline")
    hand("update public.hotels set name = 'mine'")
    done = sluice.call("rollback", "1")
    assert (done.returncode, done.stdout) == (
        0,
        "nothing is left to restore of publication 1: somebody has changed each of its objects since\n",
    )
    assert len(sluice.ask("publications")["publications"]) == 1


def test_publications_are_numbered_by_database(sluice: CommandLineHere, empty_database: ConnectionInfo) -> None:
    """Where two databases have one of that number, its sync has to be named; who could not be looked at is told."""
    folder = sluice.project / "include/syncs"
    other = (folder / "hotels.yaml").read_text().replace("sync: hotels", "sync: others")
    (folder / "others.yaml").write_text(other.replace("connection: sluice_target", "connection: elsewhere"))
    sluice.define("elsewhere", empty_database)
    assert sluice.call("db", "upgrade").returncode == 0
    for sync in ("hotels", "others"):
        sluice.ask("run", sync, "--inline")
    assert [(made["sync"], made["id"]) for made in sluice.ask("publications")["publications"]] == [("others", 1), ("hotels", 1)]
    refused = sluice.call("rollback", "1", "--yes")
    assert refused.returncode == 2
    assert "there is a publication 1 of hotels, others: name one of them with --sync" in refused.stderr
    assert sluice.ask("rollback", "1", "--yes", "--sync", "others")["takes_back"]["sync"] == "others"
    assert [made["sync"] for made in sluice.ask("publications", "others", "--limit", "1")["publications"]] == ["others"]

    (folder / "others.yaml").write_text("sync: others")
    missing = sluice.call("rollback", "9", "--yes")
    assert missing.returncode == 1
    assert missing.stderr.startswith("others is left out, since its spec cannot be used: `sluice validate others` says why\n")
