"""What the tests of the command line share: a project folder to stand in, and a way to call a command."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
import structlog
from typer.testing import CliRunner

from sluice.cli.app import build_app
from tests.support.command_line import copy_project, no_airflow


class Answer(Protocol):
    """What is known of a call."""

    exit_code: int
    stdout: str
    stderr: str


class Invoke(Protocol):
    """Calls a command."""

    def __call__(self, *arguments: str) -> Answer:
        """Call `sluice` with these arguments."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a project folder with the specs of this repository, and an environment that knows nothing of Sluice."""
    copy_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("SLUICE_", "AIRFLOW_"))]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def invoke(project: Path) -> Iterator[Invoke]:
    """Return a way to call a command in the project folder."""

    def call(*arguments: str) -> Answer:
        return CliRunner().invoke(build_app(no_airflow), list(arguments), prog_name="sluice")

    yield call
    structlog.reset_defaults()
