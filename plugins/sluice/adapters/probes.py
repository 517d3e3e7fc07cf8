"""A connection to Postgres in; what an examination wants to see there out: the port `DatabaseProbe`."""

from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg import sql

from sluice.adapters.postgres import conninfo, translated
from sluice.adapters.schemas import UNAVAILABLE, VERSION_TABLE, Schema
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo

_THERE: Final = "select to_regclass(%s) is not null"


class PostgresProbe:
    """Looks once and lets go: a connection for each question."""

    def __init__(self, info: ConnectionInfo, schema: Schema) -> None:
        self._info = info
        self._schema: Schema = schema

    def now(self) -> datetime:
        """Return the instant by the server's clock."""
        now: datetime = self._ask(sql.SQL("select clock_timestamp()"))
        return now

    def revision(self) -> tuple[str | None, str]:
        """Return the revision the schema is at, None if there is none, and the one this release needs."""
        from sluice.adapters.migrate import newest_revision

        present = None
        if self._ask(_THERE, f"{self._schema}.{VERSION_TABLE}"):
            table = sql.Identifier(self._schema, VERSION_TABLE)
            present = self._ask(sql.SQL("select max(version_num) from {}").format(table))
        return present, newest_revision(self._schema)

    def _ask(self, query: Any, *parameters: str) -> Any:
        with translated(self._info, UNAVAILABLE[self._schema]), psycopg.connect(conninfo(self._info)) as connection:
            row = connection.execute(query, parameters).fetchone()
        return row[0] if row else None


def time_of_warehouse(info: ConnectionInfo) -> datetime:
    """Return the time by a database that is a source of rows, having got in; raise what the source would."""
    from sluice.adapters.sources.sql.snapshot import Snapshot

    with Snapshot(info, StagePolicy()) as snapshot:
        return snapshot.begun_at
