"""Runs that nobody has heard of: inside a transaction, a run goes in that has been silent for long; it has failed, or lives."""

from datetime import timedelta
from typing import Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.state import flights, handover, journal
from sluice.adapters.state.columns import failure_columns, failure_facts
from sluice.guard.takeover import left_for_dead
from sluice.model.base import RunId
from sluice.model.lifecycle import RUN_TRANSITIONS, RunEvent, RunStatus, destination, sources

_SQL: Final = Queries(__package__, "garbage.sql")
_AT_WORK: Final = [status for status in sources(RUN_TRANSITIONS, RunEvent.FAIL) if status != RunStatus.WAITING]
"""A run that waits for a person shows no life, and needs not."""

Connection = psycopg.Connection[DictRow]


def runs(connection: Connection, grace: timedelta) -> list[RunId]:
    """Return the runs at work that nobody has heard of for so long."""
    facts = {"at_work": _AT_WORK, "grace": grace}
    return [RunId(row["id"]) for row in connection.execute(_SQL["silent_runs"], facts).fetchall()]


def end(connection: Connection, run: RunId, grace: timedelta) -> bool:
    """Let the run fail, unless it shows life by now, and fence whoever might wake in it; it can be gone on with like others."""
    failure = left_for_dead(grace)
    facts = {
        "run": run,
        "at_work": _AT_WORK,
        "grace": grace,
        "status": destination(RUN_TRANSITIONS, RunEvent.FAIL),
        **failure_columns(failure),
    }
    with flights.locked(connection, run):
        row = connection.execute(_SQL["end_silent"], facts).fetchone()
        if row is not None:
            journal.note_run(connection, run, RunEvent.FAIL, row["status"], **failure_facts(failure))
            handover.end_shards(connection, run, failure, all_of_them=True)
            flights.release(connection, run)
    return row is not None
