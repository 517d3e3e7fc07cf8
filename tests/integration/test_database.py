"""Transactions on a real Postgres, and what becomes of its errors."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import LiteralString

import psycopg
import pytest

from sluice.adapters.postgres import Database, conninfo
from sluice.errors import CommitUnconfirmed, ConnectionInvalid, TargetUnavailable
from sluice.ports import ConnectionInfo


@pytest.fixture
def target(empty_database: ConnectionInfo) -> Iterator[Database]:
    """A database with a table of numbers."""
    with psycopg.connect(conninfo(empty_database)) as connection:
        connection.execute("create table number (value integer unique deferrable initially deferred)")
    database = Database(empty_database, TargetUnavailable)
    yield database
    database.close()


def numbers(database: Database) -> list[int]:
    """Return what the table holds."""
    with database.transaction() as connection:
        return [row["value"] for row in connection.execute("select value from number order by 1")]


def write(database: Database, statements: list[LiteralString], before_commit: Callable[[], object] = lambda: None) -> None:
    """Execute the statements, then something else, in one transaction."""
    with database.transaction() as connection:
        for statement in statements:
            connection.execute(statement)
        before_commit()


def end_backends(info: ConnectionInfo) -> None:
    """End every other connection to the database, as a restart of the server does."""
    with psycopg.connect(conninfo(info), autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )


def test_a_block_commits_at_its_end_and_rolls_back_if_it_raises(target: Database) -> None:
    """All of a block or nothing of it."""
    write(target, ["insert into number values (1)"])
    with pytest.raises(ZeroDivisionError):
        write(target, ["insert into number values (2)"], before_commit=lambda: 1 / 0)
    assert numbers(target) == [1]


def test_instants_come_back_in_utc(target: Database) -> None:
    """Whatever zone the server lives in."""
    with target.transaction() as connection:
        row = connection.execute("select timestamptz '2026-01-31T12:00:00+05' as at").fetchone()
    assert row is not None
    assert row["at"].isoformat() == "2026-01-31T07:00:00+00:00"


def test_a_commit_without_an_answer_is_told_from_one_that_failed(target: Database, empty_database: ConnectionInfo) -> None:
    """When the connection ends under the commit, nobody knows; when the commit breaks a rule, everybody does."""
    with pytest.raises(CommitUnconfirmed):
        write(target, ["insert into number values (1)"], before_commit=lambda: end_backends(empty_database))
    with pytest.raises(psycopg.errors.UniqueViolation):
        write(target, ["insert into number values (2), (2)"])
    assert numbers(target) == []


def test_a_connection_that_ends_under_a_statement_is_an_outage(target: Database) -> None:
    """Nothing was committed, so it may simply be tried again; and the next transaction has a new connection."""
    suicide: list[LiteralString] = ["select pg_terminate_backend(pg_backend_pid())", "insert into number values (2)"]
    with pytest.raises(TargetUnavailable):
        write(target, ["insert into number values (1)", *suicide])
    assert numbers(target) == []


def test_connections_that_died_while_idle_are_replaced(target: Database, empty_database: ConnectionInfo) -> None:
    """A server that was restarted between two steps is not noticed."""
    assert numbers(target) == []
    end_backends(empty_database)
    assert numbers(target) == []


def test_a_closed_database_opens_again(target: Database) -> None:
    """Closing frees the connections, and no more."""
    target.close()
    assert numbers(target) == []


def test_what_cannot_be_reached_says_where_and_why(empty_database: ConnectionInfo) -> None:
    """A wrong port and a wrong password are told apart at once, and the password is not told."""
    for change, why in (({"port": 1}, "refused"), ({"password": "wr0ng"}, "password authentication failed")):
        database = Database(replace(empty_database, **change), TargetUnavailable)
        with pytest.raises(TargetUnavailable, match=why) as caught, database.transaction():
            pass
        assert "connection sluice_state, 127.0.0.1" in caught.value.message
        assert "wr0ng" not in caught.value.message


def test_extra_is_libpqs_and_nothing_else(empty_database: ConnectionInfo) -> None:
    """A parameter that libpq does not know is refused by name; one that it knows counts."""
    with pytest.raises(ConnectionInvalid, match=r'sluice_state.*"sslmod"'):
        conninfo(replace(empty_database, extra={"sslmod": "require"}))
    assert "application_name=nightly" in conninfo(replace(empty_database, extra={"application_name": "nightly"}))
