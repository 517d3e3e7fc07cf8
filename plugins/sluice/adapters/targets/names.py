"""A spec in; the names, types and keys of its table out, as SQL."""

from collections.abc import Iterable, Sequence

from psycopg import sql

from sluice.model.fields import FieldType, TypeName
from sluice.model.spec import SyncSpec


class TableNames:
    """What one published table and its declared columns are called."""

    def __init__(self, spec: SyncSpec) -> None:
        self.schema, self.name = spec.target.table.split(".")
        self.identifier = sql.Identifier(self.schema, self.name)
        self.fields = spec.fields
        self.key_fields = tuple(spec.field(name) for name in spec.object.key)
        self.key = spec.object.key

    def values(self) -> list[sql.Composable]:
        """Return what casts the fields out of columns of the same names that are text."""
        return [sql.SQL("{}::{}").format(sql.Identifier(field.name), type_sql(field.type.sql)) for field in self.fields]

    def key_matches(self, row: str, key: sql.Composable) -> sql.Composed:
        """Return the condition that a row aliased `row` is of the object whose key text is `key`."""
        if len(self.key_fields) == 1:
            parts: Sequence[sql.Composable] = [key]
        else:
            parts = [sql.SQL("({}::jsonb ->> {})").format(key, sql.Literal(place)) for place in range(len(self.key_fields))]
        return sql.SQL(" and ").join(
            sql.SQL("{}.{} = {}::{}").format(sql.Identifier(row), sql.Identifier(field.name), part, _compared(field.type))
            for field, part in zip(self.key_fields, parts, strict=True)
        )


def type_sql(kind: str) -> sql.SQL:
    """Return a type's name as SQL; it comes from the closed set of `FieldType`, never from outside."""
    return sql.SQL(kind)


def _compared(kind: FieldType) -> sql.SQL:
    """Return the type of a key as it is compared: texts as the table's own index has them, not as the ledger does."""
    return sql.SQL('text collate "default"') if kind.name is TypeName.TEXT else type_sql(kind.sql)


def listed(names: Iterable[str]) -> sql.Composed:
    """Return names with commas between them."""
    return sql.SQL(", ").join(map(sql.Identifier, names))
