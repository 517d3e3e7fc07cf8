"""The odd places a table may be in, in a real Postgres: shared, partitioned, of another form, or not ours to alter."""
# ruff: noqa: E501 - statements that are told stand on one line each

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import sql

from sluice.errors import TargetMismatch
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo
from tests.support.ledgered import Table
from tests.unit.mapping.workbench import sync_spec

ROLE = "sluice_guest"


def spec(sync: str = "inns", fields: dict[str, Any] | None = None, description: str = "", **target: Any) -> SyncSpec:
    """Inns with a name."""
    declared = {"table": "shop.inns", **target}
    return sync_spec({"id": "text", "name": "text", **(fields or {})}, sync=sync, description=description, target=declared)


def inns(*keys: str) -> list[dict[str, Any]]:
    """Records of the supplier's."""
    return [{"id": key, "name": key.upper()} for key in keys]


def told(table: Table) -> list[str]:
    """What a person has to do before anything can be published."""
    with pytest.raises(TargetMismatch) as refused:
        table.target.check()
    return refused.value.message.splitlines()[1:]


@pytest.fixture
def owner(database: ConnectionInfo) -> Iterator[Table]:
    """The table of a sync whose connection may do all."""
    with closing(Table(database, spec())) as table:
        yield table


@contextmanager
def as_guest(info: ConnectionInfo, table_spec: SyncSpec, *grants: str) -> Iterator[Table]:
    """The same table through a connection that may write the ledger, and else what is granted."""
    with psycopg.connect(
        host=info.host, port=info.port, user=info.login, password=info.password, dbname=info.schema, autocommit=True
    ) as hand:
        hand.execute("select sluice_ledger.ensure_event_partition(now())")
        hand.execute(sql.SQL("create role {} login password 'guest'").format(sql.Identifier(ROLE)))
        try:
            hand.execute(sql.SQL("grant usage, create on schema sluice_ledger to {}").format(sql.Identifier(ROLE)))
            hand.execute(sql.SQL("grant all on all tables in schema sluice_ledger to {}").format(sql.Identifier(ROLE)))
            for grant in grants:
                hand.execute(grant.encode())
            with closing(Table(replace(info, login=ROLE, password="guest"), table_spec, turn=100)) as guest:
                yield guest
        finally:
            hand.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(ROLE)))


def test_two_syncs_share_a_table(database: ConnectionInfo, owner: Table) -> None:
    """Each writes and deletes its own objects, and neither minds the other's column."""
    owner.bring(*inns("a", "b"))
    with closing(Table(database, spec("huts", {"height": "integer"}), turn=100)) as huts:
        huts.bring(*inns("h", "i"))
        huts.bring(*inns("i"), complete=True)
        owner.bring(*inns("b"), complete=True)
        assert [(row["id"], row["_sluice_deleted_at"] is None) for row in owner.rows()] == [
            ("a", False),
            ("b", True),
            ("h", False),
            ("i", True),
        ]
        assert (owner.target.check(), huts.target.check()) == ((), ())


def test_a_partitioned_table_is_written_extended_and_widened(owner: Table) -> None:
    """As long as its unique key is that of the objects; a type by which it is partitioned stays."""
    owner.hand.execute(
        "create schema shop; create table shop.inns (id varchar(10) primary key, name varchar(10)) partition by hash (id);"
        "create table shop.inns_0 partition of shop.inns for values with (modulus 2, remainder 0);"
        "create table shop.inns_1 partition of shop.inns for values with (modulus 2, remainder 1)"
    )
    owner.respec(spec(evolution="widen"))
    assert told(owner) == [
        'column id is character varying(10), not text, and what depends on it has to be dropped before and made anew after (the partitioning of the table): alter table "shop"."inns" alter column "id" type text'
    ]
    owner.hand.execute(
        "drop table shop.inns; create table shop.inns (id text primary key, name varchar(10)) partition by hash (id)"
    )
    owner.hand.execute("create table shop.inns_0 partition of shop.inns for values with (modulus 1, remainder 0)")
    owner.bring(*inns("a", "b", "c"))
    assert [row["name"] for row in owner.rows()] == ["A", "B", "C"]
    assert owner.target.check() == ()


