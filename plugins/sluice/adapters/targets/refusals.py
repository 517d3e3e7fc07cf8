"""What Postgres refuses to do with a published table in; a `TargetMismatch` that says what, and why, out."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from sluice.errors import TargetMismatch


def reason_of(error: psycopg.Error) -> str:
    """Return why Postgres refused something, in its own words."""
    return " ".join(filter(None, (error.diag.message_primary, error.diag.message_detail)))


@contextmanager
def taking_rows(table: str) -> Iterator[None]:
    """Raise `TargetMismatch` where the block lacks a grant, or a constraint or trigger of others refuses a row."""
    try:
        yield
    except (psycopg.IntegrityError, psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException) as exc:
        raise TargetMismatch(f"table {table} does not take what would be published: {reason_of(exc)}") from exc
