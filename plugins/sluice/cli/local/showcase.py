"""A local stack in; the sync `hotels` run by Airflow from end to end, task by task, and what came of it, out."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from psycopg import sql
from rich.console import Console
from rich.text import Text

from sluice.adapters.postgres import conninfo
from sluice.cli.account import Account, account_of, how_to_answer
from sluice.cli.connections import CliConnections
from sluice.cli.exits import ExitCode
from sluice.cli.local.airflow_client import AirflowClient
from sluice.cli.local.board import Board
from sluice.cli.local.layout import Layout
from sluice.cli.output import pairs, printable
from sluice.cli.project import load_environment
from sluice.errors import ConnectionInvalid, StackFailed
from sluice.model.airflow_names import dag_id_of
from sluice.model.base import ShardKey
from sluice.model.connections import AIRFLOW
from sluice.model.lifecycle import RunStatus
from sluice.model.rows import DELETED_AT
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.ports import Connections, Services
from sluice.settings import Settings
from sluice.wiring import open_services

SYNC: Final = "hotels"
DAG: Final = dag_id_of(SYNC)
OBJECT: Final = "node/251055437"
_SECONDS_TO_LOAD: Final = 180.0
_SECONDS_TO_BEGIN: Final = 60.0
_SECONDS_BETWEEN_LOOKS: Final = 0.7
_RECENT: Final = 20
_MOST_LOGS: Final = 3
_LOG_LINES: Final = 15
_NOT_BEGUN: Final = frozenset({"scheduled", "queued", "removed"})
_WAITS_FOR_A_PERSON: Final = frozenset({"awaiting_input", "deferred"})
_WORKING: Final[Mapping[str, str]] = {
    "running": "running",
    "restarting": "restarting",
    "up_for_retry": "failed, waits for its next try",
    "up_for_reschedule": "waits",
    "awaiting_input": "waits for a person",
    "deferred": "waits for a person",
}


@dataclass(frozen=True)
class Demonstration:
    """A stack that runs, seen from outside."""

    client: AirflowClient
    services: Services
    connections: Connections


@contextmanager
def opened(layout: Layout) -> Iterator[Demonstration]:
    """Find the stack that runs in a folder through the environment it wrote."""
    environment = {name: value for name, value in os.environ.items() if name.startswith("AIRFLOW_CONN_")}
    load_environment(layout.project, environment)
    connections = CliConnections(environment, _no_airflow)
    settings = Settings(include=layout.project / "include", cache=layout.cache)
    with (
        AirflowClient(connections.get(AIRFLOW)) as client,
        open_services(settings, connections) as services,
    ):
        yield Demonstration(client, services, connections)


def _no_airflow() -> Connections:
    raise ConnectionInvalid("the local stack defines every connection it needs")


def show(stack: Demonstration, command: str, out: Console) -> ExitCode:
    """Let Airflow run the sync once; show it while it runs, and what came of it."""
    began = time.monotonic()
    dag = _load(stack.client, out)
    run_id = _begin(stack.client, dag, out)
    out.print(Text.assemble("\n", (DAG, "bold"), "  ", (stack.client.url(DAG, run_id), "dim")), soft_wrap=True)
    state = _watch(stack, run_id, out)
    if dag["is_paused"] and state != "waiting":
        stack.client.set_paused(DAG, paused=True)  # its schedule is nobody's wish yet
    if state == "failed":
        _tell_failure(stack.client, run_id, out)
    run = _run_of(stack.services, run_id)
    if run is None:
        return ExitCode.FAILED
    rows = _rows(stack, stack.services.spec(SYNC))
    account = account_of(stack.services, run)
    out.print("")
    out.print(pairs(_summary(account, rows, time.monotonic() - began, command)))
    if state == "waiting" and account.review is not None:
        out.print(printable(f"\n{how_to_answer(account.review)}\n  (with the stack running: {command} up)", "yellow"))
        return ExitCode.WAITING
    return ExitCode.DONE if state == "success" and rows else ExitCode.FAILED


def _load(client: AirflowClient, out: Console) -> dict[str, Any]:
    """Wait until Airflow has read the DAG; return what it says of it."""
    deadline = time.monotonic() + _SECONDS_TO_LOAD
    with out.status(f"waiting for Airflow to read {DAG}"):
        while (dag := client.dag(DAG)) is None:
            wrong = [error for error in client.import_errors() if error["filename"].endswith(f"{SYNC}.py")]
            if wrong:
                raise StackFailed(f"dags/{SYNC}.py does not load:\n{wrong[0]['stack_trace']}")
            if time.monotonic() > deadline:
                raise StackFailed(f"Airflow has found no DAG {DAG} in dags/ after {_SECONDS_TO_LOAD:.0f} s")
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    return dag


def _begin(client: AirflowClient, dag: dict[str, Any], out: Console) -> str:
    """Return the id of a run that goes on or begins now: one that was broken off, the one that is due, or one asked for."""
    client.set_paused(DAG, paused=False)
    due = dag.get("next_dagrun_run_after")
    if due is not None and datetime.fromisoformat(due) <= datetime.now(UTC):
        deadline = time.monotonic() + _SECONDS_TO_BEGIN
        with out.status("waiting for the run that is due"):
            while not client.unfinished(DAG) and time.monotonic() < deadline:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
    return next(iter(client.unfinished(DAG)), None) or client.trigger(DAG, {}).dag_run_id


def _watch(stack: Demonstration, run_id: str, out: Console) -> str:
    """Show the tasks until the DagRun is over or waits for a person; return `success`, `failed` or `waiting`."""
    told: dict[str, str] = {}
    with Board(out, {}) as board:
        while True:
            state = str(stack.client.dag_run(DAG, run_id)["state"])
            tasks = stack.client.tasks(DAG, run_id)
            run = _run_of(stack.services, run_id)
            shards = {} if run is None else {shard.key: shard for shard in stack.services.shards.of(run.id)}
            for task in tasks:
                shard = shards.get(ShardKey(task.get("rendered_map_index") or ""))
                _show_task(board, told, task, _size(shard))
            if state in ("success", "failed"):
                return state
            if any(task["state"] in _WAITS_FOR_A_PERSON for task in tasks):
                return "waiting"
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _show_task(board: Board, told: dict[str, str], task: dict[str, Any], records: str) -> None:
    """Say what is new about a task instance."""
    state, name = task["state"], task["task_id"].rsplit(".", 1)[-1]
    is_unmapped = "." in task["task_id"] and (task["map_index"] < 0 or state == "upstream_failed")
    if state is None or state in _NOT_BEGUN or is_unmapped:
        return
    key = f"{name} {task.get('rendered_map_index') or ''}".strip()
    detail = records if name == "fetch" else ""
    if state in _WORKING:
        board.begin(key, detail or _WORKING[state])
    elif told.get(key) != state:
        if state == "success":
            board.done(key, detail, seconds=task["duration"])
        elif state == "failed":
            board.failed(key, "failed")
        else:
            board.passed_over(key, "not reached" if state == "upstream_failed" else state)
    told[key] = state


def _size(shard: Shard | None) -> str:
    if shard is None:
        return ""
    return f"{shard.records:,} record{'s' * (shard.records != 1)}, {shard.pages:,} page{'s' * (shard.pages != 1)}"


def _tell_failure(client: AirflowClient, run_id: str, out: Console) -> None:
    """Print the end of the log of each task that failed, as far as there is room for it."""
    failed = [task for task in client.tasks(DAG, run_id) if task["state"] == "failed"]
    for task in failed[:_MOST_LOGS]:
        name = f"{task['task_id']} {task.get('rendered_map_index') or ''}".strip()
        out.print(printable(f"\nThe log of {name}, attempt {task['try_number']}:", "bold red"))
        out.print(printable("\n".join(client.log(DAG, run_id, task)[-_LOG_LINES:])), soft_wrap=True)


def _run_of(services: Services, dag_run_id: str) -> Run | None:
    """Return Sluice's run of a DagRun; None until it has been admitted."""
    recent = services.runs.recent(SYNC, (), _RECENT)
    return next((run for run in recent if run.origin.dag_run_id == dag_run_id), None)


