"""What psycopg raises about a supplier's database in; errors of ours out, by what its caller should do next."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from sluice.errors import ConnectionInvalid, SluiceError, SupplierRefused, SupplierUnavailable
from sluice.ports import ConnectionInfo

_LOGIN_REFUSED: Final = re.compile(
    r"authentication failed|no pg_hba\.conf entry|role .* does not exist|database .* does not exist|not permitted to log in"
    r"|permission denied for database|certificate file .* does not exist|no password supplied|certificate verify failed"
    r"|does not support SSL"
)
"""A server that lets nobody in tells so in words alone: the code of the error is lost in the driver."""

_PASSES_BY: Final = ("25P03", "XX")
"""Beginnings of the SQLSTATEs by which a server hangs up, or is broken, though psycopg has another class for them."""

_LONGEST_TEXT: Final = 40
_LONGEST_MESSAGE: Final = 1_000


def address_of(info: ConnectionInfo) -> str:
    """Return who is asked: what all connections to the same server have in common."""
    return f"{info.host or 'local socket'}:{info.port or 5432}"


@contextmanager
def connecting(info: ConnectionInfo) -> Iterator[None]:
    """Tell a server that lets us not in from one that is not there."""
    try:
        yield
    except psycopg.Error as exc:
        said = " ".join(str(exc).split())[:_LONGEST_MESSAGE]
        if _LOGIN_REFUSED.search(said):
            raise ConnectionInvalid(
                f"connection {info.conn_id}: the database refuses it: {said}", conn_id=info.conn_id
            ) from exc
        raise SupplierUnavailable(
            f"the database of connection {info.conn_id} cannot be reached: {said}", conn_id=info.conn_id
        ) from exc


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
    if isinstance(exc, psycopg.OperationalError) or state.startswith(_PASSES_BY):
        return SupplierUnavailable(f"the database of connection {info.conn_id} broke off: {said}", **facts)
    hint = f" {' '.join(exc.diag.message_hint.split()).rstrip('.')}." if exc.diag.message_hint else ""
    where = _place(int(exc.diag.statement_position or 0), statement, query)
    return SupplierRefused(
        f"the database of connection {info.conn_id} refuses the statement{where}: {said.rstrip('.')} ({state}).{hint}"[
            :_LONGEST_MESSAGE
        ],
        **facts,
    )


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
