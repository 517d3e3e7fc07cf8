"""What a publication does to its table in a real Postgres, and what it leaves to a person."""
# ruff: noqa: E501 - tables of cases read better with one on each line

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from sluice.adapters.targets import evolution
from sluice.errors import TargetMismatch, TargetUnavailable
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo
from tests.support.ledgered import Table
from tests.unit.mapping.workbench import sync_spec

Fields = dict[str, str | dict[str, Any]]
FIELDS: Fields = {"id": "text", "rooms": "integer", "price": "numeric(6,2)"}


def spec(evolution: str = "add", fields: Fields | None = None, description: str = "", **target: Any) -> SyncSpec:
    """Inns, with some more fields or other types."""
    declared = {"table": "shop.inns", "evolution": evolution, **target}
    return sync_spec({**FIELDS, **(fields or {})}, description=description, target=declared)


def inn(key: str = "a", **values: Any) -> dict[str, Any]:
    """A record of the supplier's."""
    return {"id": key, "rooms": 7, "price": "1.50", **values}


@pytest.fixture
def table(database: ConnectionInfo) -> Iterator[Table]:
    """A table with one row, published as of the first spec."""
    with closing(Table(database, spec())) as table:
        table.bring(inn())
        yield table


def columns(table: Table) -> dict[str, str]:
    """The columns that are there, with their types."""
    query = """
        select attname, format_type(atttypid, atttypmod) from pg_attribute
        where attrelid = 'shop.inns'::regclass and attnum > 0 and not attisdropped
    """
    return dict(table.hand.execute(query).fetchall())


def comments(table: Table) -> dict[str | None, str]:
    """The comments of the table and its columns."""
    query = """
        select a.attname, d.description from pg_description d
        left join pg_attribute a on (a.attrelid, a.attnum) = (d.objoid, d.objsubid)
        where d.objoid = 'shop.inns'::regclass and a.attname is distinct from '_sluice_deleted_at'
    """
    return dict(table.hand.execute(query).fetchall())


def refusal(action: Callable[[], object]) -> list[str]:
    """What is told of each difference that nobody but a person may mend."""
    with pytest.raises(TargetMismatch) as refused:
        action()
    first, *lines = refused.value.message.splitlines()
    assert first == "table shop.inns does not fit the spec of hotels:"
    return lines


def test_a_table_is_made_as_declared(database: ConnectionInfo) -> None:
    """Under any mode: the statements are told before, and table, key and comments are there with the first publication."""
    more = {"note": {"type": "text", "required": True, "description": 'It\'s 100% "theirs"'}}
    with closing(Table(database, spec("freeze", more, description="Inns."))) as table:
        planned = table.target.check()
        assert [statement.split(" -- ") for statement in planned[:2]] == [
            ['create schema "shop"', "it is missing"],
            [
                'create table "shop"."inns" ("id" text not null, "rooms" integer null, "price" numeric(6,2) null, "note" text not null, "_sluice_deleted_at" timestamptz null, primary key ("id"))',
                "it is missing",
            ],
        ]
        table.bring(inn(note="x"))
        assert table.target.check() == ()
        assert comments(table) == {None: "Inns.", "note": 'It\'s 100% "theirs"'}


def test_freeze_changes_nothing(table: Table) -> None:
    """All that differs is told, with the statements that a person would run; then they are run, and it fits."""
    table.respec(spec("freeze", {"rooms": "bigint", "stars": "text"}, description="Other inns."))
    told = refusal(table.target.check)
    assert told == [
        'column rooms is integer, not bigint: alter table "shop"."inns" alter column "rooms" type bigint',
        'column stars is missing: alter table "shop"."inns" add column "stars" text',
    ]
    assert refusal(lambda: table.bring(inn(stars="4S")))
    for line in told:
        table.hand.execute(line.split(": ", 1)[1].encode())
    table.bring(inn(stars="4S"))
    assert columns(table) == {
        "id": "text",
        "rooms": "bigint",
        "price": "numeric(6,2)",
        "_sluice_deleted_at": "timestamp with time zone",
        "stars": "text",
    }
    assert comments(table)[None] != "Other inns."


