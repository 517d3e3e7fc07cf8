"""How far open chunks have come: `sluice_state.progress` behind the port `ProgressStore`."""

from typing import Final

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.model.base import RunId, ShardKey
from sluice.model.progress import Progress

_SQL: Final = Queries(__package__, "progress.sql")


class PostgresProgressStore:
    """Progress in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def tell(self, progress: Progress) -> None:
        """Keep what the open chunk holds; whoever has lost the shard changes nothing."""
        with self._database.transaction() as connection:
            connection.execute(_SQL["tell"], progress.model_dump())

    def of(self, run: RunId) -> dict[ShardKey, Progress]:
        """Return what was told last of each shard of the run that anything was told of."""
        with self._database.transaction() as connection:
            told = [Progress(**row) for row in connection.execute(_SQL["of_run"], {"run": run})]
        return {progress.shard: progress for progress in told}
