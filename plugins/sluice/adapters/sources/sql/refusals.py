"""What psycopg raises about a supplier's database in; errors of ours out, by what its caller should do next."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo

from sluice.errors import ConnectionInvalid, SluiceError, SupplierRefused, SupplierUnavailable
from sluice.ports import ConnectionInfo

_FATAL: Final = re.compile(r" failed: [^:\n]+:  ")
"""How libpq begins what a server itself has said, whose first word is of the server's language, before it ends a login."""

_PASSES_BY_AT_LOGIN: Final = re.compile(
    r"the database system is|too many|connection slots|no more connections|max client connections|time-?out"
    r"|terminating connection|shutting down|has been failing|cannot connect to server",
    re.IGNORECASE,
)
"""What servers and poolers that are short of something say; the code of the error is lost in the driver."""

_NOT_SENT: Final = re.compile(
    r"certificate file .* does not exist|no password supplied|certificate verify failed|does not match host name"
    r"|does not support SSL"
)
"""What libpq itself has against a login, in its own language."""

_PASSES_BY: Final = ("25P03", "XX")
"""Beginnings of the SQLSTATEs by which a server hangs up, or is broken, though psycopg has another class for them."""

_STAYS: Final = ("08P01", "54")
"""Beginnings of the SQLSTATEs by which a server refuses just this statement, though psycopg has them among its troubles."""

_SECONDS_TO_PING: Final = 2
"""No other thread has its turn meanwhile; the server has answered just before."""

_LONGEST_TEXT: Final = 40
_LONGEST_MESSAGE: Final = 1_000


def address_of(info: ConnectionInfo) -> str:
    """Return who is asked: what all connections to the same server have in common."""
    return f"{info.host or 'local socket'}:{info.port or 5432}"


@contextmanager
def connecting(info: ConnectionInfo, target: str) -> Iterator[None]:
    """Tell a server that lets us not in, and will not later, from one that is not there or not ready; `target` is libpq's."""
    try:
        yield
    except psycopg.Error as exc:
        said = " ".join(str(exc).split())[:_LONGEST_MESSAGE]
        if _NOT_SENT.search(said) or (_FATAL.search(str(exc)) and not _passes_by_at_login(said, target)):
            raise ConnectionInvalid(
                f"connection {info.conn_id}: the database refuses it: {said}", conn_id=info.conn_id
            ) from exc
        raise SupplierUnavailable(
            f"the database of connection {info.conn_id} cannot be reached: {said}", conn_id=info.conn_id
        ) from exc


def _passes_by_at_login(said: str, target: str) -> bool:
    """Whether what ended a login will pass: words tell, or, in whatever language, that the server still takes nobody in."""
    if _PASSES_BY_AT_LOGIN.search(said):
        return True
    asked = make_conninfo(target, connect_timeout=_SECONDS_TO_PING)
    return psycopg.pq.PGconn.ping(asked.encode()) == psycopg.pq.Ping.REJECT


@contextmanager
def asking(info: ConnectionInfo, statement: str, query: str | None = None) -> Iterator[None]:
    """Tell a statement that is refused from a server in trouble; `query` is the part of it that a spec has written."""
    try:
        yield
    except psycopg.Error as exc:
        raise _named(exc, info, statement, query) from exc


def _named(exc: psycopg.Error, info: ConnectionInfo, statement: str, query: str | None) -> SluiceError:
    said = " ".join((exc.diag.message_primary or str(exc)).split())[:_LONGEST_MESSAGE]
    state = exc.sqlstate or ""
    facts = {"conn_id": info.conn_id, "sqlstate": state or None}
    if not _stays(exc, state) and (isinstance(exc, psycopg.OperationalError) or state.startswith(_PASSES_BY)):
        return SupplierUnavailable(f"the database of connection {info.conn_id} broke off: {said}", **facts)
    hint = f" {' '.join(exc.diag.message_hint.split()).rstrip('.')}." if exc.diag.message_hint else ""
    where = _place(int(exc.diag.statement_position or 0), statement, query)
    return SupplierRefused(
        f"the database of connection {info.conn_id} refuses the statement{where}: {said.rstrip('.')} ({state}).{hint}"[
            :_LONGEST_MESSAGE
        ],
        **facts,
    )


def _stays(exc: psycopg.Error, state: str) -> bool:
    """Whether the statement is at fault. Poolers have but one code for what ends a connection, which is fatal then."""
    return state.startswith(_STAYS) and "FATAL" not in (exc.diag.severity, exc.diag.severity_nonlocalized)


def _place(position: int, statement: str, query: str | None) -> str:
    """Return where in the statement something is wrong: for the spec's own part of it, by line."""
    if not position:
        return ""
    found = statement[position - 1 :].partition("\n")[0][:_LONGEST_TEXT]
    start = statement.find(query) if query else -1
    if query and start >= 0 and start <= position - 1 < start + len(query):
        line = statement.count("\n", start, position - 1) + 1
        return f" at `{found}` in line {line} of source.query"
    return f" at `{found}`"