def test_add_adds_columns_and_keeps_comments_true(table: Table) -> None:
    """What is planned is told at review, and done with the publication; types are left alone."""
    table.respec(
        spec(
            "add",
            {"stars": {"type": "text", "description": "How many."}, "rooms": {"type": "integer", "description": "In all."}},
        )
    )
    assert table.target.check() == (
        'alter table "shop"."inns" add column "stars" text -- column stars is missing',
        """comment on column "shop"."inns"."rooms" is 'In all.' -- the description of column rooms changed""",
        """comment on column "shop"."inns"."stars" is 'How many.' -- the description of column stars changed""",
    )
    table.bring(inn(stars="4S"))
    assert (table.rows("id, stars"), table.target.check()) == ([{"id": "a", "stars": "4S"}], ())
    table.respec(spec("add", {"rooms": "bigint"}))
    assert len(refusal(table.target.check)) == 1


def test_a_required_column_takes_nulls_where_rows_have_none(table: Table) -> None:
    """The difference is told; an empty table gets it as declared."""
    new = spec("add", {"stars": {"type": "text", "required": True}})
    table.respec(new)
    (planned,) = table.target.check()
    assert planned == (
        'alter table "shop"."inns" add column "stars" text -- column stars is missing; '
        "it will take nulls, although it is required, since the rows that are there have none"
    )
    table.hand.execute("delete from shop.inns")
    assert table.target.check()[0].startswith('alter table "shop"."inns" add column "stars" text not null --')


def test_widen_alters_types_without_loss(table: Table) -> None:
    """The rows keep their values; what stays is not touched, and what is no longer required takes nulls."""
    table.respec(spec("widen", {"price": {"type": "numeric(6,2)", "required": True}}))
    table.hand.execute("alter table shop.inns alter price set not null")
    table.bring(inn(rooms=8))
    table.respec(spec("widen", {"rooms": "bigint", "price": "numeric(10,4)"}))
    assert [statement.split(" -- ")[0] for statement in table.target.check()] == [
        'alter table "shop"."inns" alter column "rooms" type bigint',
        'alter table "shop"."inns" alter column "price" type numeric(10,4)',
        'alter table "shop"."inns" alter column "price" drop not null',
    ]
    table.bring(inn("b", rooms=2**40, price=None))
    rows = [(row["id"], row["rooms"], row["price"] and str(row["price"])) for row in table.rows()]
    assert rows == [("a", 8, "1.5000"), ("b", 2**40, None)]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"rooms": "text"}, 'column rooms is integer, not text: alter table "shop"."inns" alter column "rooms" type text using "rooms"::text'),
        ({"price": "numeric(5,2)"}, 'column price is numeric(6,2), not numeric(5,2): alter table "shop"."inns" alter column "price" type numeric(5,2) using "price"::numeric(5,2)'),
        ({"id": "uuid"}, 'column id is text, not uuid: alter table "shop"."inns" alter column "id" type uuid using "id"::uuid'),
    ],
)  # fmt: skip
def test_what_might_lose_something_is_left_to_a_person(table: Table, fields: Fields, told: str) -> None:
    """Even under widen; the statement is told, and nothing is done."""
    before = columns(table)
    table.respec(spec("widen", fields))
    assert (refusal(table.target.check), columns(table)) == ([told], before)


def test_another_key_is_left_to_a_person(table: Table) -> None:
    """The old one stays until somebody decides."""
    table.respec(sync_spec(FIELDS, object={"key": ["id", "rooms"]}, target={"table": "shop.inns", "evolution": "widen"}))
    assert refusal(table.target.check) == ['no unique key on (id, rooms): alter table "shop"."inns" add unique ("id", "rooms")']


