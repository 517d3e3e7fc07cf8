"""The command line as a whole: help, errors, exit codes, and that stdout stays clean."""
# ruff: noqa: E501 - tables of cases read better with one on each line

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluice.cli.exits import ExitCode, exit_code_of
from sluice.model.lifecycle import RunStatus

COMMANDS = [
    ("validate",),
    ("run",),
    ("runs",),
    ("show",),
    ("ledger",),
    ("review", "list"),
    ("review", "show"),
    ("review", "approve"),
    ("review", "reject"),
    ("db", "upgrade"),
    ("doctor",),
    ("gc",),
    ("up",),
    ("demo",),
]


def test_the_help_teaches(invoke: Any) -> None:
    """The first page lists every command, where to begin, and the exit codes."""
    answer = invoke("--help")
    assert answer.exit_code == 0
    for command in {command[0] for command in COMMANDS}:
        assert f" {command} " in answer.stdout
    assert "Begin with" in answer.stdout
    assert "3 waits for a review" in " ".join(answer.stdout.split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_and_json(invoke: Any, command: tuple[str, ...]) -> None:
    """The help of each command shows how to call it, and each speaks JSON."""
    answer = invoke(*command, "--help")
    assert answer.exit_code == 0
    assert f"Example: sluice {' '.join(command)}" in answer.stdout
    assert "--json" in answer.stdout


@pytest.mark.parametrize(
    "arguments", [("nope",), ("run",), ("runs", "--limit", "0"), ("runs", "--status", "x"), ("run", "hotels", "--mode", "x")]
)
def test_a_command_line_that_cannot_be_used_ends_with_2(invoke: Any, arguments: tuple[str, ...]) -> None:
    """Unknown commands, missing arguments and values out of range end with 2 and say nothing on stdout."""
    answer = invoke(*arguments)
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert "Error" in answer.stderr


WRONG_RUNS = {
    "half a window": (("--window-start", "2026-01-01T00:00:00Z"), "a window needs both --window-start and --window-end"),
    "no time zone": (("--window-start", "2026-01-01", "--window-end", "2026-01-02"), "--window-start 2026-01-01 has no time zone"),
    "no time": (("--window-start", "x", "--window-end", "y"), "--window-start 'x' is no time such as"),
    "window backwards": (("--window-start", "2026-01-02T00:00Z", "--window-end", "2026-01-01T00:00Z"), "is not after --window-start"),
    "empty shard": (("--shards", "a,,b"), "--shards 'a,,b': shard keys joined by commas"),
    "waiting for what waits anyhow": (("--wait",), "--wait is for runs in Airflow"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "message"), WRONG_RUNS.values(), ids=WRONG_RUNS.keys())
def test_a_request_that_cannot_be_used_ends_with_2(invoke: Any, options: tuple[str, ...], message: str) -> None:
    """What is wrong with a request is told before anything is opened."""
    answer = invoke("run", "hotels", "--inline", *options)
    assert answer.exit_code == 2
    assert message in answer.stderr


def test_errors_are_one_line_a_mend_and_json(invoke: Any) -> None:
    """A missing connection ends with 1; a program reads what it is from stdout, a person from stderr."""
    answer = invoke("run", "hotels", "--json")
    assert answer.exit_code == 1
    assert json.loads(answer.stdout)["error"] == "ConnectionInvalid"
    asked, told = answer.stderr.splitlines()[:2]
    assert asked == "connection sluice_airflow is not in the environment: asking Airflow for it …"
    assert told.startswith("there is no connection 'sluice_airflow'")
    assert "`sluice up`" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_sync_that_does_not_exist_is_told_before_airflow_is_asked(invoke: Any) -> None:
    """An unknown name ends with 2 and lists the known ones."""
    answer = invoke("run", "hotel", "--json")
    assert answer.exit_code == 2
    assert json.loads(answer.stdout)["problems"] == [
        "include/syncs: no sync 'hotel'; did you mean 'hotels'? there are: hotel_days, hotels"
    ]


def test_debug_lets_errors_through(invoke: Any) -> None:
    """With --debug the error itself arrives, for its traceback."""
    answer = invoke("--debug", "run", "hotel")
    assert type(answer.exception).__name__ == "SpecInvalid"


def test_sound_specs_validate(invoke: Any) -> None:
    """All files are checked, and the names are told."""
    answer = invoke("validate", "--json")
    assert answer.exit_code == 0
    assert json.loads(answer.stdout) == {"syncs": ["hotel_days", "hotels"], "problems": []}
    assert invoke("validate", "hotels").stdout == "hotels: all right\n"


def test_mistakes_end_with_2_and_are_all_told(invoke: Any, project: Path) -> None:
    """Every problem of every file stands on a line of its own on stdout, for a person as for an editor."""
    (project / "include/syncs/bad.yaml").write_text("sync: worse\nschedule: never\n")
    answer = invoke("validate", "hotels", "bad", "bad")
    assert answer.exit_code == 2
    lines = answer.stdout.splitlines()
    assert "include/syncs/bad.yaml:1: sync: is 'worse', but the file is bad.yaml: the two have to be the same" in lines
    assert all(line.startswith("include/syncs/bad.yaml:") for line in lines)
    assert len(lines) == len(set(lines))
    assert f"{len(lines)} problems" in answer.stderr
    assert json.loads(invoke("validate", "--json").stdout)["problems"] == lines


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (RunStatus.SUCCEEDED, 0),
        (RunStatus.FAILED, 1),
        (RunStatus.CANCELLED, 1),
        (RunStatus.PENDING, 1),
        (RunStatus.RUNNING, 1),
        (RunStatus.WAITING, 3),
        (RunStatus.PARTIAL, 4),
    ],
)
def test_every_status_has_its_exit_code(status: RunStatus, code: int) -> None:
    """Scripts can tell by the exit code what became of a run."""
    assert exit_code_of(status) == ExitCode(code)


