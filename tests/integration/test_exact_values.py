"""What the mapping calls exact, held against Postgres itself."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, LiteralString, cast

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

from sluice.adapters.targets.arrow_copy import copy_in
from sluice.mapping.documents import canonical_document
from sluice.mapping.violation import Violation
from sluice.ports import ConnectionInfo
from tests.unit.mapping.test_documents import DOCUMENTS
from tests.unit.mapping.workbench import map_records, map_value, sync_spec, table_of

HOWEVER = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def database(empty_database: ConnectionInfo) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a real Postgres."""
    info = empty_database
    with psycopg.connect(
        host=info.host, port=info.port, user=info.login, password=info.password, dbname=info.schema, autocommit=True
    ) as connection:
        yield connection


@given(first=DOCUMENTS, second=DOCUMENTS)
@example(first='{"a": 1, "b": 2}', second='{"b": 2.0, "a": 1e0}')
@example(first='{"a": 1, "a": 2}', second='{"a": 2}')
@HOWEVER
def test_documents_are_equal_when_jsonb_says_so(database: psycopg.Connection[Any], first: str, second: str) -> None:
    """Two canonical forms are the same bytes if, and only if, Postgres finds the documents equal."""
    (is_same,) = database.execute("select %s::jsonb = %s::jsonb", (first, second)).fetchone() or (None,)
    assert is_same == (canonical_document(first.encode()) == canonical_document(second.encode()))


EDGES = ["1e131071", "1e131072", "1e-16383", "1e-16384", "1.0e-16383", "[" * 256 + "]" * 256, r'["\u0000"]', r'["\\u0000"]']
EDGES += [
    r'["\ud800"]',
    r'["\ud83d\ude00"]',
    "[NaN]",
    "[007]",
    "[1.]",
    r'["\x"]',
    "[1,]",
    '{"a" 1}',
    "0e5000",
    "-0",
    "1E+5",
    '""',
]


@pytest.mark.parametrize("text", EDGES)
def test_documents_that_are_taken_in_are_taken_by_jsonb(database: psycopg.Connection[Any], text: str) -> None:
    """What passes here never fails in a publication, and what is refused here is refused there."""
    try:
        canonical_document(text.encode())
        is_taken = not isinstance(map_value("json", text), tuple)
    except Violation:
        is_taken = False
    try:
        database.execute("select %s::jsonb", (text,))
        is_held = True
    except psycopg.Error:
        is_held = False
    assert is_taken == is_held


TOKENS = st.one_of(
    st.tuples(st.just("bigint"), st.integers(-(2**63), 2**63 - 1).map(str)),
    st.tuples(st.just("integer"), st.integers(-(2**31), 2**31 - 1).map(str)),
    st.tuples(st.just("numeric"), st.decimals(-(10**20), 10**20, allow_nan=False).map(str)),
    st.tuples(st.just("numeric(30,6)"), st.decimals(-(10**20), 10**20, places=6).map(str)),
    st.tuples(st.just("double precision"), st.floats(allow_nan=False, allow_infinity=False).map(repr)),
    st.tuples(st.just("date"), st.dates().map(lambda value: f'"{value}"')),
    st.tuples(st.just("timestamptz"), st.datetimes().map(lambda value: f'"{value.isoformat()}+05:30"')),
    st.tuples(st.just("uuid"), st.uuids().map(lambda value: f'"{value}"')),
)


@given(case=TOKENS)
@example(case=("double precision", "5e-324"))
@example(case=("double precision", "1.7976931348623157e308"))
@example(case=("timestamptz", '"9999-12-31T23:59:59.999999Z"'))
@example(case=("timestamptz", '"0001-01-01T00:00:00Z"'))
@HOWEVER
def test_values_arrive_as_they_were_sent(database: psycopg.Connection[Any], case: tuple[str, str]) -> None:
    """From JSON text through Parquet and COPY, a value is what its text is to Postgres."""
    kind, token = case
    chunk = map_records(sync_spec({"id": "text", "value": kind}), f'{{"id": "1", "value": {token}}}')
    if chunk.rejects:
        assert chunk.rejects[0].error == "out-of-range"
        return
    cursor = database.cursor()
    cursor.execute("create temp table if not exists incoming (value text)")
    cursor.execute("truncate incoming")
    copy_in(cursor, sql.Identifier("incoming"), table_of(chunk).select(["value"]))
    query = sql.SQL("select value::{0} = %s::{0} from incoming").format(sql.SQL(cast("LiteralString", kind)))
    assert cursor.execute(query, (token.strip('"'),)).fetchone() == (True,)


@given(
    texts=st.lists(st.none() | st.text(st.sampled_from("\\N.tnr\t\n\r\"', é\U0001f600"), max_size=8), max_size=6),
    dropped=st.integers(0, 2),
)
@example(texts=[r"\N", None, "", r"\.", "\\", "\r\n"], dropped=0)
@HOWEVER
def test_texts_arrive_letter_by_letter(database: psycopg.Connection[Any], texts: list[str | None], dropped: int) -> None:
    """Nothing in a text is taken for COPY's own: not what parts columns or rows, escapes, ends the data or stands for null."""
    cursor = database.cursor()
    cursor.execute("create temp table if not exists texts (place integer, letters text, again text)")
    cursor.execute("truncate texts")
    numbers = pa.array(range(len(texts)), pa.int32())
    letters = pa.array(texts, pa.string())
    copy_in(cursor, sql.Identifier("texts"), pa.table({"place": numbers, "letters": letters, "again": letters}).slice(dropped))
    found = cursor.execute("select letters, again from texts order by place").fetchall()
    assert found == [(text, text) for text in texts[dropped:]]


def test_numbers_beyond_64_bits_keep_their_digits(database: psycopg.Connection[Any]) -> None:
    """A document with a number no float holds comes back digit for digit."""
    text = "123456789012345678901234567890.123456789"
    stored = map_value("json", f'{{"n": {text}}}').as_py()
    assert database.execute("select %s::jsonb ->> 'n'", (stored,)).fetchone() == (text,)
    assert Decimal(map_value("numeric", text).as_py()) == Decimal(text)
