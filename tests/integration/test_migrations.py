"""Migrations against a real Postgres: from nothing, again, several at once, from a newer release, without rights."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from threading import Barrier
from typing import get_args

import psycopg
import pytest

from sluice.adapters.migrate import ADVISORY_LOCK, upgrade
from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.schemas import Schema
from sluice.errors import Retryable, SchemaOutdated, StateTooNew, StateUnavailable, TargetUnavailable
from sluice.model.state_class import TABLES
from sluice.ports import ConnectionInfo

SCHEMAS: tuple[Schema, ...] = get_args(Schema)


@pytest.fixture
def server(empty_database: ConnectionInfo) -> Iterator[psycopg.Connection]:
    """A connection to the empty database."""
    with psycopg.connect(conninfo(empty_database), autocommit=True) as connection:
        yield connection


def tables(server: psycopg.Connection, schema: str) -> set[str]:
    """Return the names of the schema's tables, partitions left out."""
    rows = server.execute(
        "select relname from pg_class where relnamespace = %s::regnamespace and relkind in ('r', 'p') and not relispartition",
        (schema,),
    )
    return {row[0] for row in rows}


def test_both_schemas_come_up_beside_each_other(empty_database: ConnectionInfo, server: psycopg.Connection) -> None:
    """One database can hold both; each records its own revision."""
    assert upgrade(empty_database, "sluice_state") == ["0001", "0002", "0003", "0004", "0005", "0006"]
    assert upgrade(empty_database, "sluice_ledger") == ["0001", "0002", "0003"]
    assert tables(server, "sluice_state") == set(TABLES) | {"migration"}
    assert tables(server, "sluice_ledger") == {"object", "object_event", "publication", "fence", "migration"}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_upgrading_again_does_nothing(empty_database: ConnectionInfo, schema: Schema) -> None:
    """Every start may upgrade; only the first has something to do."""
    upgrade(empty_database, schema)
    assert upgrade(empty_database, schema) == []