def _rows(stack: Demonstration, spec: SyncSpec) -> int:
    """Return how many rows the published table holds, those of objects that are gone left out."""
    with psycopg.connect(conninfo(stack.connections.get(spec.target.connection))) as session:
        counting = sql.SQL("select count(*) from {}").format(sql.Identifier(*spec.target.table.split(".")))
        if spec.target.deletes == "soft":
            counting += sql.SQL(" where {} is null").format(sql.Identifier(DELETED_AT))
        row = session.execute(counting).fetchone()
    return int(row[0]) if row else 0


def _summary(account: Account, rows: int, seconds: float, command: str) -> list[tuple[str, str]]:
    run, publication, review = account.run, account.publication, account.review
    counts = publication.counts if publication else {}
    is_well = run.status is RunStatus.SUCCEEDED
    published = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)
    return [
        ("run", f"{run.id}, {run.status}"),
        ("reviewed", f"{review.figures.seen:,} objects: {review.verdict}" if review else "nothing"),
        ("published", published or ("nothing: the table is as the supplier has it" if is_well else "nothing")),
        ("table", f"{rows:,} rows in public.{SYNC}"),
        ("took", f"{seconds:.0f} s"),
        ("look", f"{command} up    and in a second terminal"),
        ("", f"{command} show {run.id}"),
        ("", f"{command} ledger {SYNC} {OBJECT}"),
    ]
