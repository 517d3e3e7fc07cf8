"""Rows of `sluice_state.run`: a run goes in, its columns come out; a row goes in, its run comes out."""

from typing import Any, Final

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from sluice.adapters.queries import Queries
from sluice.adapters.state.columns import failure_from_row
from sluice.adapters.state.versions import Row, Versioned
from sluice.errors import NotFound
from sluice.model.base import PublicationId, RunId, ShardKey, Token
from sluice.model.lifecycle import RunStatus, Step
from sluice.model.run import RUN_STATE_VERSION, SYNC_MODES, Mode, Origin, Redrive, ReviewMode, Run, Window

SQL: Final = Queries(__package__, "run.sql")
"""The statements about runs."""


def run_from_row(row: DictRow) -> Run:
    """Return the run a row stands for; raise `StateTooNew` or `StateUnreadable`, see `versions`."""
    return _VERSIONED.read(row)


def _noun(row: Row) -> Run:
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
        undoes=PublicationId(row["undoes"]) if row["undoes"] is not None else None,
        replays=RunId(row["replays"]) if row["replays"] is not None else None,
        redrives=Redrive.model_validate(row["redrives"]) if row["redrives"] is not None else None,
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


def _that_may_follow(row: Row) -> Row:
    """Version 1 knew neither force nor followers, and kept runs for ever."""
    return {"force": False, "follows": None, "expires_at": None, **row}


def _that_may_undo(row: Row) -> Row:
    """Version 2 knew no rollbacks."""
    return {"undoes": None, **row}


def _that_may_replay(row: Row) -> Row:
    """Version 3 knew no replays."""
    return {"replays": None, **row}


def donors_of(connection: psycopg.Connection[DictRow], run: Run) -> list[RunId] | None:
    """Return the runs whose raw data a replay maps again, oldest first; None for a run of another mode."""
    if run.mode is not Mode.REPLAY:
        return None
    if run.replays is not None or run.window is None:
        return [run.replays] if run.replays is not None else []
    facts = {"sync": run.sync, "fetching": list(SYNC_MODES), "window_start": run.window.start, "window_end": run.window.end}
    return [RunId(row["id"]) for row in connection.execute(SQL["fetched_within"], facts)]


def _that_may_redrive(row: Row) -> Row:
    """Version 4 left dead letters to the supplier."""
    return {"redrives": None, **row}


_VERSIONED: Final = Versioned(
    table="run",
    known=RUN_STATE_VERSION,
    identity={"run": "id"},
    migrations={1: _that_may_follow, 2: _that_may_undo, 3: _that_may_replay, 4: _that_may_redrive},
    build=_noun,
)


def columns_of(run: Run) -> dict[str, Any]:
    """Return the columns of a run that is admitted."""
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
        "undoes": run.undoes,
        "replays": run.replays,
        "redrives": None if run.redrives is None else Jsonb(run.redrives.model_dump(mode="json")),
        "spec_hash": run.spec_hash,
        "transformer_version": run.transformer_version,
        "dag_id": run.origin.dag_id,
        "dag_run_id": run.origin.dag_run_id,
        "status": RunStatus.PENDING,
        "step": run.step,
        "state_version": run.state_version,
        "created_at": run.created_at,
    }


def find_run(connection: psycopg.Connection[DictRow], run: RunId) -> Run:
    """Return the run; raise `NotFound` naming it."""
    row = connection.execute(SQL["get"], {"id": run}).fetchone()
    if row is None:
        raise NotFound(f"there is no run {run}: `sluice runs` lists them", run=run)
    return run_from_row(row)
