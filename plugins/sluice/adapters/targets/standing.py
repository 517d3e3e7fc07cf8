"""The published table as it stands, whatever the spec says by now: what of it can be read goes out as SQL."""

from typing import Any

import psycopg
from psycopg import sql

from sluice.adapters.targets.names import type_sql
from sluice.adapters.targets.table import TargetTable
from sluice.model.fields import FieldSpec


class Standing:
    """The live rows of a table, always aliased `t`; it may lack columns, or not be there at all."""

    def __init__(self, cursor: psycopg.Cursor[Any], table: TargetTable) -> None:
        self._table = table
        self._columns = table.columns(cursor)
        self.identifier = table.identifier
        self.fields = table.fields
        self.is_there = bool(self._columns)
        self.live: sql.Composable = table.live("t") if table.own <= self._columns else sql.SQL("true")
        """The condition that a row is live; before the table has the columns that tell, all are."""

    def value(self, field: FieldSpec) -> sql.Composed:
        """Return a field as a value of its declared type; null where the table has no such column yet."""
        if field.name not in self._columns:
            return sql.SQL("null::{}").format(type_sql(field.type.sql))
        return sql.SQL("t.{}::{}").format(sql.Identifier(field.name), type_sql(field.type.sql))

    def beside(self, key: sql.Composable) -> sql.Composable:
        """Return the join that lays the live row of the object with the key text `key` beside what is there."""
        if not self.is_there:
            return sql.SQL("")
        return sql.SQL("left join {} t on {} and {}").format(self._table.identifier, self.matches(key), self.live)

    def matches(self, key: sql.Composable) -> sql.Composed:
        """Return the condition that a row is of the object with the key text `key`."""
        return self._table.key_matches("t", key)

    def sampled(self, percent: float) -> sql.Composed:
        """Return the table, of whose pages some are drawn; as long as it does not change, always the same ones."""
        return sql.SQL("{} t tablesample system ({}) repeatable (1)").format(self._table.identifier, percent)