def test_a_partition_is_written_but_altered_through_its_table(owner: Table) -> None:
    """Its columns are those of the table it is one of."""
    owner.hand.execute(
        "create schema shop; create table shop.all_inns (id text, name text, _sluice_deleted_at timestamptz) partition by list (id);"
        "create table shop.inns partition of shop.all_inns (primary key (id)) for values in ('a', 'b')"
    )
    owner.bring(*inns("a"))
    assert [row["id"] for row in owner.rows()] == ["a"]
    owner.respec(spec(fields={"stars": "text"}))
    assert told(owner) == [
        'column stars is missing, and it is a partition: alter the table that it is one of: alter table "shop"."inns" add column "stars" text'
    ]


def test_names_that_are_words_of_sql(database: ConnectionInfo) -> None:
    """They are quoted wherever they stand."""
    fields = {"user": "text", "order": "integer", "select": "json"}
    declared = sync_spec(fields, object={"key": ["user", "order"]}, target={"table": "group.table", "evolution": "widen"})
    with closing(Table(database, declared)) as table:
        table.bring({"user": "a", "order": 1, "select": [1]})
        more = sync_spec(
            {**fields, "order": "bigint", "from": {"type": "text", "description": "where"}},
            object={"key": ["user", "order"]},
            target={"table": "group.table", "evolution": "widen"},
        )
        table.respec(more)
        table.bring({"user": "a", "order": 1, "select": [1], "from": "b"}, complete=True)
        found = table.hand.execute('select "user", "order", "select", "from" from "group"."table"').fetchall()
        assert found == [("a", 1, [1], "b")]


def test_where_nothing_may_be_made_that_is_told(database: ConnectionInfo, owner: Table) -> None:
    """A schema, or a table in it, that this connection may not make: the statements are there for somebody who may."""
    with as_guest(database, spec(description="Inns.")) as guest:
        assert told(guest)[0] == 'it is missing, and sluice_guest may not make it: create schema "shop"'
        owner.hand.execute("create schema shop")
        lines = told(guest)
        assert [line.split(": ")[0] for line in lines] == ["it is missing, and sluice_guest may not make it"] * 3
        assert (
            lines[0].split(": ", 1)[1]
            == 'create table "shop"."inns" ("id" text not null, "name" text null, "_sluice_deleted_at" timestamptz null, primary key ("id"))'
        )
        owner.hand.execute("grant usage, create on schema shop to sluice_guest")
        guest.bring(*inns("a"))
        assert [row["id"] for row in owner.rows()] == ["a"]


def test_a_table_of_somebody_else_is_written_with_grants_alone(database: ConnectionInfo, owner: Table) -> None:
    """What is lacking is told as statements; comments are left to the owner; and what only he may alter is his."""
    owner.bring(*inns("a"))
    with as_guest(database, spec(description="Other inns.")) as guest:
        assert told(guest) == [
            'sluice_guest may not use its schema: grant usage on schema "shop" to "sluice_guest"',
            'sluice_guest lacks select and insert and update on it: grant select, insert, update on "shop"."inns" to "sluice_guest"',
        ]
        for line in told(guest):
            owner.hand.execute(line.split(": ", 1)[1].encode())
        assert guest.target.check() == ()
        guest.bring(*inns("a", "b"))
        assert len(owner.rows()) == 2
        guest.respec(spec(fields={"stars": "text"}))
        assert told(guest) == [
            'column stars is missing, and only its owner may alter it: alter table "shop"."inns" add column "stars" text'
        ]
        guest.respec(spec(deletes="hard"))
        assert told(guest) == ['sluice_guest lacks delete on it: grant delete on "shop"."inns" to "sluice_guest"']


def test_what_constraints_and_grants_of_others_forbid_is_told(database: ConnectionInfo, owner: Table) -> None:
    """At once or deferred to the commit, in Postgres's words; nothing is written. So it is with a rollback that may not delete."""
    owner.bring(*inns("a"))
    for constraint in ("unique (name)", "unique (name) deferrable initially deferred"):
        owner.hand.execute(f"alter table shop.inns add constraint one_name {constraint}".encode())
        with pytest.raises(TargetMismatch, match=r"does not take what would be published: .*one_name.*\(name\)=\(A\)"):
            owner.bring({"id": "b", "name": "A"})
        owner.hand.execute("alter table shop.inns drop constraint one_name")
    assert [row["id"] for row in owner.rows()] == ["a"]
    grants = "grant usage on schema shop to sluice_guest; grant select, insert, update on shop.inns to sluice_guest"
    with as_guest(database, spec(), grants) as guest:
        made = guest.bring(*inns("b"))
        with pytest.raises(TargetMismatch, match="permission denied for table inns"):
            guest.roll_back(made)


