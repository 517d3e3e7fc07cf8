"""`sluice new`: a name is enough, and it overwrites nothing."""

import ast
import json
from pathlib import Path

import pytest

from sluice.adapters.spec_files import SpecFiles
from tests.unit.cli.conftest import Invoke


def test_the_least_that_can_be_said(invoke: Invoke, project: Path) -> None:
    """A name is enough; the files stand where they belong, and what was there stands as it was."""
    before = (project / "include/stages.yaml").read_text(encoding="utf-8")
    done = invoke("new", "room_rates", "--no-look")
    assert done.exit_code == 0, done.stderr
    assert "wrote include/syncs/room_rates.yaml, dags/room_rates.py, include/stages.yaml" in done.stdout
    assert "export AIRFLOW_CONN_ROOM_RATES_SUPPLIER=" in done.stdout
    assert "sluice try room_rates" in done.stdout
    assert invoke("validate").exit_code == 0

    after = (project / "include/stages.yaml").read_text(encoding="utf-8")
    assert after.startswith(before.rstrip("\n"))
    assert "room-rates" in SpecFiles(project / "include").stages()
    tree = ast.parse((project / "dags/room_rates.py").read_text(encoding="utf-8"))
    assert ast.unparse(tree.body[-1]) == "dag = sync_dag('room_rates')"
    assert not list(project.rglob(".*.new"))

    again = invoke("new", "room_rates", "--no-look")
    assert (again.exit_code, "include/syncs/room_rates.yaml is already there" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Hotels"], "'Hotels' is no name for a sync"),
        (["import"], "'import' is no name for a sync"),
        (["a", "--kind", "ftp"], "--kind 'ftp' is not one of rest, sql, files, code"),
        (["a", "--kind", "sql", "--paging", "link"], "--paging is for --kind rest, not for sql"),
        (["a", "--kind", "files", "--watermark", "x"], "--watermark is for --kind rest or sql or code, not for files"),
        (["a", "--path", "hotels?x=1"], "has to begin with /"),
        (["a", "--kind", "files", "--shards", "ranges"], "--shards is for --kind rest or sql or code, not for files"),
        (["a", "--schedule", "daily"], "'daily' is no cron expression"),
        (["a", "--target", "Some Table"], "in lower case"),
        (["a", "--stage", "Not A Stage"], "'Not A Stage'"),
    ],
)
def test_what_does_not_go_together_is_refused(invoke: Invoke, project: Path, arguments: list[str], message: str) -> None:
    """Nothing is written then."""
    before = sorted(project.rglob("*"))
    done = invoke("new", *arguments, "--no-look")
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
    assert sorted(project.rglob("*")) == before


def test_a_supplier_that_cannot_be_asked_hinders_nothing(invoke: Invoke, project: Path) -> None:
    """Without its connection the fields are left to the person, and it is said why."""
    done = invoke("new", "rates", "--json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["records_seen"], "rates_supplier" in document["not_looked"]) == (0, True)
    assert (project / "include/syncs/rates.yaml").exists()
