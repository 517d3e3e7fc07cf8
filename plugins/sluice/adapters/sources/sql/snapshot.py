"""A connection to a supplier's database in; the rows of one statement, as they stood at one instant, out, some at a time."""

import math
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader

from sluice.adapters.postgres import conninfo, end_if_idle
from sluice.adapters.queries import Queries
from sluice.adapters.sources.sql.fragments import ROW, Fragment, joined
from sluice.adapters.sources.sql.refusals import asking, connecting
from sluice.adapters.sources.telling import told
from sluice.errors import ConnectionInvalid
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo

_SQL: Final = Queries(__package__, "session.sql")
_TYPES: Final = ("postgres", "postgresql")
_LONGEST_SHOWN: Final = 500
_DECLARE: Final = "declare sluice_rows no scroll cursor for "

Row = tuple[bytes, *tuple[str | None, ...]]
"""A row as JSON, and the texts of its key."""


class _AsItIs(Loader):
    """Leaves JSON as the server has written it."""

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


class Snapshot:
    """One transaction that reads, and sees nothing of what is committed after it has begun."""

    def __init__(self, info: ConnectionInfo, policy: StagePolicy) -> None:
        """Begin it.

        Raises `ConnectionInvalid` if the connection cannot be used, `SupplierUnavailable` if its server cannot be reached.
        """
        if info.conn_type not in _TYPES:
            raise ConnectionInvalid(
                f"connection {info.conn_id} is of type {info.conn_type or 'nothing'}: a SQL source needs one of type postgres",
                conn_id=info.conn_id,
            )
        self._info = info
        target = conninfo(info)
        with connecting(info, target):
            self._connection = psycopg.connect(
                target,
                connect_timeout=math.ceil(policy.timeouts.connect.total_seconds()),
                client_encoding="UTF8",
                prepare_threshold=None,
            )
        try:
            self.begun_at = self._begin(policy)
        except BaseException:
            self._connection.close()
            raise

    def _begin(self, policy: StagePolicy) -> datetime:
        self._connection.adapters.register_loader("json", _AsItIs)
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._connection.read_only = True
        timeout = str(math.ceil(policy.timeouts.read.total_seconds() * 1000))
        with asking(self._info, ""):
            begun: datetime = self.all(_SQL["begin"], {"timeout": timeout})[0][0]
            end_if_idle(self._connection, policy.no_progress_timeout)
        return begun

    def __enter__(self) -> Self:
        """Return the snapshot, which is let go in the end."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Let it go."""
        self.close()

    def close(self) -> None:
        """Let it go; whatever it holds at the server ends with the connection."""
        self._connection.close()

    def all(self, query: Any, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Return all rows of a query of ours."""
        with asking(self._info, ""):
            return self._connection.execute(query, parameters).fetchall()

    def columns(self, relation: Fragment, query: str) -> list[str]:
        """Return what a relation that is a spec's `query` calls its columns, in their order; none of its rows is worked out."""
        statement = joined("", [Fragment("select * from "), relation, Fragment(f" {ROW} limit 0")])
        with asking(self._info, statement.as_sent, query):
            described = self._connection.execute(statement.for_psycopg, statement.values or None).description
        return [column.name for column in described or []]

    def declare(self, statement: Fragment, query: str | None = None) -> None:
        """Have the server make ready to yield the rows of a statement, which has the spec's `query` in it, if there is one."""
        text = statement.as_sent
        with told("SELECT", " ".join(text.split())[:_LONGEST_SHOWN]), asking(self._info, f"{_DECLARE}{text}", query):
            self._connection.execute(_DECLARE.encode() + statement.for_psycopg, statement.values or None)

    def fetch(self, count: int) -> list[Row]:
        """Return the next so many rows, or what is left of them."""
        with asking(self._info, ""):
            return self._connection.execute(f"fetch forward {count:d} from sluice_rows".encode()).fetchall()
