"""What is asked of a table or by a query: watermarks, windows, shards and templates in; just the rows that are meant out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sluice.errors import SpecInvalid
from sluice.ports import ConnectionInfo
from tests.support.warehouse import Warehouse, ids

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def warehouse(empty_database: ConnectionInfo) -> Warehouse:
    """An empty database of a supplier."""
    return Warehouse(empty_database)


@pytest.mark.parametrize(
    ("columns", "watermark", "mark", "expected"),
    [
        (("timestamptz", "timestamptz"), "at", "2026-01-01T12:00:00Z", [2, 3]),
        (("timestamp", "text"), {"fields": ["at"], "type": "instant"}, "2026-01-01T12:00:00", [2, 3]),
        (("timestamp", "text"), {"fields": ["at"], "type": "instant", "zone": "Europe/Berlin"}, "2026-01-01T11:00:00Z", [2, 3]),
        (("date", "date"), "at", "2026-01-01", [1, 2, 3]),
        (("date", "date"), "at", "2026-01-02", [3]),
    ],
)
def test_only_what_is_not_below_the_watermark_is_asked_for(
    warehouse: Warehouse, columns: tuple[str, str], watermark: Any, mark: str, expected: list[int]
) -> None:
    """The bound belongs to what is wanted; a row without a value has no place in time."""
    column, field = columns
    warehouse.run(
        f"create table things (id int primary key, at {column})",
        "insert into things values (1, '2026-01-01 11:59:59.999999'), (2, '2026-01-01 12:00:00'), (3, '2026-01-02'), (4, null)",
    )
    fields = [{"name": "id", "type": "bigint"}, {"name": "at", "type": field}]
    source = warehouse.source({"fields": fields}, table="things", watermark=watermark)
    assert ids(source, watermark=mark) == expected
    assert ids(source) == [1, 2, 3, 4]


def test_a_window_is_asked_for_by_the_watermark(warehouse: Warehouse) -> None:
    """Its beginning is part of it, and its end is not."""
    warehouse.run(
        "create table things (id int primary key, at timestamptz)",
        "insert into things select n, timestamptz '2026-01-01 10:00Z' + n * interval '1 hour' from generate_series(1, 4) n",
    )
    source = warehouse.source(table="things", watermark="at")
    assert ids(source, window_start=NOON, window_end=NOON + timedelta(hours=1)) == [2]


def test_several_columns_are_one_watermark(warehouse: Warehouse) -> None:
    """The first that is not null counts, whatever the others say."""
    warehouse.run(
        "create table things (id int primary key, at timestamptz, made timestamptz)",
        "insert into things values (1, '2026-01-01 11:00Z', '2026-01-01 13:00Z'), (2, null, '2026-01-01 12:00Z')",
    )
    fields = [{"name": "id", "type": "bigint"}, *({"name": name, "type": "timestamptz"} for name in ("at", "made"))]
    source = warehouse.source({"fields": fields}, table="things", watermark={"fields": ["at", "made"]})
    assert ids(source, watermark="2026-01-01T12:00:00Z") == [2]


@pytest.mark.parametrize(
    ("field", "more", "mark", "expected"),
    [
        ("text", {"collation": "numeric"}, "9", [2, 3, 4]),
        ("text", {"type": "integer"}, "9", [2, 3, 4]),
        ("bigint", {}, "9", [2, 3, 4]),
        ("text", {}, "9", [2, 4]),
        ("text", {}, "B", [4]),
    ],
)
def test_texts_are_compared_as_the_spec_says(
    warehouse: Warehouse, field: str, more: dict[str, str], mark: str, expected: list[int]
) -> None:
    """By their characters, whatever the column's own collation, or as whole numbers; what is no number is always wanted."""
    warehouse.run(
        "create table things (id int primary key, at text)",
        "insert into things values (1, '8'), (2, '9'), (3, '10'), (4, 'a'), (5, null)",
    )
    fields = [{"name": "id", "type": "bigint"}, {"name": "at", "type": field}]
    source = warehouse.source({"fields": fields}, table="things", watermark={"fields": ["at"], **more})
    assert ids(source, watermark=mark) == expected


@pytest.mark.parametrize(
    ("column", "mark", "expected"),
    [
        ("bigint", "10.5", [2, 3]),
        ("integer", "10", [2, 3]),
        ("smallint", "-3.25", [1, 2, 3]),
        ("numeric", "10.5", [3]),
        ("double precision", "10.5", [3]),
    ],
)
def test_an_epoch_is_asked_for_in_a_form_that_its_column_takes(
    warehouse: Warehouse, column: str, mark: str, expected: list[int]
) -> None:
    """Of whole numbers from the one below on, so that nothing is missed; a column with fractions is held against them."""
    warehouse.run(
        f"create table things (id int primary key, at {column})", "insert into things values (1, -4), (2, 10), (3, 11)"
    )
    warehouse.run("insert into things values (0, -5), (4, null)")
    fields = [{"name": "id", "type": "bigint"}, {"name": "at", "type": "timestamptz", "format": "epoch_s"}]
    assert ids(warehouse.source({"fields": fields}, table="things", watermark="at"), watermark=mark) == expected


