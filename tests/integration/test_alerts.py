"""Alerts from end to end: a sync that keeps failing tells so on stderr and in the journals of its runs."""

from pathlib import Path
from typing import Any

import psycopg
import yaml

from sluice import log_events
from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere, copy_project
from tests.support.servers import Supplier


def test_a_sync_that_keeps_failing(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier
) -> None:
    """The first failure is warned of, the second in a row wakes somebody; a success ends the row."""
    project = copy_project(tmp_path)
    stages = project / "include/stages.yaml"
    policies = yaml.safe_load(stages.read_text())
    policies["defaults"] |= {"alerts": {"warn": 1, "page": 2}, "retry": {"attempts": 1, "base": "0s", "cap": "0s"}}
    stages.write_text(yaml.safe_dump(policies, sort_keys=False))
    connections = {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts}
    sluice = CommandLineHere(project, {**connections, "demo_supplier": supplier.connection})

    supplier.control(fail={"status": 403})
    failures = [sluice.call("run", "hotels", "--inline", "--json") for _ in range(2)]
    supplier.control(fail=None)
    success = sluice.call("run", "hotels", "--inline", "--json")
    supplier.control(fail={"status": 403})
    later = sluice.call("run", "hotels", "--inline", "--json")

    assert [log_events.ALERT_RAISED in run.stderr for run in (*failures, success, later)] == [True, True, False, True]
    assert [(one["level"], one["runs"]) for one in alerts(database)] == [("warn", 1), ("page", 2), ("warn", 1)]


def alerts(database: ConnectionInfo) -> list[dict[str, Any]]:
    """Return what the journals tell of alerts, oldest first."""
    with psycopg.connect(conninfo(database)) as connection:
        rows = connection.execute("select facts from sluice_state.event where event = 'alert' and subject = 'run' order by at")
        return [facts for (facts,) in rows]
