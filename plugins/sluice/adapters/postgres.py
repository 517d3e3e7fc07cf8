"""A Postgres server behind an Airflow connection: in goes a `ConnectionInfo`, out come transactions and Sluice's own errors."""

import select
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any, Final, Protocol

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from sluice.errors import CommitUnconfirmed, ConnectionInvalid, Retryable, SchemaOutdated
from sluice.model.loss_window import Writing
from sluice.ports import ConnectionInfo

_LARGEST_POOL: Final = 8
_SECONDS_TO_CONNECT: Final = 10
WRITING: Final = Writing(retries=0, timeout=timedelta(seconds=_SECONDS_TO_CONNECT))
"""How long a write may drag on before it is known that there is no server."""
_LIVELINESS: Final = {
    "connect_timeout": _SECONDS_TO_CONNECT,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "application_name": "sluice",
}
"""What the connection's own extra may override; without it, a server that vanishes would be waited for by the hour."""

_OURS: Final = {"client_encoding": "UTF8"}
"""What we send is in UTF-8, whatever encoding a database, a role or the environment has."""

_OUTDATED: Final = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.InvalidSchemaName,
)

_CLOSED_TO_US: Final = (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.IdleInTransactionSessionTimeout)
"""The server is there and does not take the write: a standby, or one that has not heard of this client for too long."""

_LOST_CONNECTION: Final = ("08", "57P")
"""Beginnings of the SQLSTATEs that say that the connection ended, and not what became of the statement."""


def conninfo(info: ConnectionInfo) -> str:
    """Return libpq's connection string; raise `ConnectionInvalid` naming an `extra` that libpq does not know."""
    parts: dict[str, Any] = {
        "host": info.host,
        "port": info.port,
        "user": info.login,
        "password": info.password,
        "dbname": info.schema,
    }
    try:
        return make_conninfo(**{**_LIVELINESS, **{key: part for key, part in parts.items() if part}, **info.extra, **_OURS})
    except psycopg.ProgrammingError as exc:
        raise ConnectionInvalid(
            f"Connection {info.conn_id}: its extra may hold libpq's parameters alone: {str(exc).strip()}", conn_id=info.conn_id
        ) from exc


@contextmanager
def translated(info: ConnectionInfo, unavailable: type[Retryable]) -> Iterator[None]:
    """Turn what psycopg raises for want of a server or of Sluice's tables into errors of ours."""
    try:
        yield
    except (psycopg.OperationalError, *_CLOSED_TO_US) as exc:
        place = f"connection {info.conn_id}, {info.host or 'local socket'}:{info.port or 5432}"
        raise unavailable(
            f"{_in_one_line(unavailable.__doc__).rstrip('.')} ({place}): {_in_one_line(exc)}", conn_id=info.conn_id
        ) from exc
    except _OUTDATED as exc:
        raise SchemaOutdated(
            f"{exc.diag.message_primary} (connection {info.conn_id}): run `sluice db upgrade`", conn_id=info.conn_id
        ) from exc


def _in_one_line(said: object) -> str:
    return " ".join(str(said).split())


class Transactions(Protocol):
    """What stores need of a database."""

    def transaction(self) -> AbstractContextManager[psycopg.Connection[DictRow]]:
        """Open a transaction, as `Database.transaction` does."""


class Database:
    """A pool of connections that opens with its first transaction."""

    def __init__(self, info: ConnectionInfo, unavailable: type[Retryable]) -> None:
        self._info = info
        self._unavailable = unavailable
        self._opening = threading.Lock()
        self._pool: ConnectionPool[psycopg.Connection[DictRow]] | None = None

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[DictRow]]:
        """Open a transaction that commits with the end of the block, and rolls back if the block raises.

        Raises the `unavailable` of this database where the server cannot be reached, does not let a lock go or breaks a
        deadlock; `SchemaOutdated` where a table is missing; `CommitUnconfirmed` where nobody can say what became of the commit.
        """
        with translated(self._info, self._unavailable), self._opened().connection() as connection:
            yield connection
            _commit(connection)

    def close(self) -> None:
        """Close all connections; a later transaction opens them again."""
        with self._opening:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def _opened(self) -> ConnectionPool[psycopg.Connection[DictRow]]:
        with self._opening:
            if self._pool is None:
                target = conninfo(self._info)
                # The pool would try a wrong password until it times out, and then not say why: ask once, plainly.
                psycopg.connect(target).close()
                self._pool = ConnectionPool(
                    target,
                    connection_class=psycopg.Connection[DictRow],
                    kwargs={"row_factory": dict_row},
                    configure=_speak_utc,
                    check=_require_open,
                    min_size=0,
                    max_size=_LARGEST_POOL,
                    timeout=_SECONDS_TO_CONNECT,
                    open=True,
                )
            return self._pool


def end_if_idle(connection: psycopg.Connection[Any], patience: timedelta) -> None:
    """Let the server end the transaction, and give its locks back, if it hears nothing of this client for so long."""
    milliseconds = max(1, round(patience.total_seconds() * 1000))
    connection.execute("select set_config('idle_in_transaction_session_timeout', %s, true)", (str(milliseconds),))


def _require_open(connection: psycopg.Connection[DictRow]) -> None:
    """Ask the server whether it is there if it has said something unasked, as it does when it ends; raise if it is not.

    To ask it each time would cost each transaction one way more to the server and back.
    """
    unasked = select.poll()
    unasked.register(connection.fileno(), select.POLLIN)
    if unasked.poll(0):
        ConnectionPool.check_connection(connection)


def _speak_utc(connection: psycopg.Connection[DictRow]) -> None:
    connection.execute("set time zone 'UTC'")
    connection.commit()


def _commit(connection: psycopg.Connection[DictRow]) -> None:
    try:
        connection.commit()
    except psycopg.OperationalError as exc:
        if exc.sqlstate is None or exc.sqlstate.startswith(_LOST_CONNECTION):
            raise CommitUnconfirmed(f"{CommitUnconfirmed.__doc__} ({exc})") from exc
        raise
