"""What has outlived its time, in Postgres: counted, condemned and removed, behind the port `GarbageStore`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state.pointers import pointer_from_row
from sluice.model.artifact import Pointer
from sluice.model.garbage import Garbage, Needed
from sluice.model.state_class import TABLES, StateClass

_SQL: Final = Queries(__package__, "garbage.sql")
_CONTROL: Final = tuple(table for table, kept in TABLES.items() if kept.state_class is StateClass.CONTROL)
_SESSION: Final = tuple(table for table, kept in TABLES.items() if kept.state_class is StateClass.SESSION)
_BATCH: Final = 5_000
"""Rows of one transaction: nobody waits long for their locks."""

Connection = psycopg.Connection[DictRow]


class PostgresGarbageStore:
    """Garbage in Postgres. What is meant by it is decided by the same statements, whether they are let stand or not."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def syncs(self) -> list[str]:
        """Return the syncs that have ended runs."""
        with self._database.transaction() as connection:
            return [row["sync"] for row in connection.execute(_SQL["syncs"])]

    def estimate(self, needed: Needed, quiet: timedelta) -> Garbage:
        """Return what would be removed now: it is removed, and the transaction taken back."""
        with self._database.transaction() as connection, connection.transaction(force_rollback=True):
            control = {table: _sweep(connection, table, quiet=quiet, limit=None) for table in _CONTROL}
            session = {table: _sweep(connection, table, limit=None) for table in _SESSION}
            expired = _expired(connection, needed)
            connection.execute(_SQL["forget"], {"ids": [row["id"] for row in expired]})
            runs = _sweep(connection, "run", **_wanted(needed), limit=None)
        sizes = {row["key"]: row["bytes"] for row in expired}
        return Garbage(
            control=control,
            session=session,
            artifacts=len(sizes),
            bytes=sum(sizes.values()),
            runs=runs,
            kept=needed.unknown,
        )

    def sweep_control(self, quiet: timedelta) -> dict[str, int]:
        """Remove control state whose time is over."""
        return {table: self._swept(table, quiet=quiet) for table in _CONTROL}

    def sweep_session(self) -> dict[str, int]:
        """Remove session state of runs that ended longer ago than their `session_ttl`."""
        return {table: self._swept(table) for table in _SESSION}

    def condemn(self, needed: Needed) -> list[str]:
        """Let expired pointers count no more; return the keys of their bytes."""
        with self._database.transaction() as connection:
            expired = _expired(connection, needed)
            connection.execute(_SQL["condemn"], {"ids": [row["id"] for row in expired]})
        return list(dict.fromkeys(row["key"] for row in expired))

    @contextmanager
    def removing(self, keys: Sequence[str], needed: Needed) -> Iterator[list[Pointer]]:
        """Yield a pointer to each of the condemned bytes; what points to them is removed when the block ends."""
        with self._database.transaction() as connection:
            connection.execute(_SQL["hold_runs"], {"keys": list(keys)})
            expired = _expired(connection, needed, keys)
            yield list({row["key"]: pointer_from_row(row) for row in expired}.values())
            connection.execute(_SQL["forget"], {"ids": [row["id"] for row in expired]})

    def sweep_runs(self, needed: Needed) -> int:
        """Remove runs whose time is over and whose artifacts are gone."""
        return self._swept("run", **_wanted(needed))

    def _swept(self, table: str, **facts: Any) -> int:
        """Sweep in batches, each in a transaction of its own."""
        total = 0
        while True:
            with self._database.transaction() as connection:
                removed = _sweep(connection, table, **facts, limit=_BATCH)
            total += removed
            if removed < _BATCH:
                return total


def _sweep(connection: Connection, table: str, **facts: Any) -> int:
    return connection.execute(_SQL[f"sweep_{table}"], facts).rowcount


def _expired(connection: Connection, needed: Needed, keys: Sequence[str] | None = None) -> list[DictRow]:
    facts = {**_wanted(needed), "keys": None if keys is None else list(keys)}
    return connection.execute(_SQL["expired"], facts).fetchall()


def _wanted(needed: Needed) -> dict[str, Any]:
    return {"published": list(needed.published), "unknown": sorted(needed.unknown)}