def test_of_several_that_start_at_once_one_works(empty_database: ConnectionInfo) -> None:
    """Workers that start together all find the schema there, and none trips over another."""
    start = Barrier(4)

    def begin(schema: Schema) -> list[str]:
        start.wait(timeout=30)
        return upgrade(empty_database, schema)

    with ThreadPoolExecutor(4) as workers:
        applied = list(workers.map(begin, [*SCHEMAS, *SCHEMAS]))
    assert sorted(applied) == [[], [], ["0001", "0002", "0003"], ["0001", "0002", "0003", "0004", "0005", "0006"]]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_processes_wait_for_each_other(empty_database: ConnectionInfo, schema: Schema) -> None:
    """While another process upgrades either schema an upgrade waits, for as long as its connection allows."""
    impatient = replace(empty_database, extra={"options": "-c lock_timeout=100ms"})
    with psycopg.connect(conninfo(empty_database)) as other:
        other.execute("select pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        with pytest.raises(Retryable, match="lock timeout"):
            upgrade(impatient, schema)
        other.commit()
        assert upgrade(impatient, schema)[0] == "0001"


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_of_a_newer_release_is_left_alone(
    empty_database: ConnectionInfo, server: psycopg.Connection, schema: Schema
) -> None:
    """An older release does not guess what a newer one has made."""
    upgrade(empty_database, schema)
    server.execute(psycopg.sql.SQL("update {}.migration set version_num = '9999'").format(psycopg.sql.Identifier(schema)))
    with pytest.raises(StateTooNew, match=rf"{schema} was made by a newer Sluice.*9999"):
        upgrade(empty_database, schema)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_everything_is_commented(empty_database: ConnectionInfo, server: psycopg.Connection, schema: Schema) -> None:
    """Whoever looks with psql finds a sentence at each table and column."""
    upgrade(empty_database, schema)
    silent = server.execute(
        """
        select relname, attname from pg_class join pg_attribute on attrelid = pg_class.oid
        where relnamespace = %(schema)s::regnamespace and relkind in ('r', 'p') and attnum > 0
            and (col_description(attrelid, attnum) is null or obj_description(pg_class.oid) is null)
        """,
        {"schema": schema},
    ).fetchall()
    assert silent == []


def test_a_role_without_create_upgrades_a_schema_made_for_it(
    empty_database: ConnectionInfo, server: psycopg.Connection
) -> None:
    """A careful administrator makes the schema and gives it away; nothing more is asked for."""
    role = f"narrow_{empty_database.schema}"
    server.execute(psycopg.sql.SQL("create role {} login password 'narrow'").format(psycopg.sql.Identifier(role)))
    server.execute(psycopg.sql.SQL("create schema sluice_state authorization {}").format(psycopg.sql.Identifier(role)))
    try:
        assert upgrade(replace(empty_database, login=role, password="narrow"), "sluice_state") == [
            "0001",
            "0002",
            "0003",
            "0004",
            "0005",
            "0006",
        ]
    finally:
        server.execute("drop schema sluice_state cascade")
        server.execute(psycopg.sql.SQL("drop role {}").format(psycopg.sql.Identifier(role)))


def test_an_unreachable_server_is_named_by_what_it_is_for(empty_database: ConnectionInfo) -> None:
    """State and target are different outages."""
    nowhere = replace(empty_database, port=1)
    with pytest.raises(StateUnavailable, match="sluice_state"):
        upgrade(nowhere, "sluice_state")
    with pytest.raises(TargetUnavailable):
        upgrade(nowhere, "sluice_ledger")


def test_a_missing_schema_is_told_with_its_mend(empty_database: ConnectionInfo) -> None:
    """A database without the tables says which command makes them."""
    database = Database(empty_database, StateUnavailable)
    with pytest.raises(SchemaOutdated, match="sluice db upgrade"), database.transaction() as connection:
        connection.execute("select * from sluice_state.run")
    database.close()


def test_events_find_the_partition_of_their_month(database: ConnectionInfo) -> None:
    """Months are UTC's, whatever zone the instant is given in; the month after is ready too; asking again changes nothing."""
    with psycopg.connect(conninfo(database)) as connection:
        ensure = "select sluice_ledger.ensure_event_partition(%s)"
        for _ in range(2):
            connection.execute(ensure, ("2026-11-30T23:30:00-02:00",))
        parts = connection.execute(
            "select relid::text, pg_get_expr(relpartbound, relid) from pg_partition_tree('sluice_ledger.object_event')"
            " join pg_class on pg_class.oid = relid where isleaf order by 1"
        ).fetchall()
        assert [name for name, _ in parts] == [
            "sluice_ledger.object_event_2026_12",
            "sluice_ledger.object_event_2027_01",
        ]
        insert = "insert into sluice_ledger.object_event (at, sync, key, run, outcome) values (%s, 's', 'k', 'r', 'created')"
        connection.execute(insert, (datetime(2026, 12, 1, tzinfo=UTC),))
        connection.execute(insert, (datetime(2027, 1, 31, 23, 59, 59, tzinfo=UTC),))
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(insert, (datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC),))


def test_partitions_are_made_while_others_publish(database: ConnectionInfo) -> None:
    """Two publications that open a month at once both get it; one that writes meanwhile is not shut out."""
    at = "2030-05-01T00:00:00Z"
    ensure = "select sluice_ledger.ensure_event_partition(%s)"
    with (
        psycopg.connect(conninfo(database)) as writer,
        psycopg.connect(conninfo(database)) as first,
        ThreadPoolExecutor(1) as second,
    ):
        writer.execute("select count(*) from sluice_ledger.object_event")
        writer.execute("lock table sluice_ledger.object_event in row exclusive mode")
        first.execute(ensure, (at,))

        def publish() -> None:
            with psycopg.connect(conninfo(database)) as connection:
                connection.execute(ensure, (at,))

        waiting = second.submit(publish)
        first.commit()
        waiting.result(timeout=30)
        writer.rollback()
