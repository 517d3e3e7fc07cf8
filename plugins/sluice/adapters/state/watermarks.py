"""How far fetching has been published: `sluice_state.watermark` behind the port `WatermarkStore`."""

from collections.abc import Mapping
from typing import Final

from psycopg.types.json import Jsonb

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import flights
from sluice.errors import Fenced
from sluice.model.base import ShardKey
from sluice.model.run import Run

_SQL: Final = Queries(__package__, "watermark.sql")


class PostgresWatermarkStore:
    """Watermarks in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def of(self, sync: str) -> dict[ShardKey, str]:
        """Return the watermark of each shard that has one."""
        with self._database.transaction() as connection:
            return {ShardKey(row["shard"]): row["value"] for row in connection.execute(_SQL["of_sync"], {"sync": sync})}

    def advance(self, sync: str, marks: Mapping[ShardKey, str], run: Run) -> None:
        """Move the watermarks, all or none; `Fenced` if `run` was taken over, or a younger run has moved one of them."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            facts = {"sync": sync, "marks": Jsonb(dict(marks)), "run": run.id, "token": run.token}
            moved = {row["shard"] for row in connection.execute(_SQL["advance"], facts)}
            if younger := sorted(set(marks) - moved):
                raise Fenced(f"a younger run has moved the watermark of {', '.join(younger)}", shards=younger)
