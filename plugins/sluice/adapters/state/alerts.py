"""Runs that keep failing: `sluice_state.run` and the journal behind the port `AlertStore`."""

from typing import Final

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import journal
from sluice.errors import NotFound
from sluice.guard.takeover import TAKEN_OVER
from sluice.model.alert import Alert
from sluice.model.base import RunId
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Run

_SQL: Final = Queries(__package__, "alert.sql")
_EVENT: Final = "alert"


class PostgresAlertStore:
    """Alerts in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def failed_in_a_row(self, run: RunId) -> int:
        """Return how many runs of the sync, up to this one, have failed or were partial since one succeeded."""
        facts = {
            "run": run,
            "failures": [RunStatus.FAILED, RunStatus.PARTIAL],
            "success": RunStatus.SUCCEEDED,
            "taken_over": TAKEN_OVER,
        }
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["failed_in_a_row"], facts).fetchone()
            return int(row["runs"]) if row else 0

    def note(self, run: Run, alert: Alert) -> bool:
        """Tell the alert in the run's journal; return whether it is the run's first."""
        with self._database.transaction() as connection:
            present = connection.execute(_SQL["lock_run"], {"run": run.id}).fetchone()
            if present is None:
                raise NotFound(f"there is no run {run.id}", run=run.id)
            if connection.execute(_SQL["was_told"], {"run": run.id, "event": _EVENT}).fetchone() is not None:
                return False
            journal.note_run(connection, run.id, _EVENT, present["status"], level=alert.level, runs=alert.runs)
            return True
