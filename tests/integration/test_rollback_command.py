"""`sluice rollback` as a person uses it: real processes, a real Postgres, a real S3 API and the demo supplier."""

import json
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
from sluice.cli.commands.review import os_user
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLine
from tests.support.hotels import hotels_project
from tests.support.servers import Supplier

HOTELS = 488
Rows = list[tuple[Any, ...]]


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLine:
    """Return a command line with everything it needs."""
    return hotels_project(tmp_path, database, artifacts, supplier)


@pytest.fixture
def hand(database: ConnectionInfo) -> Callable[[str], Rows]:
    """Return what asks or changes the target by hand."""

    def execute(query: str) -> Rows:
        with psycopg.connect(conninfo(database)) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    return execute


def test_a_rollback_from_its_preview_to_its_undoing(sluice: CommandLine, hand: Callable[[str], Rows]) -> None:
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
    done = sluice.ask("review", "approve", waits["review"]["id"], "--comment", "wrong file")
    assert done["publication"]["counts"] == {"rolled-back": HOTELS - 1}
    assert done["review"]["decision"]["by"] == os_user()
    assert hand("select name from public.hotels") == [("mine",)]

    again = sluice.call("rollback", "1", "--yes")
    assert (again.returncode, again.stdout) == (0, "publication 1 is taken back already, by publication 2\n")
    redone = sluice.ask("rollback", "2", "--yes")
    assert (redone["publication"]["id"], redone["publication"]["undoes"]) == (3, 2)
    hand("update public.hotels set name = (select name from public.hotels limit 0) where false")
    assert hand("select count(*) from public.hotels") == [(HOTELS,)]
    assert len([row for row in hand("select * from public.hotels order by id") if row not in whole]) == 1
    refused = sluice.call("rollback", "1", "--yes")
    assert refused.returncode == 1
    assert "publication 1 was taken back by 2, which was taken back by 3: take that one back" in refused.stderr
    listed = sluice.ask("publications")["publications"]
    assert [(made["id"], made["undoes"], made["rolled_back_by"]) for made in listed] == [(3, 2, None), (2, 1, 3), (1, None, 2)]