def test_what_is_the_users_stays(table: Table) -> None:
    """Columns, indexes, constraints, triggers, comments and grants that the spec does not know live through an evolution."""
    table.hand.execute(
        """
        alter table shop.inns add column "Odd ""name" serial, add column twice integer generated always as (rooms * 2) stored,
            add check (rooms > 0);
        comment on column shop.inns.twice is 'Mine.';
        create index mine on shop.inns (price);
        create function shop.noted() returns trigger language plpgsql as 'begin new.note = ''noted''; return new; end';
        alter table shop.inns add column note text;
        create trigger noted before insert or update on shop.inns for each row execute function shop.noted();
        grant select on shop.inns to public
        """
    )
    table.respec(spec("widen", {"stars": "text", "price": "numeric(10,2)"}))
    table.bring(inn(stars="4S"))
    (row,) = table.rows('"Odd ""name", twice, note, stars')
    assert row == {'Odd "name': 1, "twice": 14, "note": "noted", "stars": "4S"}
    assert comments(table)["twice"] == "Mine."
    found = table.hand.execute("select array(select indexname::text from pg_indexes where schemaname = 'shop' order by 1)")
    assert found.fetchone() == (["inns_pkey", "mine"],)
    assert table.hand.execute("select has_table_privilege('public', 'shop.inns', 'select')").fetchone() == (True,)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("alter table shop.inns add column \"Need\" text not null default 'x'; alter table shop.inns alter \"Need\" drop default", 'column Need is not in the spec and takes no null: alter table "shop"."inns" alter column "Need" drop not null'),
        ("alter table shop.inns alter price set not null", 'column price takes no null, and is not required: alter table "shop"."inns" alter column "price" drop not null'),
        ("alter table shop.inns drop column rooms; alter table shop.inns add rooms integer generated always as identity", "column rooms is written by Postgres itself: name the field otherwise"),
        ("alter table shop.inns drop column rooms; alter table shop.inns add rooms integer generated always as (1) stored", "column rooms is written by Postgres itself: name the field otherwise"),
        ("alter table shop.inns drop constraint inns_pkey, add unique (id) deferrable", 'no unique key on (id): alter table "shop"."inns" add unique ("id")'),
        ("alter table shop.inns drop constraint inns_pkey; create unique index on shop.inns (id) where price > 1", 'no unique key on (id): alter table "shop"."inns" add unique ("id")'),
        ("alter table shop.inns drop constraint inns_pkey; create unique index on shop.inns (lower(id))", 'no unique key on (id): alter table "shop"."inns" add unique ("id")'),
        ("drop table shop.inns; create view shop.inns as select 1 as id", "inns is no table, but a view or the like"),
    ],
)  # fmt: skip
def test_what_would_fail_later_is_refused_at_review(table: Table, made: str, told: str) -> None:
    """By name, and with what to do."""
    table.hand.execute(made.encode())
    assert told in refusal(table.target.check)


@pytest.mark.parametrize("moved", [False, True], ids=["renamed", "another-in-the-spec"])
def test_a_table_that_is_gone_is_not_made_anew_with_a_part_of_its_rows(table: Table, moved: bool) -> None:
    """What did not change would be missing for good; forgotten, all of it comes in as new, and deletions stay known."""
    table.bring(inn("b"))
    table.bring(inn("a"), complete=True)
    if moved:
        table.respec(spec(table="shop.lodgings"))
    else:
        table.hand.execute("alter table shop.inns rename to lodgings")
    with pytest.raises(TargetMismatch) as refused:
        table.target.check()
    what, statement = refused.value.message.splitlines()[-1].split(": delete ")
    assert what == "it is missing, and held 1 objects: give it its name back, or forget them before a full run"
    with pytest.raises(TargetMismatch, match="it is missing, and held 1 objects"):
        table.bring(inn("a", rooms=8))
    table.hand.execute(f"delete {statement}".encode())
    assert table.hand.execute("select key, state from sluice_ledger.object").fetchall() == [("b", "deleted")]
    table.bring(inn("a"))
    assert table.hand.execute(f"select id from shop.{'lodgings' if moved else 'inns'}".encode()).fetchall() == [("a",)]