def call(project: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Call the command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "sluice", *arguments],
        cwd=project / "include",
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_is_a_process_with_an_exit_code(project: Path) -> None:
    """As a real process, from a folder inside the project: the version, a sound spec, a wrong setting, no project."""
    assert call(project, "--version").stdout.startswith("sluice ")
    done = call(project, "validate", "--json")
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (
        0,
        {"syncs": ["hotel_days", "hotels"], "problems": []},
        "",
    )
    wrong = call(project, "validate", SLUICE_INCLUD="x")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "unknown settings SLUICE_INCLUD; known: SLUICE_CACHE, SLUICE_INCLUDE\n"


def test_help_and_validate_load_nothing_heavy(project: Path) -> None:
    """The command starts quickly: neither Airflow nor a database, S3 or Arrow library is loaded to check specs."""
    script = (
        "import sys\n"
        "from sluice.__main__ import airflow_connections\n"
        "from sluice.cli.app import run\n"
        "code = run(['validate'], airflow_connections)\n"
        "heavy = {'airflow', 'psycopg', 'boto3', 'pyarrow', 'pandas', 'httpx2', 'alembic', 'fastapi'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=project, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_looks_things_up_loads_nothing_heavier_than_a_database_driver() -> None:
    """Neither migrations nor tables of suppliers, neither S3 nor Airflow, are loaded before a command needs them."""
    script = (
        "import sys\n"
        "import sluice.cli.app, sluice.wiring\n"
        "sys.exit(repr({'airflow', 'alembic', 'boto3', 'botocore', 'httpx2', 'jinja2', 'pyarrow', 'sqlalchemy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == "set()\n"


def test_what_fetches_and_transforms_loads_no_library_for_suites() -> None:
    """It takes seconds, and the review alone needs it."""
    script = (
        "import sys\n"
        "import sluice.flow.fetcher, sluice.flow.transformer, sluice.flow.reviewer, sluice.checks.engine, sluice.wiring\n"
        "import sluice.adapters.targets.postgres\n"
        "sys.exit(repr({'great_expectations', 'scipy', 'altair', 'sqlalchemy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == "set()\n"


def test_a_reader_that_has_seen_enough_changes_nothing(project: Path) -> None:
    """Piped into `head`, a command ends as it would have, and says nothing about the closed pipe."""
    script = f"{sys.executable} -m sluice validate --json | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=project, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")
