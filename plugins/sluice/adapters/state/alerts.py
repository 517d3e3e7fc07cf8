"""Runs that keep failing, and incidents: `sluice_state.run` and `incident` behind the port `AlertStore`."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import journal
from sluice.adapters.state.calls import note_call
from sluice.errors import NotFound
from sluice.guard.takeover import TAKEN_OVER
from sluice.model.alert import Alert, AlertLevel, Incident
from sluice.model.base import RunId
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Run
from sluice.ports.coordination import Telling

_SQL: Final = Queries(__package__, "alert.sql")
_FAILURES: Final = {"failures": [RunStatus.FAILED, RunStatus.PARTIAL], "taken_over": TAKEN_OVER}


Connection = psycopg.Connection[DictRow]


@dataclass(frozen=True)
class _Outbox:
    """Who is told, and how long that is remembered."""

    telling: Telling
    ttl: timedelta


class PostgresAlertStore:
    """Alerts in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def failed_in_a_row(self, run: RunId) -> int:
        """Return how many runs of the sync, up to this one, have failed or were partial since one succeeded."""
        facts = {"run": run, "success": RunStatus.SUCCEEDED, **_FAILURES}
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["failed_in_a_row"], facts).fetchone()
            return int(row["runs"]) if row else 0

    def raise_alert(self, run: Run, alert: Alert, telling: Telling, ttl: timedelta) -> Incident | None:
        """Begin the sync's incident, or let it reach a higher level; None if it is there, or a later run has succeeded."""
        levels = {"level": alert.level, "higher": AlertLevel.PAGE}
        facts = {"sync": run.sync, "runs": alert.runs, "run": run.id, "success": RunStatus.SUCCEEDED, **levels}
        with self._database.transaction() as connection:
            row = _locked(connection, run).execute(_SQL["raise"], facts).fetchone()
            return _noted(connection, "alert", run, row, _Outbox(telling, ttl))

    def recover(self, run: Run, telling: Telling, ttl: timedelta) -> Incident | None:
        """End the sync's incident by a run that succeeded; None if there is none, or a later run has failed."""
        with self._database.transaction() as connection:
            facts = {"sync": run.sync, "run": run.id, **_FAILURES}
            row = _locked(connection, run).execute(_SQL["recover"], facts).fetchone()
            return _noted(connection, "recover", run, row, _Outbox(telling, ttl))

    def newest(self, sync: str) -> Incident | None:
        """Return the sync's incident, or the one that was over last."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["newest"], {"sync": sync}).fetchone()
            return _incident(row) if row else None


def _locked(connection: Connection, run: Run) -> Connection:
    """Hold the run whose journal will tell of it."""
    if connection.execute(_SQL["lock_run"], {"run": run.id}).fetchone() is None:
        raise NotFound(f"there is no run {run.id}", run=run.id)
    return connection


def _noted(connection: Connection, event: str, run: Run, row: DictRow | None, outbox: _Outbox) -> Incident | None:
    """Note whom an incident that has changed is told to, and that in the run's journal; None: none has."""
    if row is None:
        return None
    incident = _incident(row)
    for call in outbox.telling(incident):
        note_call(connection, call, outbox.ttl, begun=0)
    facts = {"incident": incident.id, "level": incident.level, "runs": incident.runs}
    journal.note_run(connection, run.id, event, run.status, **facts)
    return incident


def _incident(row: DictRow) -> Incident:
    return Incident(
        id=row["id"],
        sync=row["sync"],
        level=AlertLevel(row["level"]),
        runs=row["runs"],
        run=RunId(row["run"]),
        began_at=row["began_at"],
        ended_at=row["ended_at"],
    )
