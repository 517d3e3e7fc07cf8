"""A table's name in; what Postgres knows of it out."""

from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.targets.names import TableNames

_SQL: Final = Queries(__package__, "table.sql")
_TABLES: Final = frozenset({"r", "p"})
"""Ordinary and partitioned ones."""


@dataclass(frozen=True)
class FoundColumn:
    """A column that is there."""

    name: str
    type: str
    takes_null: bool
    fills_itself: bool
    """Whether an insert may leave it out although it takes no null."""
    takes_nothing: bool
    """Whether only Postgres may write it."""
    is_lenient: bool
    """Whether different texts in it may be equal, as in a collation that ignores case."""
    comment: str | None
    dependents: list[str]
    """What uses it in a way that forbids to change its type."""


@dataclass(frozen=True)
class FoundKey:
    """A unique key that is there."""

    columns: list[str]
    condition: str | None
    index: str
    constraint: str | None


@dataclass(frozen=True)
class FoundPlace:
    """Where the table is, or should be."""

    role: str
    """Whom we are connected as."""
    has_schema: bool
    may_use: bool
    may_create: bool


@dataclass(frozen=True)
class FoundTable:
    """A table that is there."""

    is_table: bool
    """Whether it is none of the other things that go by a table's name, such as views."""
    is_partition: bool
    is_ours: bool
    """Whether we may alter it."""
    comment: str | None
    lacking: list[str]
    """What we may not do with its rows, of all that may be needed."""
    columns: dict[str, FoundColumn]
    keys: list[FoundKey]


def find_place(cursor: psycopg.Cursor[DictRow], names: TableNames) -> FoundPlace:
    """Return what is known of the table's schema."""
    row = cursor.execute(_SQL["place"], {"schema": names.schema}).fetchone()
    assert row is not None  # noqa: S101 - it is one row, whatever there is
    return FoundPlace(**row)


def find_table(cursor: psycopg.Cursor[DictRow], names: TableNames) -> FoundTable | None:
    """Return what is known of the table; None if there is none."""
    row = cursor.execute(_SQL["relation"], {"schema": names.schema, "table": names.name}).fetchone()
    if row is None:
        return None
    facts: dict[str, Any] = {"id": row["id"]}
    columns = [FoundColumn(**column) for column in cursor.execute(_SQL["columns"], facts)]
    keys = [FoundKey(**key) for key in cursor.execute(_SQL["keys"], facts)]
    return FoundTable(
        is_table=row["kind"] in _TABLES,
        is_partition=row["is_partition"],
        is_ours=row["is_ours"],
        comment=row["comment"],
        lacking=row["lacking"],
        columns={column.name: column for column in columns},
        keys=keys,
    )
