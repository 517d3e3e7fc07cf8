"""What has outlived its time, in Postgres: counted, condemned and removed, behind the port `GarbageStore`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import silence
from sluice.adapters.state.pointers import pointer_from_row
from sluice.model.artifact import Pointer, StoredObject
from sluice.model.base import PublicationId, RunId
from sluice.model.garbage import Garbage, Heap, Holding, Needed, OfSync, Retired, Undoing
from sluice.model.state_class import TABLES, StateClass

_SQL: Final = Queries(__package__, "garbage.sql")
_CONTROL: Final = tuple(table for table, kept in TABLES.items() if kept.state_class is StateClass.CONTROL)
_SESSION: Final = tuple(table for table, kept in TABLES.items() if kept.state_class is StateClass.SESSION)
_BATCH: Final = 5_000
"""Rows of one transaction: nobody waits long for their locks."""
_RUNS_AT_ONCE: Final = 100
_HOLDINGS: Final = {
    "pinned": Holding.PINNED,
    "at_work": Holding.RUN,
    "not_known": Holding.UNKNOWN,
    "publication": Holding.PUBLICATION,
    "undo": Holding.UNDO,
    "letters": Holding.LETTERS,
    "shared": Holding.SHARED,
}

Connection = psycopg.Connection[DictRow]


class PostgresGarbageStore:
    """Garbage in Postgres. What is meant by it is decided by the same statements, whether they are let stand or not."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def syncs(self) -> list[str]:
        """Return the syncs that have ended runs."""
        with self._database.transaction() as connection:
            return [row["sync"] for row in connection.execute(_SQL["syncs"])]

    def undoing(self) -> list[Undoing]:
        """Return the publications that are being taken back."""
        with self._database.transaction() as connection:
            rows = connection.execute(_SQL["undoing"]).fetchall()
            return [Undoing(sync=row["sync"], publication=PublicationId(row["publication"])) for row in rows]

    def estimate(self, needed: Needed, quiet: timedelta, grace: timedelta) -> Garbage:
        """Return what would be removed now: it is removed, and the transaction taken back."""
        with self._database.transaction() as connection, connection.transaction(force_rollback=True):
            closed = sum(silence.end(connection, run, grace) for run in silence.runs(connection, grace))
            control = {table: _sweep(connection, table, quiet=quiet, limit=None) for table in _CONTROL}
            session = {table: _sweep(connection, table, limit=None) for table in _SESSION}
            expired, held = _due(connection, needed)
            connection.execute(_SQL["forget"], {"ids": [row["id"] for row in expired]})
            runs = connection.execute(_SQL["old_runs"], _old(needed, grace, None)).fetchall()
            task = _belongings(connection, [row["id"] for row in runs])
        objects = {row["key"]: row for row in expired}
        syncs: dict[str, OfSync] = {}
        for row in objects.values():
            of = syncs.get(row["sync"], OfSync())
            syncs[row["sync"]] = of.model_copy(update={"artifacts": of.artifacts + Heap(objects=1, bytes=row["bytes"])})
        for row in runs:
            of = syncs.get(row["sync"], OfSync())
            syncs[row["sync"]] = of.model_copy(update={"runs": of.runs + 1})
        return Garbage(
            control=control,
            session=session,
            task=task,
            artifacts=len(objects),
            bytes=sum(row["bytes"] for row in objects.values()),
            runs=len(runs),
            closed=closed,
            syncs=syncs,
            held=held,
            kept=needed.unknown,
        )

    def close_silent(self, grace: timedelta) -> int:
        """End the runs at work that nobody has heard of for so long."""
        with self._database.transaction() as connection:
            runs = silence.runs(connection, grace)
        return sum(self._close(run, grace) for run in runs)

    def _close(self, run: RunId, grace: timedelta) -> bool:
        with self._database.transaction() as connection:
            return silence.end(connection, run, grace)

    def sweep_control(self, quiet: timedelta) -> dict[str, int]:
        """Remove control state whose time is over."""
        return {table: self._swept(table, quiet=quiet) for table in _CONTROL}

    def sweep_session(self) -> dict[str, int]:
        """Remove session state of runs that ended longer ago than their `session_ttl`."""
        return {table: self._swept(table) for table in _SESSION}

    @contextmanager
    def telling(self) -> Iterator[list[Retired]]:
        """Yield the events of some of those runs; they are removed when the block ends."""
        with self._database.transaction() as connection:
            told = connection.execute(_SQL["told_runs"], {"limit": _RUNS_AT_ONCE}).fetchall()
            rows = [{"run": row["id"], "last": row["last"]} for row in told]
            yield [
                Retired(row["id"], row["sync"], f"events-{row['first']}", _lines(connection, "rows_of_events", facts))
                for row, facts in zip(told, rows, strict=True)
            ]
            for facts in rows:
                connection.execute(_SQL["remove_events"], facts)

    def condemn(self, needed: Needed) -> tuple[list[Pointer], dict[Holding, Heap]]:
        """Let expired pointers count no more; return one to each of their bytes, and what stays."""
        with self._database.transaction() as connection:
            expired, held = _due(connection, needed)
            connection.execute(_SQL["condemn"], {"ids": [row["id"] for row in expired]})
        return list({row["key"]: pointer_from_row(row) for row in expired}.values()), held

    @contextmanager
    def removing(self, keys: Sequence[str], needed: Needed) -> Iterator[list[Pointer]]:
        """Yield a pointer to each of the condemned bytes; what points to them is removed when the block ends."""
        with self._database.transaction() as connection:
            connection.execute(_SQL["hold_runs"], {"keys": list(keys)})
            expired, _ = _due(connection, needed, keys)
            yield list({row["key"]: pointer_from_row(row) for row in expired}.values())
            connection.execute(_SQL["forget"], {"ids": [row["id"] for row in expired]})

    @contextmanager
    def orphans(self, found: Sequence[StoredObject], grace: timedelta) -> Iterator[tuple[list[StoredObject], Heap]]:
        """Yield those that nothing points to, while no run of theirs can be gone on with; and what is of no known run."""
        facts = {
            "keys": [one.key for one in found],
            "syncs": [one.sync for one in found],
            "runs": [one.run for one in found],
            "grace": grace,
        }
        with self._database.transaction() as connection:
            connection.execute(_SQL["hold_owners"], {"runs": sorted({one.run for one in found})})
            is_strange = {row["key"]: row["is_strange"] for row in connection.execute(_SQL["strays"], facts)}
            strange = [one for one in found if is_strange.get(one.key)]
            stray = [one for one in found if is_strange.get(one.key) is False]
            yield stray, Heap(objects=len(strange), bytes=sum(one.bytes for one in strange))

    @contextmanager
    def retiring(self, needed: Needed, grace: timedelta) -> Iterator[tuple[list[Retired], dict[str, int]]]:
        """Yield some ended runs that go, and how many rows of other tables with them; they are removed when the block ends."""
        with self._database.transaction() as connection:
            old = connection.execute(_SQL["old_runs"], _old(needed, grace, _RUNS_AT_ONCE)).fetchall()
            runs = [row["id"] for row in old]
            yield [_retired(connection, row) for row in old], _belongings(connection, runs)
            connection.execute(_SQL["remove_runs"], {"runs": runs})

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


