"""The published table as the spec declares it: its DDL, its differences from what is there, and its rows by object key."""

from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.targets.forms import form_of
from sluice.adapters.targets.names import TableNames, listed, type_sql
from sluice.errors import TargetMismatch
from sluice.model.spec import SyncSpec

_SQL: Final = Queries(__package__, "table.sql")

_CATALOG_NAMES: Final = {"timestamptz": "timestamp with time zone"}


class TargetTable:
    """Names, types and keys of one published table."""

    def __init__(self, spec: SyncSpec) -> None:
        self._spec = spec
        self._names = TableNames(spec)
        self._form = form_of(spec, self._names)
        self.schema, self.name = self._names.schema, self._names.name
        self.identifier = self._names.identifier
        self.fields = self._names.fields
        self.key_fields = self._names.key_fields

    def lock(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Wait for the lock of this table, and hold it until the transaction ends."""
        cursor.execute(_SQL["lock"], {"table": f"{self.schema}.{self.name}"})

    def exists(self, cursor: psycopg.Cursor[DictRow]) -> bool:
        """Whether the table is there."""
        return bool(self._columns(cursor))

    def create(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Create the table, commented, if it is not there."""
        if self._columns(cursor):
            return
        columns = [
            sql.SQL("{} {} {}").format(
                sql.Identifier(name), type_sql(kind), sql.SQL("not null" if self._is_required(name) else "null")
            )
            for name, kind in self._declared().items()
        ]
        key = sql.SQL("primary key ({})").format(listed(self._form.key))
        cursor.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(self.schema)))
        cursor.execute(
            sql.SQL("create table if not exists {} ({})").format(self.identifier, sql.SQL(", ").join([*columns, key]))
        )
        about = self._spec.description or f"Kept in step with its supplier by Sluice, sync {self._spec.sync}."
        cursor.execute(sql.SQL("comment on table {} is {}").format(self.identifier, sql.Literal(about)))
        for field in self.fields:
            self._comment(cursor, field.name, field.description)
        for column in self._form.own:
            self._comment(cursor, column.name, column.comment)

    def check(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Raise `TargetMismatch`, naming every difference with the statement that mends it, if the table does not fit."""
        present = self._columns(cursor)
        if not present:
            return
        table = f"{self.schema}.{self.name}"
        problems = [
            f'column {name} is missing: alter table {table} add column "{name}" {kind}'
            if name not in present
            else f'column {name} is {present[name]["type"]}, not {kind}: alter table {table} alter column "{name}" type {kind}'
            for name, kind in self._declared().items()
            if name not in present or present[name]["type"] != _CATALOG_NAMES.get(kind, kind)
        ]
        problems += [
            f'column {name} is not in the spec and takes no null: alter table {table} alter column "{name}" drop not null'
            for name, column in present.items()
            if name not in self._declared() and column["needs_value"]
        ]
        key = sorted(field.name for field in self.key_fields)
        uniques = cursor.execute(_SQL["unique_keys"], {"schema": self.schema, "table": self.name}).fetchall()
        if key not in [sorted(row["columns"]) for row in uniques]:
            columns = ", ".join(f'"{name}"' for name in key)
            problems.append(f"no unique key on ({columns}): alter table {table} add unique ({columns})")
        if problems:
            raise TargetMismatch(f"table {table} does not fit the spec of {self._spec.sync}:\n" + "\n".join(problems))

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

    def delete(self, cursor: psycopg.Cursor[DictRow], approved: str, at: datetime) -> None:
        """Take out the objects that the temporary table `approved` calls deleted, as of the instant of their publication."""
        cursor.execute(self._form.deletes(approved), {"at": at})

    def _declared(self) -> dict[str, str]:
        columns = {field.name: field.type.sql for field in self.fields}
        return {**columns, **{column.name: column.type for column in self._form.own}}

    def _is_required(self, name: str) -> bool:
        return any(field.name == name and (field.required or field in self.key_fields) for field in self.fields)

    def _columns(self, cursor: psycopg.Cursor[DictRow]) -> dict[str, dict[str, Any]]:
        rows = cursor.execute(_SQL["columns"], {"schema": self.schema, "table": self.name})
        return {row["name"]: row for row in rows}

    def _comment(self, cursor: psycopg.Cursor[DictRow], column: str, comment: str) -> None:
        if comment:
            cursor.execute(
                sql.SQL("comment on column {}.{} is {}").format(self.identifier, sql.Identifier(column), sql.Literal(comment))
            )
