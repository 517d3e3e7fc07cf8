"""The published table as the spec declares it: its DDL, its differences from what is there, and its rows by object key."""

from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.errors import TargetMismatch
from sluice.model.fields import FieldSpec
from sluice.model.rows import DELETED_AT
from sluice.model.spec import SyncSpec

_SQL: Final = Queries(__package__, "table.sql")

_CATALOG_NAMES: Final = {"timestamptz": "timestamp with time zone"}


class TargetTable:
    """Names, types and keys of one published table."""

    def __init__(self, spec: SyncSpec) -> None:
        self._spec = spec
        self.schema, self.name = spec.target.table.split(".")
        self.identifier = sql.Identifier(self.schema, self.name)
        self.fields = spec.fields
        self.key_fields = tuple(spec.field(name) for name in spec.object.key)
        self.soft_deletes = spec.target.deletes == "soft"

    def lock(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Wait for the lock of this table, and hold it until the transaction ends."""
        cursor.execute(_SQL["lock"], {"table": f"{self.schema}.{self.name}"})

    def exists(self, cursor: psycopg.Cursor[DictRow]) -> bool:
        """Whether the table is there."""
        return bool(self._columns(cursor))

    def live(self, row: str) -> sql.Composable:
        """Return the condition that the table's row aliased `row` is not deleted."""
        if not self.soft_deletes:
            return sql.SQL("true")
        return sql.SQL("{}.{} is null").format(sql.Identifier(row), sql.Identifier(DELETED_AT))

    def create(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Create the table, commented, if it is not there."""
        if self._columns(cursor):
            return
        columns = [
            sql.SQL("{} {} {}").format(
                sql.Identifier(name), _type(kind), sql.SQL("not null" if self._is_required(name) else "null")
            )
            for name, kind in self._declared().items()
        ]
        key = sql.SQL("primary key ({})").format(_names(self.key_fields))
        cursor.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(self.schema)))
        cursor.execute(
            sql.SQL("create table if not exists {} ({})").format(self.identifier, sql.SQL(", ").join([*columns, key]))
        )
        about = self._spec.description or f"Kept in step with its supplier by Sluice, sync {self._spec.sync}."
        cursor.execute(sql.SQL("comment on table {} is {}").format(self.identifier, sql.Literal(about)))
        for field in self.fields:
            self._comment(cursor, field.name, field.description)
        if self.soft_deletes:
            self._comment(cursor, DELETED_AT, "When the supplier was found to have dropped it; null while it is alive.")

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
        """Return the condition that the table's row aliased `row` is the object whose key text is `key`."""
        if len(self.key_fields) == 1:
            parts: Sequence[sql.Composable] = [key]
        else:
            parts = [sql.SQL("({}::jsonb ->> {})").format(key, sql.Literal(place)) for place in range(len(self.key_fields))]
        return sql.SQL(" and ").join(
            sql.SQL("{}.{} = {}::{}").format(sql.Identifier(row), sql.Identifier(field.name), part, _type(field.type.sql))
            for field, part in zip(self.key_fields, parts, strict=True)
        )

    def upsert(self, incoming: str) -> sql.Composed:
        """Return the statement that writes the rows of the temporary table `incoming`, whose columns are text."""
        columns = [field.name for field in self.fields]
        values: list[sql.Composable] = [
            sql.SQL("{}::{}").format(sql.Identifier(field.name), _type(field.type.sql)) for field in self.fields
        ]
        if self.soft_deletes:
            columns.append(DELETED_AT)
            values.append(sql.SQL("null"))
        keys = {field.name for field in self.key_fields}
        changes = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(column)) for column in columns if column not in keys]
        action = sql.SQL("do update set {}").format(sql.SQL(", ").join(changes)) if changes else sql.SQL("do nothing")
        return sql.SQL("insert into {} ({}) select {} from {} order by _key on conflict ({}) {}").format(
            self.identifier,
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join(values),
            sql.Identifier(incoming),
            _names(self.key_fields),
            action,
        )

    def delete(self, approved: str) -> sql.Composed:
        """Return the statement that takes the deleted objects of the temporary table `approved` out."""
        key = sql.SQL("a.key")
        if self.soft_deletes:
            return sql.SQL("update {} t set {} = now() from {} a where a.outcome = 'deleted' and {}").format(
                self.identifier, sql.Identifier(DELETED_AT), sql.Identifier(approved), self.key_matches("t", key)
            )
        return sql.SQL("delete from {} t using {} a where a.outcome = 'deleted' and {}").format(
            self.identifier, sql.Identifier(approved), self.key_matches("t", key)
        )

    def _declared(self) -> dict[str, str]:
        columns = {field.name: field.type.sql for field in self.fields}
        return {**columns, DELETED_AT: "timestamptz"} if self.soft_deletes else columns

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


def _type(kind: str) -> sql.SQL:
    """Return a type's name as SQL; it comes from the closed set of `FieldType`, never from outside."""
    return sql.SQL(kind)


def _names(fields: Sequence[FieldSpec]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(field.name) for field in fields)
