"""From nothing to a reviewed table, as a new user does it: new, try, validate, run."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import structlog
from typer.testing import CliRunner

from sluice.adapters.postgres import conninfo
from sluice.adapters.spec_files import SpecFiles
from sluice.cli.app import build_app
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere, command_line
from tests.support.scripted_supplier import ScriptedSupplier, answer, scripted
from tests.support.servers import Supplier

RECORDS = [{"id": number, "at": f"2026-01-0{number}T00:00:00Z", "geo": {"lat": 1.5}, "tags": {}} for number in (1, 2, 3)]
PAGE = answer({"meta": {"next": None}, "data": {"items": RECORDS}})


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLineHere:
    """Return a command line with everything it needs, but a supplier of one's own."""
    return command_line(tmp_path, database, artifacts, supplier)


@pytest.fixture
def shop(sluice: CommandLineHere) -> Iterator[ScriptedSupplier]:
    """Return a supplier nobody has seen, at which three rooms are to be had."""
    with scripted() as supplier:
        sluice.define("rooms_supplier", supplier.connection())
        yield supplier


def test_an_api_that_nobody_has_seen(sluice: CommandLineHere, shop: ScriptedSupplier, tmp_path: Path) -> None:
    """The list is found, the fields are proposed, and what was written works as it is."""
    shop.answers += [PAGE, PAGE]
    written = sluice.ask("new", "rooms", "--key", "id", "--version-field", "at", "--paging", "none", "--path", "/v1/rooms")
    assert (written["records_seen"], written["not_looked"]) == (3, None)
    spec = SpecFiles(tmp_path / "include").sync("rooms")
    assert {field.name: field.type.sql for field in spec.fields} == {
        "id": "integer",
        "at": "timestamptz",
        "lat": "numeric",
        "tags": "jsonb",
    }
    text = (tmp_path / "include/syncs/rooms.yaml").read_text(encoding="utf-8")
    assert "# Check: source.records: the only list in the first answer stands at data.items" in text

    shop.answers += [PAGE] * 2
    tried = sluice.ask("try", "rooms")
    assert [row["key"] for row in tried["rows"]] == ["1", "2", "3"]
    assert (tried["hints"], tried["comparison"]["outcomes"]) == ([], {"created": 3})
    assert sluice.ask("validate", "rooms")["problems"] == []
    assert sluice.ask("run", "rooms", "--inline", code=3)["review"]["figures"]["outcomes"] == {"created": 3}


def test_a_table_of_another_database(sluice: CommandLineHere, database: ConnectionInfo) -> None:
    """Its columns are proposed with types that hold all they have."""
    with psycopg.connect(conninfo(database), autocommit=True) as connection:
        connection.execute("create table crm_guests (id bigint primary key, born date, active boolean, seen timestamptz)")
        connection.execute("insert into crm_guests values (5000000000, '2001-02-03', true, '2026-01-31 12:00+00')")
    arguments = ["--kind", "sql", "--connection", "sluice_target", "--table", "crm_guests", "--watermark", "seen"]
    assert sluice.ask("new", "guests", *arguments)["records_seen"] == 1
    [row] = sluice.ask("try", "guests")["rows"]
    assert row["values"] == {"id": "5000000000", "seen": "2026-01-31T12:00:00Z", "born": "2001-02-03", "active": "true"}


def test_what_the_supplier_says_is_told_where_it_does_not_help(
    shop: ScriptedSupplier,
    database: ConnectionInfo,
    artifacts: ConnectionInfo,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two lists, none, or a refusal: the files are written without fields, and it is said why."""

    class Known:
        def get(self, conn_id: str) -> ConnectionInfo:
            return {"rooms_supplier": shop.connection(), "sluice_artifacts": artifacts}.get(conn_id, database)

    monkeypatch.chdir(tmp_path)
    app = build_app(Known)
    for name, sent, why in (
        ("two", answer({"a": [], "b": []}), "lists stand at: a, b"),
        ("empty", answer([]), "the first page has no records"),
        ("shut", answer({}, "401 Unauthorized"), "401 Unauthorized"),
    ):
        shop.answers.append(sent)
        done = CliRunner().invoke(app, ["new", name, "--connection", "rooms_supplier", "--paging", "none", "--json"])
        structlog.reset_defaults()
        told = json.loads(done.stdout)
        assert (done.exit_code, told["records_seen"], why in told["not_looked"]) == (0, 0, True), told["not_looked"]
    assert SpecFiles(tmp_path / "include").check() == []
