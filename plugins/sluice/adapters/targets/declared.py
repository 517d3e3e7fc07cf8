"""A spec in; the columns that its table should have, and the statements that make it, out."""

from collections.abc import Iterator
from dataclasses import dataclass

from psycopg import sql

from sluice.adapters.targets.forms import Form
from sluice.adapters.targets.names import TableNames, listed, type_sql
from sluice.model.fields import FieldType, TypeName
from sluice.model.spec import SyncSpec


@dataclass(frozen=True)
class DeclaredColumn:
    """A column that should be there."""

    name: str
    type: FieldType
    takes_null: bool
    comment: str
    is_key: bool

    @property
    def definition(self) -> sql.Composed:
        """Name and type, as they stand in a statement."""
        return sql.SQL("{} {}").format(sql.Identifier(self.name), type_sql(self.type.sql))


def declared_columns(spec: SyncSpec, form: Form) -> list[DeclaredColumn]:
    """Return the columns of the fields, and then those that the form needs for itself."""
    fields = [
        DeclaredColumn(
            field.name,
            field.type,
            takes_null=not field.required and field.name not in spec.object.key,
            comment=field.description,
            is_key=field.name in spec.object.key,
        )
        for field in spec.fields
    ]
    return fields + [
        DeclaredColumn(
            own.name,
            FieldType(name=TypeName.TIMESTAMPTZ),
            takes_null=not own.is_required,
            comment=own.comment,
            is_key=own.is_required,
        )
        for own in form.own
    ]


def creation(spec: SyncSpec, names: TableNames, form: Form, *, with_schema: bool) -> Iterator[sql.Composed]:
    """Yield the statements that make a table where there is none, with its comments."""
    columns = declared_columns(spec, form)
    parts = [
        *(column.definition + sql.SQL(" null" if column.takes_null else " not null") for column in columns),
        sql.SQL("primary key ({})").format(listed(form.key)),
        *form.checks,
    ]
    if with_schema:
        yield sql.SQL("create schema {}").format(sql.Identifier(names.schema))
    yield sql.SQL("create table {} ({})").format(names.identifier, sql.SQL(", ").join(parts))
    if form.key_of_live:
        yield unique_among_live(names, form)
    yield table_comment(names, spec.description or f"Kept in step with its supplier by Sluice, sync {spec.sync}.")
    for column in columns:
        if column.comment:
            yield column_comment(names, column)


def unique_among_live(names: TableNames, form: Form) -> sql.Composed:
    """Return the statement that lets each object have one live row at most."""
    return sql.SQL("create unique index on {table} ({columns}) where {live}").format(
        table=names.identifier, columns=listed(form.key_of_live), live=form.live(names.name)
    )


def table_comment(names: TableNames, comment: str) -> sql.Composed:
    """Return the statement that says what the table is."""
    return sql.SQL("comment on table {} is {}").format(names.identifier, sql.Literal(comment))


def column_comment(names: TableNames, column: DeclaredColumn) -> sql.Composed:
    """Return the statement that says what a column is."""
    return sql.SQL("comment on column {}.{} is {}").format(
        names.identifier, sql.Identifier(column.name), sql.Literal(column.comment)
    )
