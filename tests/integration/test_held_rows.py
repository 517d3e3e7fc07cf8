"""What the table really holds, read back and hashed as the mapper hashed what it wrote, against a real Postgres."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.targets.arrow_copy import copy_in
from sluice.adapters.targets.postgres import PostgresTarget
from sluice.errors import TargetUnavailable
from sluice.model import rows
from sluice.model.base import ObjectKey
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo, Held
from tests.unit.mapping.test_documents import DOCUMENTS
from tests.unit.mapping.workbench import map_records, sync_spec, table_of

FIELDS: dict[str, str | dict[str, Any]] = {
    "id": "text",
    "part": "integer",
    "name": "text",
    "big": "bigint",
    "price": "numeric(30,6)",
    "free": "numeric",
    "width": "double precision",
    "open": "boolean",
    "day": "date",
    "at": "timestamptz",
    "code": "uuid",
    "more": "json",
}
SPEC = sync_spec(FIELDS, object={"key": ["id", "part"]}, target={"table": "held.things"})
_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


class Table:
    """A published table with rows that came through the mapper, and a hand that changes them."""

    def __init__(self, info: ConnectionInfo, spec: SyncSpec) -> None:
        self.spec = spec
        self.database = Database(info, TargetUnavailable)
        self.target = PostgresTarget(self.database, spec)
        self.hand = psycopg.connect(conninfo(info), autocommit=True)

    def close(self) -> None:
        self.hand.close()
        self.database.close()

    def put(self, *records: str) -> dict[str, bytes]:
        """Write the rows of some records, and return the hashes the mapper gave them, by key."""
        chunk = map_records(self.spec, *records)
        assert chunk.rejects == ()
        table = table_of(chunk)
        names = [field.name for field in self.spec.fields]
        with self.hand.transaction():
            columns = sql.SQL(", ").join(sql.SQL("{} text").format(sql.Identifier(name)) for name in names)
            self.hand.execute(sql.SQL("create temp table incoming ({}) on commit drop").format(columns))
            copy_in(self.hand.cursor(), sql.Identifier("incoming"), table.select(names))
            casts = sql.SQL(", ").join(
                sql.SQL("{}::{}").format(sql.Identifier(field.name), sql.SQL(field.type.sql)) for field in self.spec.fields
            )
            self.hand.execute("truncate held.things")
            self.hand.execute(
                sql.SQL("insert into held.things ({}) select {} from incoming").format(
                    sql.SQL(", ").join(map(sql.Identifier, names)), casts
                )
            )
        return dict(zip(table[rows.KEY].to_pylist(), table[rows.ROW_HASH].to_pylist(), strict=True))

    def held(self, keys: list[ObjectKey] | None = None) -> list[Held]:
        with self.target.held(keys) as found:
            return list(found)

    def hashes(self) -> dict[ObjectKey | None, bytes | None]:
        return {row.key: row.row_hash for row in self.held()}


@pytest.fixture
def table(database: ConnectionInfo) -> Iterator[Table]:
    with closing(Table(database, SPEC)) as table:
        names = ", ".join(f'"{field.name}" {field.type.sql}' for field in SPEC.fields)
        table.hand.execute("create schema held")
        table.hand.execute(f"create table held.things ({names}, _sluice_deleted_at timestamptz, unique (id, part))")
        yield table


def _token(value: object) -> str:
    return "null" if value is None else str(value)


RECORDS = st.fixed_dictionaries(
    {
        "id": _TEXTS.map(json.dumps),
        "part": st.integers(-(2**31), 2**31 - 1),
        "name": st.none() | _TEXTS.map(json.dumps),
        "big": st.none() | st.integers(-(2**63), 2**63 - 1),
        "price": st.none() | st.decimals(-(10**20), 10**20, places=6),
        "free": st.none() | st.decimals(-(10**30), 10**30, allow_nan=False, allow_infinity=False),
        "width": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "open": st.none() | st.booleans().map(lambda value: str(value).lower()),
        "day": st.none() | st.dates().map(lambda day: f'"{day}"'),
        "at": st.none() | st.datetimes().map(lambda moment: f'"{moment.isoformat()}+05:30"'),
        "code": st.none() | st.uuids().map(lambda code: f'"{code}"'),
        "more": st.none() | DOCUMENTS,
    }
)


@given(record=RECORDS)
@example(
    record={"id": '"\\u20ac \\" , \\\\"', "part": 1, "width": "-0.0", "free": "1.50", "more": '{"b": 1.0, "a": [1e2, "x"]}'}
)
@example(record={"id": '""', "part": 0, "at": '"0001-01-01T00:00:00Z"', "day": '"9999-12-31"', "width": "5e-324"})
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_written_hashes_as_it_was_mapped(table: Table, record: dict[str, object]) -> None:
    """Whatever the values, a row read back has the key and the hash that the mapper gave it."""
    line = "{" + ", ".join(f'"{name}": {_token(value)}' for name, value in record.items()) + "}"
    if map_records(SPEC, line).rejects:  # an instant outside the calendar in UTC
        return
    written = table.put(line)
    assert table.hashes() == written


RECORD = (
    '{"id": "a", "part": 1, "free": 1.5, "width": 0.0, "at": "2026-01-01T00:00:00Z", "more": {"a": 1, "b": [1.0]}, "name": "x"}'
)


@pytest.mark.parametrize(
    "change",
    [
        "free = 1.500",
        "at = '2026-01-01 02:00:00+02'",
        'more = \'{"b": [1], "a": 1.0}\'',
        "width = -0.0",
    ],
)
def test_what_is_only_spelled_otherwise_is_not_changed(table: Table, change: str) -> None:
    """A hand that writes an equal value in another spelling has changed nothing."""
    written = table.put(RECORD)
    table.hand.execute(f"update held.things set {change}")  # type: ignore[arg-type]
    assert table.hashes() == written


@pytest.mark.parametrize(
    ("change", "can_be_ours"),
    [
        ("free = 1.51", True),
        ("name = ''", True),
        ("name = null", True),
        ("more = null", True),
        ("more = 'null'", True),
        ("width = 'NaN'", False),
        ("width = '-Infinity'", False),
        ("free = 'NaN'", False),
        ("day = 'infinity'", False),
        ("day = '0044-03-15 BC'", False),
        ("at = '-infinity'", False),
    ],
)
def test_what_others_changed_hashes_otherwise(table: Table, change: str, can_be_ours: bool) -> None:
    """A changed value shows; one that no publication can have written has no hash at all."""
    (written,) = table.put(RECORD).values()
    table.hand.execute(f"update held.things set {change}")  # type: ignore[arg-type]
    (found,) = table.hashes().values()
    assert found != written
    assert (found is not None) == can_be_ours


def test_only_the_objects_asked_for_are_read(table: Table) -> None:
    """By key, also where it has several parts; what is not there is not among them."""
    table.put('{"id": "a", "part": 1}', '{"id": "a", "part": 2}', '{"id": "b", "part": 1}')
    found = table.held([ObjectKey('["a","2"]'), ObjectKey('["b","1"]'), ObjectKey('["c","1"]')])
    assert sorted((row.values["id"], row.values["part"]) for row in found) == [("a", "2"), ("b", "1")]
    assert table.held([]) == []


def test_a_deleted_row_is_told_from_a_live_one(table: Table) -> None:
    """Its values stay readable."""
    written = table.put('{"id": "a", "part": 1}')
    table.hand.execute("update held.things set _sluice_deleted_at = now()")
    (row,) = table.held()
    assert (row.is_live, row.row_hash) == (False, written[str(row.key)])


def test_spelling_does_not_depend_on_the_server(table: Table) -> None:
    """A server that prefers other spellings of dates and numbers changes no hash."""
    written = table.put('{"id": "a", "part": 1, "day": "2026-11-30", "at": "2026-01-02T03:04:05.6Z", "width": 0.1}')
    name = table.hand.info.dbname
    for setting in ("datestyle = 'SQL, DMY'", "extra_float_digits = -3", "timezone = 'Asia/Tokyo'"):
        table.hand.execute(f'alter database "{name}" set {setting}')  # type: ignore[arg-type]
    table.database.close()
    assert table.hashes() == written


def test_a_key_no_object_can_have_is_nobody_s(table: Table) -> None:
    """A row that others put there under a null key has none."""
    table.hand.execute("insert into held.things (id, part) values (null, 1)")
    assert [row.key for row in table.held()] == [None]