def _due(
    connection: Connection, needed: Needed, keys: Sequence[str] | None = None
) -> tuple[list[DictRow], dict[Holding, Heap]]:
    """Return the expired pointers that nothing holds, and how many bytes something holds."""
    facts = {**_wanted(needed), **_HOLDINGS, "keys": None if keys is None else list(keys)}
    rows = connection.execute(_SQL["due"], facts).fetchall()
    held: dict[Holding, Heap] = {}
    for row in {row["key"]: row for row in rows if row["held_by"] is not None}.values():
        why = Holding(row["held_by"])
        held[why] = held.get(why, Heap()) + Heap(objects=1, bytes=row["bytes"])
    return [row for row in rows if row["held_by"] is None], held


def _retired(connection: Connection, row: DictRow) -> Retired:
    lines = _lines(connection, "rows_of_run", {"run": row["id"]})
    return Retired(row["id"], row["sync"], f"state-{row['ordinal']}", lines)


def _belongings(connection: Connection, runs: Sequence[str]) -> dict[str, int]:
    return {row["table"]: row["rows"] for row in connection.execute(_SQL["belongings"], {"runs": list(runs)})}


def _lines(connection: Connection, query: str, facts: dict[str, Any]) -> Iterator[str]:
    """Yield rows as they come: a run may have many."""
    with connection.cursor(name=query) as cursor:
        for row in cursor.execute(_SQL[query], facts):
            yield row["line"]


def _wanted(needed: Needed) -> dict[str, Any]:
    return {"published": list(needed.published), "unknown": sorted(needed.unknown)}


def _old(needed: Needed, grace: timedelta, limit: int | None) -> dict[str, Any]:
    return {**_wanted(needed), "grace": grace, "limit": limit}
