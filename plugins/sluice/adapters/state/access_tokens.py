"""Access tokens that all workers share: `sluice_state.access_token` behind the port `AccessTokenStore`."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions, end_if_idle
from sluice.adapters.queries import Queries
from sluice.errors import SupplierUnavailable
from sluice.model.scalars import spell_duration
from sluice.ports import SealedToken

_SQL: Final = Queries(__package__, "access_token.sql")


class PostgresAccessTokenStore:
    """Tokens in Postgres, by its clock. Who asks for one holds its row, which is free as soon as its connection ends."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def get(self, client: str) -> SealedToken | None:
        """Return the client's token; None if there is none, or its time is over."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["get"], {"client": client}).fetchone()
        return None if row is None else _token(row)

    def renew(
        self, client: str, *, is_spent: Callable[[bytes], bool], ask: Callable[[], SealedToken], patience: timedelta
    ) -> SealedToken:
        """Return a token that is not spent: what another worker has got meanwhile, or what `ask` returns."""
        with self._database.transaction() as connection:
            row = _held(connection, client, patience)
            if row["is_good"] and not is_spent(bytes(row["sealed"])):
                return _token(row)
            end_if_idle(connection, patience)
            new = ask()
            connection.execute(_SQL["keep"], {"client": client, "sealed": new.sealed, "good_for": new.good_for})
        return new


def _held(connection: psycopg.Connection[DictRow], client: str, patience: timedelta) -> DictRow:
    milliseconds = str(max(1, round(patience.total_seconds() * 1000)))
    try:
        connection.execute(_SQL["patience"], {"milliseconds": milliseconds})
        connection.execute(_SQL["note"], {"client": client})
        row = connection.execute(_SQL["hold"], {"client": client}).fetchone()
    except psycopg.errors.LockNotAvailable as exc:
        raise SupplierUnavailable(
            f"another worker has been asking for an access token for {spell_duration(patience)}, and has none yet"
        ) from exc
    if row is None:
        raise SupplierUnavailable("the access token was forgotten while it was being renewed")
    return row


def _token(row: DictRow) -> SealedToken:
    return SealedToken(bytes(row["sealed"]), row["good_for"])