def test_a_table_becomes_a_history_by_a_person(owner: Table) -> None:
    """The statements that are told do it, in their order; who is deleted softly by then is not valid any more."""
    owner.bring(*inns("a", "b"))
    owner.bring(*inns("b"), complete=True)
    owner.hand.execute("create unique index names on shop.inns (name)")
    owner.respec(spec(form="history"))
    lines = told(owner)
    assert [line.split(": ")[0] for line in lines] == [
        "column _sluice_valid_from is missing",
        "column _sluice_valid_to is missing",
        "column _sluice_deleted_at says which objects are gone, whose rows have to end",
        "a unique key on (id) lets no second version in",
        "a unique key on (name) lets no second version in",
        "no unique key on (id, _sluice_valid_from)",
        "no unique key on (id) among the rows that are valid",
    ]
    for line in lines:
        owner.hand.execute(line.split(": ", 1)[1].encode())
    owner.bring({"id": "b", "name": "B2"}, complete=True)
    spans = owner.rows("id, name, _sluice_valid_to is null as is_valid, _sluice_valid_from = 'epoch' as is_old")
    assert sorted(tuple(row.values()) for row in spans) == [
        ("a", "A", False, True),
        ("b", "B", False, True),
        ("b", "B2", True, False),
    ]


def test_a_history_is_not_taken_for_anything_else(owner: Table) -> None:
    """Its versions would be overwritten, or deleted."""
    owner.respec(spec(form="history"))
    owner.bring(*inns("a"))
    owner.respec(spec())
    assert told(owner) == ["it is a history, with _sluice_valid_from: say `form: history`, or name another table"]


def test_deletes_may_change_their_way(owner: Table) -> None:
    """From removing to marking the column is added; the other way round it stays, and tells what was."""
    owner.respec(spec(deletes="hard"))
    owner.bring(*inns("a", "b", "c"))
    owner.bring(*inns("a", "b"), complete=True)
    owner.respec(spec())
    owner.bring(*inns("a"), complete=True)
    assert [(row["id"], row["_sluice_deleted_at"] is None) for row in owner.rows()] == [("a", True), ("b", False)]
    owner.respec(spec(deletes="ignore"))
    owner.bring(*inns("a", "d"))
    assert [row["id"] for row in owner.rows()] == ["a", "b", "d"]
    owner.bring(*inns("b"))
    assert [row["id"] for row in owner.rows() if row["_sluice_deleted_at"] is not None] == []


def test_a_database_that_lacks_letters_is_refused(owner: Table, database: ConnectionInfo) -> None:
    """Before anything is written: it could not hold each text, and would stop the good ones with the others."""
    owner.hand.execute("create database latin encoding 'LATIN1' locale 'C' locale_provider 'libc' template template0")
    try:
        with closing(Table(replace(database, schema="latin"), spec())) as table:
            assert told(table) == [
                "its database is encoded as LATIN1, which has no place for most letters: that has to be UTF8"
            ]
    finally:
        owner.hand.execute("drop database latin")


def test_a_key_that_ignores_case_is_left_to_a_person(owner: Table) -> None:
    """It would make two objects one, whose keys differ only in that."""
    owner.hand.execute("create schema shop")
    # Not every Postgres is built with one that ignores case; here it only says so.
    owner.hand.execute('create collation shop.vague from "C"')
    owner.hand.execute("update pg_collation set collisdeterministic = false where collname = 'vague'")
    owner.hand.execute("create table shop.inns (id text collate shop.vague primary key, name text collate shop.vague)")
    (line,) = told(owner)
    why, statement = line.split(": ", 1)
    assert why == "column id takes different texts for one, by its collation, and would mix up objects"
    owner.hand.execute(statement.encode())
    owner.bring(*inns("a", "A"))
    assert {row["id"] for row in owner.rows()} == {"a", "A"}
