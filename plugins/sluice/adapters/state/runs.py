"""The runs: `sluice_state.run` and its flights behind the port `RunStore`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import psycopg
import structlog
from psycopg.rows import DictRow

from sluice import log_events
from sluice.adapters.postgres import Database
from sluice.adapters.queries import Queries
from sluice.adapters.state import flights, handover, journal
from sluice.adapters.state.columns import failure_columns, failure_facts, failure_from_row, require_known_version
from sluice.errors import Fenced, NotFound
from sluice.guard import takeover
from sluice.model.base import RunId, ShardKey, Token
from sluice.model.lifecycle import (
    FINAL_RUN_STATUSES,
    RUN_TRANSITIONS,
    RunEvent,
    RunStatus,
    Step,
    advance,
    destination,
    sources,
)
from sluice.model.run import RUN_STATE_VERSION, Failure, Mode, Origin, ReviewMode, Run, Window

_SQL: Final = Queries(__package__, "run.sql")

_log: Final = structlog.get_logger()


class PostgresRunStore:
    """Runs in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, run: Run, lease_ttl: timedelta) -> Run:
        """Take the flight and insert the run; see `takeover` for what it takes over from an earlier run of the request."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["insert"], {**_columns(run), "lease_ttl": lease_ttl}).fetchone()
            if row is None:
                return _get(connection, run.id)
            opened = run_from_row(row)
            flights.take(connection, run.id, lease_ttl)
            journal.note_run(connection, run.id, "open", opened.status)
            dead = _end_dead(connection, opened)
            earlier = connection.execute(_SQL["newest_before"], _columns(run)).fetchone()
            donor = run_from_row(earlier) if earlier else None
            if donor is not None and takeover.is_due(donor, opened, dead):
                handover.adopt(connection, donor.id, run.id)
        for taken in dead:
            _log.warning(log_events.RUN_TAKEN_OVER, **opened.log_context, taken_over=taken.id)
        return opened

    def get(self, run: RunId) -> Run:
        """Return the run; raise `NotFound` naming it."""
        with self._database.transaction() as connection:
            return _get(connection, run)

    def enter(self, run: RunId, step: Step, lease_ttl: timedelta) -> Run:
        """Put the run at `step`, `running`; raise `FlightTaken` while another run of its request is alive."""
        with self._database.transaction() as connection:
            before = _get(connection, run)
            if before.status is RunStatus.SUCCEEDED:
                return before
            flights.take(connection, run, lease_ttl)
            event = RunEvent.REOPEN if before.status in FINAL_RUN_STATUSES else RunEvent.ENTER
            row = connection.execute(
                _SQL["enter"],
                {
                    "id": run,
                    "step": step,
                    "lease_ttl": lease_ttl,
                    "status": destination(RUN_TRANSITIONS, event),
                    "sources": [*sources(RUN_TRANSITIONS, RunEvent.ENTER), *sources(RUN_TRANSITIONS, RunEvent.REOPEN)],
                },
            ).fetchone()
            if row is None:  # it has succeeded just now
                flights.release(connection, run)
                return _get(connection, run)
            journal.note_run(connection, run, event, row["status"], step=step)
            return run_from_row(row)

    def end(self, run: Run, event: RunEvent, failure: Failure | None = None) -> Run:
        """Let `event` happen to the run, and release its flight: one that waits for a person holds nobody up either."""
        status = destination(RUN_TRANSITIONS, event)
        with self._database.transaction() as connection:
            flights.release(connection, run.id)
            row = connection.execute(
                _SQL["end"],
                {
                    "id": run.id,
                    "token": run.token,
                    "status": status,
                    "sources": sources(RUN_TRANSITIONS, event),
                    "is_final": status in FINAL_RUN_STATUSES,
                    **failure_columns(failure),
                },
            ).fetchone()
            if row is None:
                raise _refusal(_get(connection, run.id), run.token, event)
            ended = run_from_row(row)
            journal.note_run(connection, run.id, event, status, **failure_facts(failure))
            return ended

    def recent(self, sync: str | None, statuses: Sequence[RunStatus], limit: int) -> list[Run]:
        """Return the newest runs first, filtered where a filter is given."""
        with self._database.transaction() as connection:
            facts = {"sync": sync, "statuses": list(statuses), "limit": limit}
            return [run_from_row(row) for row in connection.execute(_SQL["recent"], facts)]


def run_from_row(row: DictRow) -> Run:
    """Return the run a row stands for; raise `StateTooNew` if a newer release wrote it."""
    require_known_version(row, RUN_STATE_VERSION, f"run {row['id']}")
    return Run(
        id=RunId(row["id"]),
        sync=row["sync"],
        stage=row["stage"],
        tenant=row["tenant"],
        request_key=row["request_key"],
        mode=Mode(row["mode"]),
        window=Window(start=row["window_start"], end=row["window_end"]) if row["window_start"] else None,
        shards=tuple(ShardKey(key) for key in row["shards"]),
        review=ReviewMode(row["review_mode"]),
        force=row["force"],
        spec_hash=row["spec_hash"],
        transformer_version=row["transformer_version"],
        origin=Origin(dag_id=row["dag_id"], dag_run_id=row["dag_run_id"]),
        status=RunStatus(row["status"]),
        step=Step(row["step"]),
        token=Token(row["token"]),
        follows=RunId(row["follows"]) if row["follows"] is not None else None,
        failure=failure_from_row(row),
        state_version=row["state_version"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
        expires_at=row["expires_at"],
    )


def _columns(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "sync": run.sync,
        "stage": run.stage,
        "tenant": run.tenant,
        "request_key": run.request_key,
        "mode": run.mode,
        "window_start": run.window.start if run.window else None,
        "window_end": run.window.end if run.window else None,
        "shards": list(run.shards),
        "review_mode": run.review,
        "force": run.force,
        "spec_hash": run.spec_hash,
        "transformer_version": run.transformer_version,
        "dag_id": run.origin.dag_id,
        "dag_run_id": run.origin.dag_run_id,
        "status": RunStatus.PENDING,
        "step": run.step,
        "state_version": run.state_version,
        "created_at": run.created_at,
    }


def _get(connection: psycopg.Connection[DictRow], run: RunId) -> Run:
    row = connection.execute(_SQL["get"], {"id": run}).fetchone()
    if row is None:
        raise NotFound(f"there is no run {run}", run=run)
    return run_from_row(row)


def _end_dead(connection: psycopg.Connection[DictRow], successor: Run) -> list[Run]:
    """End the runs that died at work on the request. One that waits for a person is not dead, and goes on waiting."""
    failure = takeover.taken_over_by(successor.id)
    at_work = [status for status in sources(RUN_TRANSITIONS, RunEvent.FAIL) if status != RunStatus.WAITING]
    rows = connection.execute(
        _SQL["end_dead"],
        {
            "request_key": successor.request_key,
            "successor": successor.id,
            "status": destination(RUN_TRANSITIONS, RunEvent.FAIL),
            "sources": at_work,
            **failure_columns(failure),
        },
    ).fetchall()
    dead = [run_from_row(row) for row in rows]
    for run in dead:
        journal.note_run(connection, run.id, RunEvent.FAIL, run.status, **failure_facts(failure))
        handover.end_shards(connection, run.id, failure)
    return dead


def _refusal(run: Run, token: Token, event: RunEvent) -> Fenced:
    """Return why the run did not move, or raise `IllegalTransition`."""
    if run.token == token:
        advance(RUN_TRANSITIONS, run.status, event)
    return Fenced(f"run {run.id} was taken over: it holds token {run.token}, not {token}", token=run.token)
