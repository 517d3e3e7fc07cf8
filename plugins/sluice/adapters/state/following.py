"""What a run's watchers follow: `sluice_state.event`, and what its shards come to, behind the port `EventReader`."""

from typing import Final

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.errors import NotFound
from sluice.model.base import RunId
from sluice.model.journal import JournalEvent
from sluice.model.lifecycle import ShardStatus
from sluice.model.standing import Brought, Standing

_SQL: Final = Queries(__package__, "following.sql")


class PostgresEventReader:
    """Journals in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def after(self, run: RunId, seq: int, limit: int) -> list[JournalEvent]:
        """Return the events of a run behind a number, oldest first."""
        with self._database.transaction() as connection:
            found = connection.execute(_SQL["after"], {"run": run, "seq": seq, "limit": limit})
            return [JournalEvent(**row) for row in found]

    def newest(self, run: RunId, limit: int) -> list[JournalEvent]:
        """Return the newest events of a run, the newest first."""
        with self._database.transaction() as connection:
            found = connection.execute(_SQL["newest"], {"run": run, "limit": limit})
            return [JournalEvent(**row) for row in found]

    def standing(self, run: RunId) -> Standing:
        """Return how the run is doing now; raise `NotFound` naming it."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["standing"], {"run": run}).fetchone()
            if row is None:
                raise NotFound(f"there is no run {run}", run=run)
            brought = {
                ShardStatus(counted.pop("status")): Brought(**counted)
                for counted in connection.execute(_SQL["brought"], {"run": run})
            }
            return Standing(**row, brought=brought)
