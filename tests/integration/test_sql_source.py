"""A Postgres as a source: which pages it yields, what each value becomes, and what its errors say."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

from sluice.adapters.postgres import conninfo
from sluice.adapters.sources.sql.fragments import Fragment, in_order
from sluice.adapters.targets.arrow_copy import copy_in
from sluice.errors import (
    AnswerTooLarge,
    AnswerUnusable,
    ConnectionInvalid,
    SluiceError,
    SpecInvalid,
    SupplierRefused,
    SupplierUnavailable,
)
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import ConnectionInfo
from tests.support.warehouse import ALL, POLICY, Warehouse, ids, records
from tests.unit.mapping.workbench import map_records, sync_spec, table_of


@pytest.fixture
def warehouse(empty_database: ConnectionInfo) -> Warehouse:
    """An empty database of a supplier."""
    return Warehouse(empty_database)


def test_a_table_comes_in_pages_in_the_order_of_its_key(warehouse: Warehouse) -> None:
    """Each row once; the last page says that nothing follows, also where it is full."""
    warehouse.run(
        "create table things (id bigint primary key, name text)",
        "insert into things select n, 'n' || n from generate_series(6, 1, -1) n",
    )
    pages = list(warehouse.source(table="things", size=2).pages(ALL))
    assert [page.body for page in pages] == [
        b'[{"id":1,"name":"n1"},{"id":2,"name":"n2"}]',
        b'[{"id":3,"name":"n3"},{"id":4,"name":"n4"}]',
        b'[{"id":5,"name":"n5"},{"id":6,"name":"n6"}]',
    ]
    assert [page.records for page in pages] == [2, 2, 2]
    assert [page.cursor for page in pages] == [["2"], ["4"], None]


def test_an_empty_table_is_one_empty_page(warehouse: Warehouse) -> None:
    """That there is nothing is an answer as well."""
    warehouse.run("create table things (id bigint primary key)")
    assert [(page.body, page.cursor) for page in warehouse.source(table="things").pages(ALL)] == [(b"[]", None)]


def test_names_are_taken_as_the_database_spells_them(warehouse: Warehouse) -> None:
    """Schemas, tables and columns in odd spelling: blanks, quotes, capitals, signs of percent."""
    warehouse.run(
        'create schema "My ""Shop"',
        'create table "My ""Shop"."Things%s" ("I d%" text primary key)',
        """insert into "My ""Shop"."Things%s" values ('a'), ('b')""",
    )
    source = warehouse.source(table='My "Shop.Things%s', key=["I d%"], size=1)
    assert records(source.pages(ALL)) == [{"I d%": "a"}, {"I d%": "b"}]
    assert records(source.pages(replace(ALL, cursor=["a"]))) == [{"I d%": "b"}]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", ["a", "ä", "b", "B", "Z", "z", ""]),
        ('text collate "C"', ["a", "B", "z", "é"]),
        ("varchar(5)", ["a b", "a", "a\\", 'a"']),
        ("char(3)", ["a", "ab", "b"]),
        ("numeric", ["1.10", "1.1000001", "-5", "12345678901234567890.5"]),
        ("double precision", ["0.1", "1e-300", "Infinity", "-1", "NaN"]),
        ("timestamptz", ["2026-01-01 00:00:00.000001+05:30", "0044-03-15 00:00:00 BC", "infinity"]),
        ("timestamp", ["2026-01-01 00:00:00.5", "9999-12-31"]),
        ("date", ["2026-01-01", "0001-01-01"]),
        ("interval", ["1 day", "23:00:00", "1 mon -3 days 00:00:00.000001"]),
        ("bytea", ["\\xff00", "\\x00", "\\x"]),
        ("uuid", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"]),
        ("boolean", ["true", "false"]),
        ("mood", ["sad", "fine"]),
        ("short", ["b", "a"]),
        ("int[]", ["{1,2}", "{1}"]),
    ],
)
def test_reading_goes_on_behind_any_key(warehouse: Warehouse, kind: str, values: list[str]) -> None:
    """Whatever the type and collation of a key, each page of one row leads exactly to the next row."""
    warehouse.run("create type mood as enum ('sad', 'fine')", "create domain short as varchar(2)")
    warehouse.run(f"create table things (one int, id {kind}, primary key (one, id))")
    with psycopg.connect(conninfo(warehouse.info), options="-c timezone=UTC -c intervalstyle=iso_8601") as connection:
        plain = kind.partition(" collate")[0]
        insert = f"insert into things select n, v::{plain} from unnest(%s::text[]) v, generate_series(1, 2) n"
        connection.execute(insert.encode(), (values,))
        (expected,) = connection.execute("select json_agg(id order by one, id) from things").fetchone() or ([],)
    source, cursor, seen = warehouse.source(table="things", key=["one", "id"], size=1), None, []
    for _ in range(2 * len(values)):
        page = next(source.pages(replace(ALL, cursor=cursor)))
        seen += records([page])
        cursor = page.cursor
    assert [record["id"] for record in seen] == expected
    assert cursor is None


@pytest.mark.parametrize(
    "keys",
    [
        {"table": "things"},
        {"table": "pairs", "key": ["one", "id"]},
        {"table": "seen"},
        {"table": None, "query": "select * from things"},
    ],
)
def test_a_row_without_a_key_is_never_gone_past(warehouse: Warehouse, keys: dict[str, Any]) -> None:
    """It is an error also where reading goes on behind a key, which nulls do not compare with."""
    warehouse.run(
        "create table things (one int default 1, id int unique)",
        "create table pairs (one int not null, id int, unique (one, id))",
        "create view seen as select * from things",
        "insert into things (id) values (1), (2), (null)",
        "insert into pairs values (1, 1), (2, 2), (2, null)",
    )
    source = warehouse.source(size=1, **keys)
    first = next(source.pages(ALL))
    with pytest.raises(AnswerUnusable, match=r"id of source\.key is null"):
        list(source.pages(replace(ALL, cursor=first.cursor)))
    behind_all_keys = ["2"] * len(keys.get("key", ["id"]))
    with pytest.raises(AnswerUnusable, match=r"id of source\.key is null"):
        list(source.pages(replace(ALL, cursor=behind_all_keys)))


def test_what_is_read_stands_still(warehouse: Warehouse) -> None:
    """Rows that are changed, removed or added while a shard is read are as they were when its reading began."""
    warehouse.run(
        "create table things (id int primary key, name text)",
        "insert into things select n, 'old' from generate_series(1, 6) n",
    )
    pages = warehouse.source(table="things", size=2).pages(ALL)
    first = next(pages)
    warehouse.run("update things set name = 'new'", "delete from things where id = 6", "insert into things values (0, 'new')")
    assert records([first, *pages]) == [{"id": n, "name": "old"} for n in range(1, 7)]


def test_a_lost_connection_costs_no_row_and_doubles_none(warehouse: Warehouse) -> None:
    """Reading goes on behind the last page in a new snapshot."""
    warehouse.run("create table things (id int primary key)", "insert into things select generate_series(1, 7)")
    policy = StagePolicy(retry=RetryPolicy(attempts=2, base=timedelta(milliseconds=1)))
    pages = warehouse.source(table="things", size=2, policy=policy).pages(ALL)
    first = next(pages)
    warehouse.run(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sluice' and pid <> pg_backend_pid()",
        "insert into things values (8), (0)",
    )
    assert [record["id"] for record in records([first, *pages])] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_nothing_is_written_and_nothing_is_left_open(warehouse: Warehouse) -> None:
    """The transaction can only read, and ends when nobody wants more pages."""
    warehouse.run("create table things (id int primary key)", "insert into things select generate_series(1, 7)")
    warehouse.run("create sequence numbers")
    with pytest.raises(SupplierRefused, match="read-only transaction"):
        ids(warehouse.source(query="select nextval('numbers') as id"))
    pages = warehouse.source(table="things", size=2).pages(ALL)
    next(pages)
    pages.close()
    with psycopg.connect(conninfo(warehouse.info)) as connection:
        open_ones = connection.execute("select count(*) from pg_stat_activity where datname = current_database()").fetchone()
    assert open_ones == (1,)


REFUSALS: list[tuple[dict[str, Any], type[SluiceError], str]] = [
    ({"table": "nothing"}, SpecInvalid, "no table within sight that is called nothing"),
    ({"table": "other.things"}, SpecInvalid, "no schema other with a table things"),
    ({"table": "things", "key": ["idd"]}, SpecInvalid, "no column 'idd'; did you mean 'id'"),
    ({"table": "loose"}, SpecInvalid, "no unique index .* the table has none"),
    ({"table": "things", "key": ["name"]}, SpecInvalid, "name the columns of one that is: id"),
    (
        {"query": "select id,\n nam from things"},
        SupplierRefused,
        r"at `nam from things` in line 2 of source.query: column \"nam\"",
    ),
    (
        {"query": "select 1 as id, 2 as n, 3 as n, 4, 5"},
        SpecInvalid,
        r"several columns are called '\?column\?', 'n': name each of them by `as`",
    ),
    ({"query": "select a.*, a.name from things a where false"}, SpecInvalid, "several columns are called 'name'"),
    ({"query": "selec 1"}, SupplierRefused, r"at `1` in line 1 of source.query: syntax error"),
    ({"query": "select id from things", "key": ["no"]}, SupplierRefused, "column sluice_row.no does not exist"),
    ({"query": "select 1 as id; drop table things"}, SupplierRefused, "syntax error"),
    ({"query": "select id from secret"}, SupplierRefused, "secret"),
    ({"query": "select id from loose"}, AnswerUnusable, "two rows have the same key 1"),
    ({"query": "select null as id"}, AnswerUnusable, "column id of source.key is null"),
    ({"query": "select repeat('x', 5000) || n as id from generate_series(1, 2) n"}, AnswerUnusable, "more than 4096 bytes"),
    ({"query": "select 1 as id from pg_sleep(5)"}, SupplierUnavailable, "statement timeout"),
    ({"query": "select 1 / 0 as id"}, SupplierRefused, "division by zero"),
    ({"query": "select refuse('54001') as id"}, SupplierRefused, r"no \(54001\)"),
    ({"query": "select refuse('08P01') as id"}, SupplierRefused, r"no \(08P01\)"),
    ({"query": "select refuse('08006') as id"}, SupplierUnavailable, "broke off: no"),
]


@pytest.mark.parametrize(("keys", "error", "said"), REFUSALS)
def test_what_is_wrong_is_named(warehouse: Warehouse, keys: dict[str, Any], error: type[SluiceError], said: str) -> None:
    """What Postgres or the spec has got wrong comes with the place and the mend, and by what is to be done next."""
    warehouse.run(
        "create table things (id int primary key, name text)",
        "create table loose (id int)",
        "insert into loose values (1), (1)",
        """create function refuse(code text) returns int language plpgsql as
        $$ begin raise 'no' using errcode = code; end $$""",
    )
    policy = POLICY.model_copy(update={"timeouts": POLICY.timeouts.model_copy(update={"read": timedelta(seconds=1)})})
    with pytest.raises(error, match=said):
        list(warehouse.source(policy=policy, **keys).pages(ALL))


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"password": "canary"}, ConnectionInvalid, "password authentication failed"),
        ({"schema": "nowhere"}, ConnectionInvalid, "does not exist"),
        ({"port": 1}, SupplierUnavailable, "cannot be reached"),
        ({"conn_type": "http"}, ConnectionInvalid, "of type http"),
    ],
)
def test_a_server_that_lets_nobody_in_is_told_from_none(
    warehouse: Warehouse, change: dict[str, Any], error: type[SluiceError], said: str
) -> None:
    """What will never work is not tried again, and no password is ever shown."""
    with pytest.raises(error, match=said) as raised:
        warehouse.source(info=replace(warehouse.info, **change), query="select 1 as id").now()
    assert "canary" not in str(raised.value)


def test_a_page_is_bounded(warehouse: Warehouse) -> None:
    """Rows that are larger than an answer may be are refused, with what to do about it."""
    policy = POLICY.model_copy(update={"max_body": 1000})
    with pytest.raises(AnswerTooLarge, match=r"lower source\.size"):
        list(warehouse.source(query="select repeat('x', 1001) as id", policy=policy).pages(ALL))


def test_a_page_of_many_rows_is_bounded_before_they_are_here(warehouse: Warehouse) -> None:
    """Of a million rows no more are received than show that they are too large; the page of as many as fit is whole."""
    policy = POLICY.model_copy(update={"max_body": 20_000})
    large = warehouse.source(query="select n as id from generate_series(1, 1000000) n", size=99_000, policy=policy)
    with pytest.raises(AnswerTooLarge, match=r"2000 rows have 2\d{4} bytes"):
        list(large.pages(ALL))
    sizes = [
        page.records
        for page in warehouse.source(query="select n as id from generate_series(1, 1601) n", size=800, policy=policy).pages(ALL)
    ]
    assert sizes == [800, 800, 1]


def test_the_time_is_the_servers(warehouse: Warehouse) -> None:
    """The time of a page is not after what it shows."""
    source = warehouse.source(query="select clock_timestamp() as id")
    before = source.now()
    page = next(source.pages(ALL))
    assert page.supplied_at is not None
    assert before <= page.supplied_at <= datetime.fromisoformat(json.loads(page.body)[0]["id"])


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
VALUES = st.fixed_dictionaries(
    {
        "big": st.integers(-(2**63), 2**63 - 1),
        "exact": st.decimals(-(10**30), 10**30, allow_nan=False),
        "double": st.floats(allow_nan=False, allow_infinity=False),
        "at": st.datetimes(timezones=st.just(UTC)),
        "day": st.dates(),
        "words": WORDS,
        "flag": st.booleans(),
        "code": st.uuids(),
        "lists": st.lists(st.none() | st.decimals(-(10**30), 10**30, allow_nan=False), max_size=4),
        "more_words": st.lists(
            st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4
        ),
    }
)
TYPES = {"big": "bigint", "exact": "numeric", "double": "double precision", "at": "timestamptz", "day": "date"}
TYPES |= {"words": "text", "flag": "boolean", "code": "uuid", "lists": "numeric[]", "more_words": "text[]"}


@given(row=VALUES)
@example(row={"double": 5e-324})
@example(row={"at": datetime.max.replace(tzinfo=UTC), "day": date.min})
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_values_are_read_back_exactly(warehouse: Warehouse, row: dict[str, Any]) -> None:
    """What a supplier's row holds is what the mapper takes out of its page, whatever the server would rather spell."""
    warehouse.run(
        "set client_min_messages = 'error'; drop table if exists things",
        "create table things (id int primary key, " + ", ".join(f"{name} {kind}" for name, kind in TYPES.items()) + ")",
        f"alter database {warehouse.info.schema} set datestyle = 'German'",
        f"alter database {warehouse.info.schema} set extra_float_digits = '-5'",
        f"alter database {warehouse.info.schema} set timezone = 'Asia/Kathmandu'",
    )
    with psycopg.connect(conninfo(warehouse.info)) as connection:
        names = ", ".join(["id", *row])
        marks = ", ".join(["1", *(f"%s::{TYPES[name]}" for name in row)])
        connection.execute(f"insert into things ({names}) values ({marks})".encode(), list(row.values()))
    (page,) = warehouse.source(table="things").pages(ALL)
    chunk = map_records(sync_spec({"id": "text", **TYPES}), page.body.decode()[1:-1])
    assert not chunk.rejects, chunk.rejects
    connection = psycopg.connect(conninfo(warehouse.info))
    with connection:
        cursor = connection.cursor()
        copied = ", ".join(f"{name} text" for name in TYPES)
        cursor.execute(f"create temp table mapped ({copied})".encode())
        copy_in(cursor, sql.Identifier("mapped"), table_of(chunk).select(list(TYPES)))
        same = " and ".join(f"mapped.{name}::{kind} is not distinct from things.{name}" for name, kind in TYPES.items())
        assert cursor.execute(f"select {same} from mapped, things".encode()).fetchone() == (True,)


