"""A table's name in; what its database knows of it out: its columns, and whether a key tells its rows apart."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sluice.adapters.queries import Queries
from sluice.adapters.sources.sql.fragments import Fragment, quoted
from sluice.adapters.sources.sql.snapshot import Snapshot
from sluice.adapters.spec_problems import suggest
from sluice.errors import SpecInvalid

_SQL: Final = Queries(__package__, "tables.sql")
_WITH_INDEXES: Final = frozenset({"r", "p"})
"""Ordinary and partitioned tables. Of views and foreign tables nobody can tell what is unique in them."""


@dataclass(frozen=True)
class Column:
    """A column that is there."""

    name: str
    type: str
    """As SQL spells it, without a length."""
    category: str
    """What sort of type it is, by Postgres' own letters: `S` for texts, `N` for numbers, `D` for dates and instants."""
    base: str
    """The type that a domain is made of; else the type itself."""
    may_be_null: bool


@dataclass(frozen=True)
class FoundTable:
    """A table that is there."""

    relation: Fragment
    shown: str
    columns: Mapping[str, Column]

    def column(self, place: str, name: str) -> Column:
        """Return a column; raise `SpecInvalid`, naming the place in the spec, if there is none."""
        if name not in self.columns:
            raise SpecInvalid([f"{place}: {self.shown} has no column {name!r}; {suggest(name, self.columns, 'its columns')}"])
        return self.columns[name]


def find_table(snapshot: Snapshot, table: str, key: Iterable[str]) -> FoundTable:
    """Return the table; raise `SpecInvalid` if there is none, or if the key does not tell its rows apart."""
    schema, _, name = table.rpartition(".")
    relations = snapshot.all(_SQL["relation"], {"table": name, "schema": schema or None})
    if not relations:
        where = f"no schema {schema} with a table" if schema else "no table within sight that is called"
        raise SpecInvalid([f"source.table: there is {where} {name}, in just this spelling, or the connection may not see it"])
    number, found_schema, found_name, kind = relations[0]
    columns = {row[0]: Column(*row) for row in snapshot.all(_SQL["columns"], {"id": number})}
    found = FoundTable(Fragment(quoted(found_schema, found_name)), f"{found_schema}.{found_name}", columns)
    named = [found.column("source.key", part).name for part in key]
    if kind in _WITH_INDEXES:
        _require_unique(found, named, [columns for (columns,) in snapshot.all(_SQL["unique_keys"], {"id": number})])
    return found


def _require_unique(table: FoundTable, key: list[str], unique: list[list[str]]) -> None:
    if any(set(columns) <= set(key) for columns in unique):
        return
    known = "; ".join(", ".join(columns) for columns in unique)
    mend = f"name the columns of one that is: {known}" if known else "the table has none: read it by a query with such a key"
    problem = (
        f"source.key: no unique index of {table.shown} is made of {', '.join(key)} or of some of them, so that rows with the "
        f"same key could be lost between two pages; {mend}"
    )
    raise SpecInvalid([problem])