@pytest.mark.parametrize(("field", "more"), [("timestamptz", {}), ("text", {"type": "instant"})])
def test_texts_are_not_compared_as_instants(warehouse: Warehouse, field: str, more: dict[str, str]) -> None:
    """Each may have an offset of its own, so that their characters say nothing of what is later."""
    warehouse.run("create table things (id int primary key, at text)")
    fields = [{"name": "id", "type": "bigint"}, {"name": "at", "type": field}]
    source = warehouse.source({"fields": fields}, table="things", watermark={"fields": ["at"], **more})
    with pytest.raises(SpecInvalid, match="column at is text, which does not order as instant: read it by a query"):
        ids(source, watermark="2026-01-01T12:00:00Z")


def test_a_range_may_end_beyond_what_its_column_can_hold(warehouse: Warehouse) -> None:
    """Whoever names the highest number there can be, or a higher one, gets the rows up to there."""
    warehouse.run("create table things (id int primary key)", "insert into things values (1), (2147483647)")
    source = warehouse.source({"shards": {"kind": "ranges", "last": 2**31 - 1, "size": 2**30, "column": "id"}}, table="things")
    assert ids(source, shard={"start": str(2**30), "end": str(2**31), "last": str(2**31 - 1)}) == [2147483647]
    assert ids(source, shard={"start": str(2**40), "end": str(2**41), "last": str(2**41 - 1)}) == []


@pytest.mark.parametrize(
    ("shards", "shard", "expected"),
    [
        ({"kind": "values", "name": "region", "values": ["north"]}, {"region": "north"}, [1, 3, 5]),
        (
            {"kind": "listed", "name": "region", "value": "v", "buckets": 2, "source": {"kind": "code", "code": "a.B"}},
            {"region": "north,east"},
            [1, 3, 5],
        ),
        ({"kind": "ranges", "last": 5, "size": 3, "column": "id"}, {"start": "3", "end": "6", "last": "5"}, [3, 4, 5]),
        (
            {"kind": "windows", "every": "1d", "column": "at"},
            {"start": "2026-01-02T00:00:00Z", "end": "2026-01-03T00:00:00Z"},
            [2],
        ),
    ],
)
def test_a_table_is_cut_into_shards(warehouse: Warehouse, shards: Any, shard: dict[str, str], expected: list[int]) -> None:
    """By the values of a column, by ranges of its numbers, or by spans of its time."""
    warehouse.run(
        "create table things (id int primary key, region text, at timestamp)",
        """insert into things select n, case n % 2 when 1 then 'north' else 'south' end, date '2026-01-01' + n - 1
        from generate_series(1, 5) n""",
    )
    assert ids(warehouse.source({"shards": shards}, table="things"), shard=shard) == expected


def test_buckets_share_a_table_and_stay(warehouse: Warehouse) -> None:
    """Each row is in one of them, about as many in each; one bucket more takes rows from all and moves no other."""
    warehouse.run(
        "create table things (id int, part text, primary key (id, part))",
        "insert into things select n, 'p' || n % 3 from generate_series(1, 1500) n",
    )

    def spread(count: int, salt: str = "") -> dict[int, int]:
        shards = {"kind": "buckets", "count": count, "salt": salt}
        source = warehouse.source({"shards": shards}, table="things", key=["id", "part"])
        found = {}
        for number in range(count):
            some = ids(source, shard={"bucket": str(number), "buckets": str(count)})
            assert 1500 / count * 0.7 < len(some) < 1500 / count * 1.3
            assert not found.keys() & set(some)
            found |= dict.fromkeys(some, number)
        return found

    three, four = spread(3), spread(4)
    assert len(three) == len(four) == 1500
    assert {four[key] for key in three if three[key] != four[key]} == {3}
    assert spread(3, salt="other") != three


def test_templates_are_parameters(warehouse: Warehouse) -> None:
    """Nothing a shard is called can change the statement; signs of percent and comments of the query are left alone."""
    warehouse.run(
        "create table things (id int primary key, name text)", """insert into things values (1, 'x%'' or true --'), (2, 'y')"""
    )
    query = "select * from things where name like '%%' and id % 5 > 0 and name = {{ shard.name }} -- 100%\n;"
    assert ids(warehouse.source(query=query), shard={"name": "x%' or true --"}) == [1]
    assert ids(warehouse.source(query=query), shard={"name": "y' or true --"}) == []


def test_a_query_asks_by_what_is_known(warehouse: Warehouse) -> None:
    """Blocks are left out where there is no watermark, and filters are applied before a value is a parameter."""
    warehouse.run("create table things (id int primary key)", "insert into things select generate_series(1, 9)")
    query = """
        with all_of_them as (select id from things)
        select * from all_of_them
        where true {% if watermark %} and id >= {{ watermark }} {% endif %}
        {% if until %} and id < {{ until | int }} {% endif %}
        limit {{ shard.most | int * 2 }}
    """
    source = warehouse.source(query=query, size=3)
    assert ids(source, shard={"most": "4"}) == list(range(1, 9))
    assert ids(source, shard={"most": "4"}, watermark="5", until="9") == [5, 6, 7, 8]
    assert ids(source, shard={"most": "4"}, cursor=["6"]) == [7, 8]


def test_a_value_in_quotes_is_refused(warehouse: Warehouse) -> None:
    """It would be no value, but a text that looks like one."""
    with pytest.raises(SpecInvalid, match="leave the quotes out"):
        ids(warehouse.source(query="select 1 as id where 'x' = '{{ shard.name }}'"), shard={"name": "x"})
