"""The rights that the docs ask for are enough, and no more than what they say is there."""

import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.support.command_line import REPOSITORY, command_line
from tests.support.hotels import edit
from tests.support.servers import Supplier

ROLES = ("sluice_state_role", "sluice_target_role")


@pytest.fixture
def roles(empty_database: ConnectionInfo) -> Iterator[dict[str, ConnectionInfo]]:
    """Connections of the roles that docs/deployment.md makes, in a database that gives nothing to everybody."""
    page = (REPOSITORY / "docs" / "deployment.md").read_text(encoding="utf-8")
    statements = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)[0]
    mark = uuid.uuid4().hex[:8]
    named = {role: f"{role}_{mark}" for role in ROLES}
    for role, name in named.items():
        statements = statements.replace(role, name)
    database = str(empty_database.schema)
    statements = statements.replace("database app", f'database "{database}"')
    with psycopg.connect(conninfo(empty_database), autocommit=True) as hand, ExitStack() as stack:
        hand.execute(f'revoke all on database "{database}" from public'.encode())
        hand.execute("revoke all on schema public from public")
        hand.execute(statements.encode())
        for name in named.values():
            stack.callback(hand.execute, f"drop owned by {name} cascade; drop role {name}".encode())
            hand.execute(f'grant connect on database "{database}" to {name}'.encode())
        yield {role: replace(empty_database, login=name, password="change me") for role, name in named.items()}


def test_the_documented_grants_are_enough_for_a_sync(
    tmp_path: Path, roles: dict[str, ConnectionInfo], artifacts: ConnectionInfo, supplier: Supplier
) -> None:
    """Both schemas are upgraded, and a table is made and filled, by these roles alone: all of it they own from then on."""
    state, target = (roles[role] for role in ROLES)
    sluice = command_line(tmp_path, state, artifacts, supplier)
    sluice.define("sluice_target", target)
    edit(tmp_path / "include/syncs/hotels.yaml", lambda sync: sync["target"].update(table="supplied.hotels"))
    sluice.ask("db", "upgrade")
    assert sluice.ask("run", "hotels", "--inline")["publication"]["counts"] == {"created": 488}
