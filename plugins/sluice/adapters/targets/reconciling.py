"""A table and its ledger in; the objects that the table should hold, and has no row of, out."""

from collections.abc import Iterator
from typing import Final

import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.targets.table import TargetTable
from sluice.model.base import ObjectKey

_SQL: Final = Queries(__package__, "reconciling.sql")
_KEYS_AT_A_TIME: Final = 5_000


def missing(connection: psycopg.Connection[DictRow], sync: str, table: TargetTable) -> Iterator[ObjectKey]:
    """Yield the objects that are live by the ledger and have no row, in key order, as they are asked for."""
    row_is_there = sql.SQL("{} and {}").format(table.key_matches("t", sql.SQL("o.key")), table.latest("t"))
    query = sql.SQL(_SQL["missing"]).format(table.identifier, row_is_there)
    with connection.cursor(name="missing") as rows:
        rows.itersize = _KEYS_AT_A_TIME
        for row in rows.execute(query, {"sync": sync}):
            yield ObjectKey(row["key"])