def test_an_included_column_and_an_identity_by_default_do_no_harm(table: Table) -> None:
    """What an insert gets along with is no difference."""
    table.hand.execute(
        "alter table shop.inns drop constraint inns_pkey; create unique index on shop.inns (id) include (price);"
        "alter table shop.inns drop column rooms; alter table shop.inns add rooms integer generated by default as identity"
    )
    table.hand.execute("alter table shop.inns alter rooms drop identity, alter rooms drop not null")
    table.hand.execute("alter table shop.inns add line integer generated by default as identity")
    table.bring(inn("b"))
    assert len(table.rows()) == 2


@pytest.mark.parametrize(
    ("made", "dependent"),
    [
        ("create view shop.large as select id from shop.inns where rooms > 10", "view shop.large"),
        ("alter table shop.inns add twice integer generated always as (rooms * 2) stored", "column twice of table shop.inns"),
        ("create function shop.f() returns trigger language plpgsql as 'begin return new; end'; create trigger t after update of rooms on shop.inns for each row execute function shop.f()", "trigger t on table shop.inns"),
        ("alter table shop.inns enable row level security; create policy p on shop.inns using (rooms > 0)", "policy p on table shop.inns"),
    ],
)  # fmt: skip
def test_what_depends_on_a_column_stops_its_widening(table: Table, made: str, dependent: str) -> None:
    """Postgres would refuse it; so it is refused at review, with what has to be made anew."""
    table.hand.execute(made.encode())
    table.respec(spec("widen", {"rooms": "bigint"}))
    (line,) = refusal(table.target.check)
    assert line == (
        f"column rooms is integer, not bigint, and what depends on it has to be dropped before and made anew after ({dependent}): "
        'alter table "shop"."inns" alter column "rooms" type bigint'
    )


def test_what_only_postgres_can_tell_is_told_too(table: Table) -> None:
    """A refusal of the statement itself ends the publication, names both, and leaves everything as it was."""
    table.hand.execute(
        "create function shop.no() returns event_trigger language plpgsql as 'begin raise insufficient_privilege; end'"
    )
    table.hand.execute("create event trigger no on ddl_command_start when tag in ('ALTER TABLE') execute function shop.no()")
    table.respec(spec("add", {"stars": "text"}))
    with pytest.raises(TargetMismatch, match='add column "stars" text: Postgres refuses this: insufficient_privilege'):
        table.bring(inn(stars="4S"))
    table.hand.execute("drop event trigger no")
    assert "stars" not in columns(table)


def test_a_publication_that_fails_leaves_the_table_as_it_was(table: Table) -> None:
    """Columns come and go with the transaction that needs them."""
    table.respec(spec("add", {"stars": {"type": "text"}}))
    table.hand.execute("alter table shop.inns add check (rooms < 10)")
    with pytest.raises(TargetMismatch, match="does not take what would be published"):
        table.bring(inn(rooms=11, stars="4S"))
    assert "stars" not in columns(table)
    assert table.rows("rooms") == [{"rooms": 7}]


def test_rows_can_be_read_as_of_the_spec_that_wrote_them(table: Table) -> None:
    """Also behind an evolution; as of a spec whose columns are not there yet, they cannot."""
    before, after = spec(), spec("widen", {"rooms": "bigint", "price": "numeric(10,4)", "stars": "text"})
    with table.target.held() as rows:
        ((hashed, values),) = [(row.row_hash, row.values) for row in rows]
    table.respec(after)
    with pytest.raises(TargetMismatch, match=r"table shop\.inns has no column stars to read yet"), table.target.held():
        pass
    table.bring(inn("b", stars="4S"))
    table.respec(before)
    with table.target.held() as rows:
        again = {row.key: (row.row_hash, row.values) for row in rows}
    assert again["a"] == (hashed, {**values, "price": "1.5000"})


def test_a_table_that_others_read_is_not_waited_for_long(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits to alter it holds up all who come after; so the publication gives up, to be tried again."""
    monkeypatch.setattr(evolution, "_PATIENCE", "50ms")
    table.respec(spec("add", {"stars": "text"}))
    with table.hand.transaction():
        table.rows()
        with pytest.raises(TargetUnavailable, match="lock timeout"):
            table.bring(inn(stars="4S"))
    table.bring(inn(stars="4S"))
    assert table.rows("stars") == [{"stars": "4S"}]
