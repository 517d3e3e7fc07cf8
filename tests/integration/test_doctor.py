"""`sluice doctor` on a real Postgres, a real S3 API and something that answers as Airflow does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.support.airflow_stub import AirflowStub
from tests.support.command_line import CommandLineHere, copy_project


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> CommandLineHere:
    """Return a command line with everything it needs."""
    supplier = ConnectionInfo("demo_supplier", "http", "127.0.0.1", 1, None, None, "http", {})
    airflow = ConnectionInfo("sluice_airflow", "http", "127.0.0.1", 1, None, None, "http", {})
    known = {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts}
    return CommandLineHere(copy_project(tmp_path), {**known, "demo_supplier": supplier, "sluice_airflow": airflow})


def failed(report: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Return the findings that failed, by check and subject."""
    return {(one["check"], one["subject"]): one for one in report["findings"] if one["standing"] == "failed"}


def test_a_healthy_installation(sluice: CommandLineHere, artifacts: ConnectionInfo) -> None:
    """All is well, an Airflow that is down is a warning, and nothing is left in the bucket."""
    report = sluice.ask("doctor")
    assert report["healthy"] is True
    assert {one["standing"] for one in report["findings"]} == {"ok", "warning"}
    assert [one["check"] for one in report["findings"] if one["standing"] == "warning"] == ["pool"]
    assert {stage: {one["state_class"]: one["span"] for one in of} for stage, of in report["loss_windows"].items()} == {
        stage: {"control": "0s", "task": "270s", "session": "12s"} for stage in ("hotel-content", "hotel-rates")
    }
    store = S3ArtifactStore(artifacts)
    assert "Contents" not in store._client.list_objects_v2(Bucket=artifacts.extra["bucket"])


def test_the_table_reads_well(sluice: CommandLineHere) -> None:
    """Each check is a line, each mend stands below it, and the loss windows follow."""
    done = sluice.call("doctor")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "ok       database sluice_state: reachable" in lines
    assert "ok       schema sluice_target: sluice_ledger is at revision 0003" in lines
    warned = next(number for number, line in enumerate(lines) if line.startswith("warning  pool Airflow: "))
    assert lines[warned + 1] == "         -> look again when it is up"
    assert "What a killed worker may lose: batch + (retries + 1) x time-out + shutdown" in lines


@pytest.mark.parametrize(
    ("conn_id", "check"),
    [("sluice_state", "database"), ("sluice_target", "database"), ("sluice_artifacts", "artifacts")],
)
def test_what_is_down_is_named(
    sluice: CommandLineHere, database: ConnectionInfo, artifacts: ConnectionInfo, conn_id: str, check: str
) -> None:
    """Each connection is told from the others, with what to do."""
    nowhere = {
        "database": replace(database, port=1, conn_id=conn_id),
        "artifacts": replace(artifacts, extra={**artifacts.extra, "endpoint_url": "http://127.0.0.1:1"}),
    }[check]
    sluice.define(conn_id, nowhere)
    findings = failed(sluice.ask("doctor", code=1))
    assert list(findings) == [(check, conn_id)]
    assert conn_id in findings[check, conn_id]["said"]
    assert f"correct the connection {conn_id}" in findings[check, conn_id]["mend"]


def test_a_database_without_schemas_and_a_spec_with_a_mistake(
    sluice: CommandLineHere, empty_database: ConnectionInfo, database: ConnectionInfo
) -> None:
    """All that is wrong is told at once; a schema of an older or a newer release counts as well."""
    sluice.define("sluice_state", empty_database)
    with psycopg.connect(conninfo(database)) as connection:
        connection.execute("update sluice_ledger.migration set version_num = '9999'")
    (sluice.project / "include/syncs/worse.yaml").write_text("sync: worse\nschedule: never\n")
    findings = failed(sluice.ask("doctor", code=1))
    assert findings["schema", "sluice_state"]["mend"] == "run `sluice db upgrade`"
    assert "9999" in findings["schema", "sluice_target"]["said"]
    assert findings["schema", "sluice_target"]["mend"] == "upgrade this Sluice: a newer one has been here"
    assert ("specs", "include/syncs/worse.yaml") in findings


def test_pools_are_looked_for_in_airflow(sluice: CommandLineHere) -> None:
    """A stage without its pool would never start a task."""
    with AirflowStub() as airflow:
        sluice.define("sluice_airflow", airflow.info)
        airflow.answers["GET", "/api/v2/pools?limit=1000"] = (200, {"pools": [{"name": "default_pool"}]})
        assert list(failed(sluice.ask("doctor", code=1))) == [("pool", "sluice_hotel_content")]
        airflow.answers["GET", "/api/v2/pools?limit=1000"] = (200, {"pools": [{"name": "sluice_hotel_content"}]})
        assert failed(sluice.ask("doctor")) == {}
