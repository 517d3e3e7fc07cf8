"""The published table as the spec declares it: its names, its keys, and its rows by object."""

from datetime import datetime
from typing import Final

import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.targets.catalog import find_table
from sluice.adapters.targets.evolution import Evolution
from sluice.adapters.targets.forms import form_of
from sluice.adapters.targets.names import TableNames, listed
from sluice.errors import TargetMismatch
from sluice.model.rows import DELETED_AT
from sluice.model.spec import SyncSpec

_SQL: Final = Queries(__package__, "table.sql")


class TargetTable:
    """Names, types and keys of one published table."""

    def __init__(self, spec: SyncSpec) -> None:
        self._names = TableNames(spec)
        self._form = form_of(spec, self._names)
        self._evolution = Evolution(spec, self._names, self._form)
        self.schema, self.name = self._names.schema, self._names.name
        self.identifier = self._names.identifier
        self.fields = self._names.fields
        self.key_fields = self._names.key_fields
        self.own = frozenset(column.name for column in self._form.own)
        self.is_dated = self._form.is_dated
        """Whether each row says when it was published."""

    def lock(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Wait for the lock of this table, and hold it until the transaction ends."""
        cursor.execute(_SQL["lock"], {"table": f"{self.schema}.{self.name}"})

    def spell_alike(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Let Postgres spell values one way, whatever the server prefers, until the transaction ends."""
        cursor.execute(_SQL["spell_alike"])

    def work_in_bulk(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Let Postgres work on many rows at a time rather than on many things at once, until the transaction ends."""
        cursor.execute(_SQL["work_in_bulk"])

    def exists(self, cursor: psycopg.Cursor[DictRow]) -> bool:
        """Whether the table is there."""
        return find_table(cursor, self._names) is not None

    def columns(self, cursor: psycopg.Cursor[DictRow]) -> frozenset[str]:
        """Return the names of the columns that are there: until a publication adds it, that of a new field is not."""
        table = find_table(cursor, self._names)
        return frozenset(table.columns) if table else frozenset()

    def is_readable(self, cursor: psycopg.Cursor[DictRow]) -> bool:
        """Whether the table is there; raise `TargetMismatch`, naming them, if it lacks columns of the spec."""
        present = self.columns(cursor)
        lacking = [name for name in (*(field.name for field in self.fields), *sorted(self.own)) if name not in present]
        if present and lacking:
            raise TargetMismatch(f"table {self.schema}.{self.name} has no column {', '.join(lacking)} to read yet")
        return bool(present)

    def check(self, cursor: psycopg.Cursor[DictRow]) -> tuple[str, ...]:
        """Return the statements by which the next publication will make the table, or alter it, each with its reason.

        Raises `TargetMismatch`, naming every difference that it may not mend with the statement that does.
        """
        return self._evolution.told(cursor)

    def evolve(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Make or alter the table as the spec wants it; raises `TargetMismatch` as `check` does, or if Postgres refuses."""
        self._evolution.apply(cursor)

    def drop_key(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Take the primary key off a table that is to be filled: an index that is made at once costs less than one kept up."""
        table = find_table(cursor, self._names)
        for key in table.keys if table else ():
            if key.constraint is not None:
                drop = sql.SQL("alter table {} drop constraint {}")
                cursor.execute(drop.format(self.identifier, sql.Identifier(key.constraint)))

    def add_key(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Put it back."""
        cursor.execute(sql.SQL("alter table {} add primary key ({})").format(self.identifier, listed(self._form.key)))

    def key_matches(self, row: str, key: sql.Composable) -> sql.Composed:
        """Return the condition that the table's row aliased `row` is of the object whose key text is `key`.

        A history has several of them: see `live`.
        """
        return self._names.key_matches(row, key)

    def live(self, row: str) -> sql.Composable:
        """Return the condition that the table's row aliased `row` is what an object is now: of each there is one at most."""
        return self._form.live(row)

    def latest(self, row: str) -> sql.Composable:
        """Return the condition that the table's row aliased `row` is no version that was left behind, but may be deleted."""
        return self._form.overwritten(row)

    def overwritten(self, row: str, key: sql.Composable) -> sql.Composed:
        """Return the condition that a write or deletion of the object with the key text `key` touches the row aliased `row`."""
        return sql.SQL("{} and {}").format(self._names.key_matches(row, key), self._form.overwritten(row))

    def write(self, cursor: psycopg.Cursor[DictRow], incoming: str, at: datetime) -> None:
        """Write the rows of the temporary table `incoming`, whose columns are text, as of the instant of their publication."""
        for statement in self._form.writes(incoming):
            cursor.execute(statement, {"at": at})
        if not self.own:
            self._unmark(cursor, incoming)

    def delete(self, cursor: psycopg.Cursor[DictRow], approved: str, at: datetime) -> None:
        """Take out the objects that the temporary table `approved` calls deleted, as of the instant of their publication."""
        cursor.execute(self._form.deletes(approved), {"at": at})

    def check_deferred(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Check now what others have deferred to the commit: constraints of the table, and those that refer to it."""
        facts = {"schema": self.schema, "table": self.name}
        found = [sql.Identifier(row["schema"], row["name"]) for row in cursor.execute(_SQL["deferrable"], facts)]
        if found:
            cursor.execute(sql.SQL("set constraints {} immediate").format(sql.SQL(", ").join(found)))

    def _unmark(self, cursor: psycopg.Cursor[DictRow], incoming: str) -> None:
        """Let nothing that is written stay marked as deleted, where deletions once were soft and are no more."""
        table = find_table(cursor, self._names)
        if table is not None and DELETED_AT in table.columns:
            cursor.execute(
                sql.SQL("update {} t set {mark} = null from {} i where t.{mark} is not null and {}").format(
                    self.identifier,
                    sql.Identifier(incoming),
                    self.key_matches("t", sql.SQL("i._key")),
                    mark=sql.Identifier(DELETED_AT),
                )
            )
