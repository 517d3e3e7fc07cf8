"""Slots for requests to suppliers: `sluice_state.rate` behind the port `RateStore`."""

from datetime import timedelta
from typing import Final

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.errors import RateLimited
from sluice.model.scalars import spell_duration

_SQL: Final = Queries(__package__, "rate.sql")


class PostgresRateStore:
    """Slots in Postgres, by its clock."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def reserve(self, host: str, stage: str, *, spacing: timedelta, patience: timedelta) -> timedelta:
        """Take the next free slot, and return how far off it is; `RateLimited` if that is further than `patience`."""
        facts = {"host": host, "stage": stage, "spacing": spacing, "patience": patience}
        with self._database.transaction() as connection:
            slot = connection.execute(_SQL["reserve"], facts).fetchone()
            queue = None if slot else connection.execute(_SQL["queue"], facts).fetchone()
        if slot is not None:
            ahead: timedelta = slot["wait"]
            return max(timedelta(0), ahead)
        # Since it was found too long the queue has grown shorter by the time between the two statements.
        wait = max(queue["wait"] if queue else patience, patience + timedelta.resolution)
        raise RateLimited(
            f"the next request of stage {stage} to {host} would be due in {wait.total_seconds():.0f} s, and none waits longer "
            f"than {spell_duration(patience)}: let fewer shards work at a time, or raise requests_per_second of the stage",
            retry_after=wait.total_seconds(),
            host=host,
            stage=stage,
        )
