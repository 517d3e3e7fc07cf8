"""The embedded services answer, keep their data, and recover from a kill."""

import psycopg

from sluice.cli.local.postgres import PostgresServer
from sluice.ports import ConnectionInfo


def connect(info: ConnectionInfo, password: str | None = None) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(
        host=info.host, port=info.port, user=info.login, password=password or info.password, dbname=info.schema
    )


def test_a_database_is_empty_and_of_its_own(empty_database: ConnectionInfo, postgres: PostgresServer) -> None:
    """Each test's database holds no table and is reached by password."""
    with connect(empty_database) as session:
        count = session.execute("SELECT count(*) FROM pg_tables WHERE schemaname NOT LIKE 'pg_%'").fetchone()
    assert count == (4,)
