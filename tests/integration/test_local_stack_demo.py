"""`sluice up` and `sluice demo`, as a newcomer types them: killed, started again, ended, run twice."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.cli.local import processes
from sluice.cli.local.stack import clear
from tests.support import servers

COMMAND = [sys.executable, "-m", "sluice"]
HOTELS = 377 + 111
SERVERS = 6


@pytest.fixture
def project() -> Iterator[Path]:
    """A copy of the project; what its stack has made is removed in the end."""
    with servers.session_folder() as folder:
        for part in ("dags", "include", "plugins"):
            shutil.copytree(servers.PROJECT / part, folder / "project" / part, ignore=shutil.ignore_patterns("__pycache__"))
        yield folder / "project"
        clear(folder / "project")


def run_demo(project: Path) -> str:
    done = subprocess.run([*COMMAND, "demo"], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def recorded(project: Path) -> list[int]:
    return [json.loads(record.read_text())["pid"] for record in (project / ".sluice").rglob("*.json") if is_record(record)]


def is_record(file: Path) -> bool:
    return file.name == "pid.json" or file.parent.name == "pids"


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if (now := processes.stat(pid)) is not None and now.is_alive]


@pytest.mark.timeout(900)
def test_a_killed_stack_gives_way_and_the_demo_publishes(project: Path) -> None:
    """Where `up` was killed while its Airflow began, `demo` takes the folder over, publishes every hotel and ends all."""
    with (project / "up.log").open("w") as log:
        up = subprocess.Popen([*COMMAND, "up"], cwd=project, stdout=log, stderr=log)
    told, told_before_airflow = project / ".sluice" / "env", False
    while len(recorded(project)) < SERVERS:
        wait_for_more_of(up, project)
        told_before_airflow |= told.exists() and "AIRFLOW_CONN_SLUICE_AIRFLOW" not in told.read_text()
    assert told_before_airflow
    second = subprocess.run([*COMMAND, "up"], cwd=project, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert "runs for" in second.stderr
    up.kill()
    assert up.wait() == -signal.SIGKILL
    left = recorded(project)
    assert len(alive(left)) == SERVERS

    first = run_demo(project)
    assert alive(left) == []
    assert f"{HOTELS} created" in first
    assert f"{HOTELS} rows" in first
    assert recorded(project) == []
    assert not told.exists()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_stack_that_is_up_ends_when_told_and_of_two_demos_one_publishes(project: Path) -> None:
    """What `up` has begun a `demo` goes on with; the next `demo` publishes nothing."""
    with (project / "up.log").open("w") as log:
        up = subprocess.Popen([*COMMAND, "up"], cwd=project, stdout=log, stderr=log)
    while "The stack is up" not in (project / "up.log").read_text():
        wait_for_more_of(up, project)
    assert "AIRFLOW_CONN_SLUICE_AIRFLOW" in (project / ".sluice" / "env").read_text()
    up.terminate()
    assert up.wait() == 0
    assert recorded(project) == []
    assert f"{HOTELS} created" in run_demo(project)

    began = time.monotonic()
    again = run_demo(project)
    assert "nothing: the table is as the supplier has it" in again
    assert f"{HOTELS} rows" in again
    print(f"the second demo took {time.monotonic() - began:.0f} s")  # noqa: T201 - a figure people ask for


def wait_for_more_of(up: "subprocess.Popen[bytes]", project: Path) -> None:
    """Let half a second of its start go by, which must not be its end."""
    with pytest.raises(subprocess.TimeoutExpired):
        up.wait(0.5)
    assert up.poll() is None, (project / "up.log").read_text()
