"""Breakers before suppliers: `sluice_state.breaker` behind the port `BreakerStore`."""

from datetime import datetime, timedelta
from typing import Any, Final

from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state.columns import storable
from sluice.model.breaker import Breaker

_SQL: Final = Queries(__package__, "breaker.sql")


class PostgresBreakerStore:
    """Breakers in Postgres, by its clock; each act is one statement."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def look(self, host: str, stage: str) -> Breaker:
        """Return the breaker; one that nobody has counted for is closed."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["look"], {"host": host, "stage": stage}).fetchone()
        assert row is not None  # noqa: S101 - the moment is there, whatever is known of the breaker
        return _from_row(row)

    def count(self, host: str, stage: str, *, tries: int, failures: int, window: timedelta) -> Breaker:
        """Add tries, and return the breaker with all that were counted within the window."""
        counted = self._act("count", host, stage, tries=tries, failures=failures, window=window)
        assert counted is not None  # noqa: S101 - an upsert returns its row
        return counted

    def open(self, host: str, stage: str, *, open_for: timedelta, reason: str, probe: datetime | None = None) -> Breaker | None:
        """Leave the supplier alone from now on; None if that is not the caller's to say."""
        return self._act("open", host, stage, open_for=open_for, reason=storable(reason), probe=probe)

    def claim_probe(self, host: str, stage: str, within: timedelta) -> Breaker | None:
        """Take the one try after a rest; None if the rest is not over, or somebody else makes the try."""
        return self._act("claim_probe", host, stage, within=within)

    def close(self, host: str, stage: str, probe: datetime) -> Breaker | None:
        """Let all tries pass again; None if the probe is not the caller's any more."""
        return self._act("close", host, stage, probe=probe)

    def _act(self, query: str, host: str, stage: str, **facts: Any) -> Breaker | None:
        with self._database.transaction() as connection:
            row = connection.execute(_SQL[query], {"host": host, "stage": stage, **facts}).fetchone()
        return None if row is None else _from_row(row)


def _from_row(row: DictRow) -> Breaker:
    return Breaker(
        at=row["at"],
        tries=sum(row["tries"] or ()),
        failures=sum(row["failures"] or ()),
        resting_until=row["resting_until"],
        probed_until=row["probed_until"],
        reason=row["reason"],
    )
