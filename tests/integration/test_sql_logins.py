"""What a Postgres says to end a connection in, in whatever language; whether to ask again, out."""

from dataclasses import replace

import pytest

from sluice.errors import ConnectionInvalid, SluiceError, SupplierUnavailable
from sluice.ports import ConnectionInfo
from tests.support.gruff_postgres import fatal, gruff_postgres
from tests.support.warehouse import Warehouse


@pytest.mark.parametrize(
    ("severity", "code", "said", "error"),
    [
        ("FATAL", "28P01", "Passwort-Authentifizierung für Benutzer »me« fehlgeschlagen", ConnectionInvalid),
        ("ВАЖНО", "3D000", "база данных «shop» не существует", ConnectionInvalid),
        ("FATAL", "57P03", "das Datenbanksystem startet", SupplierUnavailable),
        ("FATAL", "57P03", "the database system is starting up", SupplierUnavailable),
        ("FATAL", "53300", "sorry, too many clients already", SupplierUnavailable),
        (
            "FATAL",
            "53300",
            "remaining connection slots are reserved for roles with the SUPERUSER attribute",
            SupplierUnavailable,
        ),
        ("FATAL", "08P01", "no more connections allowed (max_client_conn)", SupplierUnavailable),
    ],
)
def test_a_login_that_is_refused_is_given_up_unless_it_passes_by(
    severity: str, code: str, said: str, error: type[SluiceError]
) -> None:
    """Whatever language a server speaks, a wrong password is not tried again, and a server that starts is waited for."""
    with gruff_postgres(fatal(severity, code, said)) as info, pytest.raises(error, match=said[:20]):
        Warehouse(info).source(query="select 1 as id").now()


def test_a_pooler_that_ends_a_connection_is_in_trouble() -> None:
    """It has the code of a broken protocol for all there is, which would be the statement's fault otherwise."""
    with (
        gruff_postgres(fatal("FATAL", "08P01", "query_wait_timeout"), lets_in=True) as info,
        pytest.raises(SupplierUnavailable, match="broke off: query_wait_timeout"),
    ):
        Warehouse(info).source(query="select 1 as id").now()


@pytest.mark.parametrize("extra", [{"sslmode": "require"}, {"sslmode": "verify-full", "sslrootcert": "/nowhere"}])
def test_what_libpq_refuses_itself_is_given_up(database: ConnectionInfo, extra: dict[str, str]) -> None:
    """A server without TLS, or a certificate that is not there, will not be there next time."""
    with pytest.raises(ConnectionInvalid, match="the database refuses it"):
        Warehouse(replace(database, extra=extra)).source(query="select 1 as id").now()
