"""The `sluice` command, in processes of its own or in this one, in a project whose connections are in the environment."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

import structlog
from typer.testing import CliRunner

from sluice.cli.app import build_app
from sluice.cli.local.services import as_variable
from sluice.errors import ConnectionInvalid
from sluice.ports import ConnectionInfo, Connections
from tests.support.servers import Supplier

REPOSITORY = Path(__file__).parents[2]


def copy_project(folder: Path) -> Path:
    """Make `folder` a project with the specs of this repository."""
    shutil.copytree(REPOSITORY / "include", folder / "include", ignore=shutil.ignore_patterns("demo"))
    return folder


class CommandLine:
    """Calls `sluice` as a person would, from the project's folder."""

    def __init__(self, project: Path, connections: Mapping[str, ConnectionInfo]) -> None:
        self.project = project
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(project)}
        for conn_id, info in connections.items():
            self.define(conn_id, info)

    def define(self, conn_id: str, info: ConnectionInfo) -> None:
        """Put an Airflow connection into the environment."""
        self.environ[f"AIRFLOW_CONN_{conn_id.upper()}"] = as_variable(info)

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Call a command and return what it printed."""
        with self.start(*arguments, stdout=subprocess.PIPE) as process:
            out, err = process.communicate(timeout=120)
            return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def start(self, *arguments: str, stdout: int = subprocess.DEVNULL) -> AbstractContextManager[subprocess.Popen[str]]:
        """Start a command; what it says on stderr can be read line by line."""
        return subprocess.Popen(
            [sys.executable, "-m", "sluice", *arguments],
            cwd=self.project,
            env=self.environ,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, *arguments: str, code: int = 0) -> Any:
        """Call a command that ends with `code`, and return its JSON."""
        done = self.call(*arguments, "--json")
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return json.loads(done.stdout)


class NoAirflow:
    """An Airflow without connections."""

    def get(self, conn_id: str) -> ConnectionInfo:
        """Know none."""
        raise ConnectionInvalid(f"no {conn_id}")


def no_airflow() -> Connections:
    """Return an Airflow without connections."""
    return NoAirflow()


class CommandLineHere(CommandLine):
    """Calls `sluice` in this process, where one of its own would prove nothing more and take seconds."""

    @property
    def apart(self) -> CommandLine:
        """The same project, for calls whose process matters."""
        command = CommandLine(self.project, {})
        command.environ = self.environ
        return command

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Call a command and return what it printed."""
        with patch.dict(os.environ), chdir(self.project):
            for name in [name for name in os.environ if name.startswith(("SLUICE_", "AIRFLOW_"))]:
                del os.environ[name]
            os.environ.update(self.environ)
            done = CliRunner().invoke(build_app(no_airflow), list(arguments), prog_name="sluice", catch_exceptions=False)
        structlog.reset_defaults()
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def command_line(folder: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLineHere:
    """Return a command line in a project of its own, whose state and target are one database."""
    known = {
        "sluice_state": database,
        "sluice_target": database,
        "sluice_artifacts": artifacts,
        "demo_supplier": supplier.connection,
    }
    return CommandLineHere(copy_project(folder), known)
