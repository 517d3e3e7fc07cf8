"""A spec and a table in; how the two differ, what a publication may do about it, and what a person has to, out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.targets.catalog import FoundColumn, FoundTable, find_place, find_table
from sluice.adapters.targets.declared import (
    DeclaredColumn,
    column_comment,
    creation,
    declared_columns,
    table_comment,
    unique_among_live,
)
from sluice.adapters.targets.forms import Form
from sluice.adapters.targets.names import TableNames, listed, type_sql
from sluice.adapters.targets.refusals import reason_of
from sluice.adapters.targets.widening import is_widening
from sluice.errors import TargetMismatch
from sluice.model.rows import DELETED_AT, VALID_FROM, VALID_TO
from sluice.model.spec import SyncSpec

_SQL: Final = Queries(__package__, "table.sql")
_PATIENCE: Final = "10s"
_ENCODING: Final = "UTF8"
"""The only one that has a place for every text."""
_CATALOG_NAMES: Final = {"timestamptz": "timestamp with time zone", "timestamptz[]": "timestamp with time zone[]"}


@dataclass(frozen=True)
class Difference:
    """One thing in which the table is not as declared."""

    what: str
    mend: sql.Composed | None = None
    is_ours: bool = False
    """Whether a publication may mend it; else a person has to."""

    @property
    def statement(self) -> str:
        """The mend, as a person would type it."""
        return self.mend.as_string() if self.mend else ""

    def __str__(self) -> str:
        return f"{self.what}: {self.statement}" if self.mend else self.what


class Evolution:
    """Brings the table of one sync to where its spec wants it, as far as the spec lets it and nothing is lost."""

    def __init__(self, spec: SyncSpec, names: TableNames, form: Form) -> None:
        self._spec = spec
        self._names = names
        self._form = form
        self._columns = declared_columns(spec, form)
        self._adds = spec.target.evolution in ("add", "widen")
        self._widens = spec.target.evolution == "widen"

    def planned(self, cursor: psycopg.Cursor[DictRow]) -> list[Difference]:
        """Return what the next publication will do to the table, in order.

        Raises `TargetMismatch`, naming all that it may not do, with the statements that a person would have to run.
        """
        differences = list(self._differences(cursor))
        if refused := [str(difference) for difference in differences if not difference.is_ours]:
            table = f"{self._names.schema}.{self._names.name}"
            raise TargetMismatch(f"table {table} does not fit the spec of {self._spec.sync}:\n" + "\n".join(refused))
        return differences

    def told(self, cursor: psycopg.Cursor[DictRow]) -> tuple[str, ...]:
        """Return the statements that are planned, each with its reason behind it."""
        return tuple(f"{difference.statement} -- {difference.what}" for difference in self.planned(cursor))

    def apply(self, cursor: psycopg.Cursor[DictRow]) -> None:
        """Do what is planned; raises `TargetMismatch` as `planned` does, and for what only Postgres could tell."""
        planned = self.planned(cursor)
        if not planned:
            return
        cursor.execute(_SQL["be_impatient"], {"patience": _PATIENCE})
        for difference in planned:
            try:
                if difference.mend is not None:
                    cursor.execute(difference.mend)
            except (psycopg.ProgrammingError, psycopg.NotSupportedError, psycopg.IntegrityError) as exc:
                raise TargetMismatch(f"{difference}: Postgres refuses this: {reason_of(exc)}") from exc
        cursor.execute(_SQL["be_impatient"], {"patience": "0"})

    def _differences(self, cursor: psycopg.Cursor[DictRow]) -> Iterator[Difference]:
        encoding = (cursor.execute(_SQL["encoding"]).fetchone() or {})["server_encoding"]
        if encoding != _ENCODING:
            yield Difference(f"its database is encoded as {encoding}, which has no place for most letters: that has to be UTF8")
            return
        table = find_table(cursor, self._names)
        if table is None:
            yield from self._creation(cursor)
        elif not table.is_table:
            yield Difference(f"{self._names.name} is no table, but a view or the like")
        elif VALID_FROM in table.columns and not self._form.key_of_live:
            yield Difference(f"it is a history, with {VALID_FROM}: say `form: history`, or name another table")
        else:
            lacking = list(self._privileges(cursor, table))
            yield from lacking
            if not lacking:
                yield from self._table_differences(cursor, table)

    def _table_differences(self, cursor: psycopg.Cursor[DictRow], table: FoundTable) -> Iterator[Difference]:
        for difference in (*self._column_differences(cursor, table), *self._key_differences(table)):
            yield _by_the_owner(difference, table)
        if table.is_ours and self._adds:
            yield from self._comments(table)

    def _creation(self, cursor: psycopg.Cursor[DictRow]) -> Iterator[Difference]:
        if published := self._published(cursor):
            # A new table would get what has changed since, and never the rest.
            forget = sql.SQL("delete from sluice_ledger.object where sync = {} and state = 'live'").format(
                sql.Literal(self._spec.sync)
            )
            what = f"it is missing, and held {published:,} objects: give it its name back, or forget them before a full run"
            yield Difference(what, forget)
            return
        place = find_place(cursor, self._names)
        what = "it is missing" if place.may_create else f"it is missing, and {place.role} may not make it"
        for statement in creation(self._spec, self._names, self._form, with_schema=not place.has_schema):
            yield Difference(what, statement, is_ours=place.may_create)

    def _privileges(self, cursor: psycopg.Cursor[DictRow], table: FoundTable) -> Iterator[Difference]:
        place = find_place(cursor, self._names)
        role = sql.Identifier(place.role)
        if not place.may_use:
            grant = sql.SQL("grant usage on schema {} to {}").format(sql.Identifier(self._names.schema), role)
            yield Difference(f"{place.role} may not use its schema", grant)
        if lacking := [privilege for privilege in table.lacking if privilege in self._form.privileges]:
            privileges = sql.SQL(", ").join(sql.SQL(privilege) for privilege in lacking)
            grant = sql.SQL("grant {} on {} to {}").format(privileges, self._names.identifier, role)
            yield Difference(f"{place.role} lacks {' and '.join(lacking)} on it", grant)

    def _column_differences(self, cursor: psycopg.Cursor[DictRow], table: FoundTable) -> Iterator[Difference]:
        for column in self._columns:
            found = table.columns.get(column.name)
            if found is None:
                yield self._missing(cursor, column)
            else:
                yield from self._misfits(column, found)
        if self._form.key_of_live and VALID_FROM not in table.columns and DELETED_AT in table.columns:
            end = sql.SQL("update {} set {} = {mark} where {mark} is not null").format(
                self._names.identifier, sql.Identifier(VALID_TO), mark=sql.Identifier(DELETED_AT)
            )
            yield Difference(f"column {DELETED_AT} says which objects are gone, whose rows have to end", end)
        for name in sorted(table.columns.keys() - {column.name for column in self._columns}):
            if not table.columns[name].takes_null and not table.columns[name].fills_itself:
                yield self._alteration(
                    f"column {name} is not in the spec and takes no null",
                    "alter table {table} alter column {column} drop not null",
                    name,
                )

    def _missing(self, cursor: psycopg.Cursor[DictRow], column: DeclaredColumn) -> Difference:
        what = f"column {column.name} is missing"
        addition = sql.SQL("alter table {} add column {}").format(self._names.identifier, column.definition)
        if column.name == VALID_FROM:
            addition += sql.SQL(" not null default 'epoch'")
        elif not column.takes_null:
            if not self._has_rows(cursor):
                addition += sql.SQL(" not null")
            else:
                what += "; it will take nulls, although it is required, since the rows that are there have none"
        return Difference(what, addition, is_ours=self._adds and not column.is_key and column.name != VALID_TO)

    def _misfits(self, column: DeclaredColumn, found: FoundColumn) -> Iterator[Difference]:
        kind = column.type.sql
        if found.takes_nothing:
            yield Difference(f"column {column.name} is written by Postgres itself: name the field otherwise")
        if column.is_key and found.is_lenient:
            what = f"column {column.name} takes different texts for one, by its collation, and would mix up objects"
            statement: LiteralString = 'alter table {table} alter column {column} type {type} collate "default"'
            yield self._alteration(what, statement, column.name, kind)
        if found.type != _CATALOG_NAMES.get(kind, kind):
            is_wider = is_widening(found.type, column.type, is_key=column.is_key)
            what = f"column {column.name} is {found.type}, not {kind}"
            statement = "alter table {table} alter column {column} type {type}"
            if not is_wider:
                statement += " using {column}::{type}"
            elif found.dependents:
                what += f", and what depends on it has to be dropped before and made anew after ({', '.join(found.dependents)})"
            is_ours = self._widens and is_wider and not found.dependents
            yield replace(self._alteration(what, statement, column.name, kind), is_ours=is_ours)
        if column.takes_null and not found.takes_null:
            yield replace(
                self._alteration(
                    f"column {column.name} takes no null, and is not required",
                    "alter table {table} alter column {column} drop not null",
                    column.name,
                ),
                is_ours=self._widens,
            )

    def _key_differences(self, table: FoundTable) -> Iterator[Difference]:
        declared = {column.name for column in self._columns}
        full = [key for key in table.keys if key.condition is None]
        if self._form.key_of_live:
            for key in full:
                if VALID_FROM not in key.columns and declared.issuperset(key.columns):
                    statement = "drop index {index}" if key.constraint is None else "alter table {table} drop constraint {name}"
                    what = f"a unique key on ({', '.join(key.columns)}) lets no second version in"
                    yield self._alteration(what, statement, key.constraint or key.index)
        if set(self._form.key) not in [set(key.columns) for key in full]:
            what = f"no unique key on ({', '.join(self._form.key)})"
            yield self._alteration(what, "alter table {table} add unique ({key})")
        if self._form.key_of_live and not any(
            set(key.columns) == set(self._form.key_of_live) and key.condition == f"({VALID_TO} IS NULL)" for key in table.keys
        ):
            what = f"no unique key on ({', '.join(self._form.key_of_live)}) among the rows that are valid"
            yield Difference(what, unique_among_live(self._names, self._form))

    def _comments(self, table: FoundTable) -> Iterator[Difference]:
        if self._spec.description and self._spec.description != table.comment:
            yield Difference("its description changed", table_comment(self._names, self._spec.description), is_ours=True)
        for column in self._columns:
            found = table.columns.get(column.name)
            if column.comment and (found is None or found.comment != column.comment):
                what = f"the description of column {column.name} changed"
                yield Difference(what, column_comment(self._names, column), is_ours=True)

    def _alteration(self, what: str, statement: LiteralString, name: str = "", kind: str = "") -> Difference:
        mend = sql.SQL(statement).format(
            table=self._names.identifier,
            column=sql.Identifier(name),
            name=sql.Identifier(name),
            index=sql.Identifier(self._names.schema, name),
            type=type_sql(kind),
            key=listed(self._form.key),
        )
        return Difference(what, mend)

    def _published(self, cursor: psycopg.Cursor[DictRow]) -> int:
        row = cursor.execute(_SQL["published"], {"sync": self._spec.sync}).fetchone()
        return int(row["objects"]) if row else 0

    def _has_rows(self, cursor: psycopg.Cursor[DictRow]) -> bool:
        row = cursor.execute(sql.SQL("select exists (select from {}) as has_rows").format(self._names.identifier)).fetchone()
        return bool(row and row["has_rows"])


def _by_the_owner(difference: Difference, table: FoundTable) -> Difference:
    """Leave to a person what is beyond us."""
    if not difference.is_ours or (table.is_ours and not table.is_partition):
        return difference
    reason = "only its owner may alter it" if not table.is_ours else "it is a partition: alter the table that it is one of"
    return replace(difference, what=f"{difference.what}, and {reason}", is_ours=False)