ODD = [
    ("numeric", "'NaN'::numeric", "numeric", '"NaN" is no numeric'),
    ("infinite", "'-Infinity'::numeric", "numeric", '"-Infinity" is no numeric'),
    ("double", "'Infinity'::float8", "double precision", '"Infinity" is no double precision'),
    ("day", "'infinity'::date", "date", '"infinity" is no date'),
    ("before_christ", "'0044-03-15 BC'::date", "date", '"0044-03-15 BC" is no date'),
    ("far", "'10000-01-01'::date", "date", '"10000-01-01" is no date'),
    ("moment", "'-infinity'::timestamptz", "timestamptz", '"-infinity" is no timestamp'),
    ("local", "'2024-01-01 00:00'::timestamp", "timestamptz", "has no offset"),
    ("money", "1234.5::money", "numeric", '"$1,234.50" is no numeric'),
    ("bytes", "'\\x00ff'::bytea", "integer", r'"\\x00ff" is no integer'),
    ("grid", "array[[1, 2], [3, 4]]", "integer[]", "item 0: [1,2] is an object or array, not integer"),
    ("items", "array['NaN']::float8[]", "double precision[]", 'item 0: "NaN" is no double precision'),
]


def test_values_that_a_type_cannot_hold_are_named(warehouse: Warehouse) -> None:
    """What only Postgres has, such as infinite dates, is refused by name and field, and comes through as text."""
    columns = ", ".join(f"{value} as {name}" for name, value, _, _ in ODD)
    (page,) = warehouse.source(query=f"select 1 as id, {columns}").pages(ALL)
    for name, _, kind, message in ODD:
        (reject,) = map_records(sync_spec({"id": "text", name: kind}), page.body.decode()[1:-1]).rejects
        assert reject.message.startswith(f"{name}: ")
        assert message in reject.message
    assert not map_records(sync_spec({"id": "text", **{name: "json" for name, *_ in ODD}}), page.body.decode()[1:-1]).rejects


def test_reading_on_is_served_by_an_index(warehouse: Warehouse) -> None:
    """Of a query, too, whose key nobody knows to be never null: no row before the key is read again, none is sorted."""
    warehouse.run(
        "create table things (one int, id int)",
        "insert into things select n % 7, n from generate_series(1, 20000) n",
        "create index on things (one, id)",
        "analyze things",
    )
    key = ["one", "id"]
    statement = in_order(Fragment("(select * from things)"), key, [], ["5", "19000"], nullable=key)
    with psycopg.connect(conninfo(warehouse.info)) as connection:
        plan = connection.execute(b"explain (costs off) declare rows cursor for " + statement.for_psycopg, statement.values)
        ordered = "\n".join(line for (line,) in plan).partition("->  Limit")[0]
    assert "Index Cond: (ROW(one, id) > ROW(5, 19000))" in ordered
    assert "Sort" not in ordered
    assert "Filter" not in ordered
