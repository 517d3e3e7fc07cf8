"""What the published table really holds, whoever wrote it: keys in; rows as Postgres spells them, and their hashes, out."""

from collections.abc import Iterator, Sequence
from typing import Final

import psycopg
from psycopg import sql
from psycopg.rows import DictRow, tuple_row

from sluice.adapters.queries import Queries
from sluice.adapters.targets.table import TargetTable
from sluice.mapping.held_rows import HeldRows
from sluice.model.base import ObjectKey
from sluice.model.spec import SyncSpec
from sluice.ports import Held

_SQL: Final = Queries(__package__, "holding.sql")
_ROWS_AT_A_TIME: Final = 5_000


def held(
    connection: psycopg.Connection[DictRow], spec: SyncSpec, table: TargetTable, keys: Sequence[ObjectKey] | None
) -> Iterator[Held]:
    """Yield the rows of these objects, or all rows, as `held_beside` does."""
    if keys is not None:
        cursor = connection.cursor()
        cursor.execute(_SQL["create_asked"])
        with cursor.copy(_SQL["copy_asked"]) as copy:
            for key in keys:
                copy.write_row((key,))
    yield from held_beside(connection, spec, table, None if keys is None else sql.Identifier("asked"))


def held_beside(
    connection: psycopg.Connection[DictRow], spec: SyncSpec, table: TargetTable, asked: sql.Identifier | None
) -> Iterator[Held]:
    """Yield the rows of the objects whose `key` stands in a table of this session, or all; of one with a history, the current.

    They are read as they are asked for, through a cursor of the server, so that a large table takes no memory here.
    """
    reader = HeldRows(spec)
    table.spell_alike(connection.cursor())
    columns = [sql.SQL("t.{}::text").format(sql.Identifier(field.name)) for field in table.fields]
    query = sql.SQL("select {}, {} from {} t").format(sql.SQL(", ").join(columns), table.live("t"), table.identifier)
    if asked is not None:
        query += sql.SQL(" join {} asked on {}").format(asked, table.key_matches("t", sql.SQL("asked.key")))
    query += sql.SQL(" where {}").format(table.latest("t"))
    names = [field.name for field in table.fields]
    with connection.cursor(name="held", row_factory=tuple_row) as rows:
        rows.itersize = _ROWS_AT_A_TIME
        for *texts, is_live in rows.execute(query):
            yield Held(reader.key(texts), reader.hash(texts), is_live, dict(zip(names, texts, strict=True)))
