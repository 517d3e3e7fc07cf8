"""From JSON text to a table of Postgres and back: each value exactly as it was sent, or refused by name."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.mapping.traces import place_in
from sluice.model.base import ObjectKey
from sluice.model.ledger import Outcome
from sluice.model.reject import Reject
from sluice.ports import ConnectionInfo
from tests.support import oracle
from tests.support.edges import EDGES, TOKENS
from tests.support.ledgered import Table
from tests.unit.mapping.workbench import map_records, sync_spec, table_of

NUMBERS: Final = ["integer", "bigint", "numeric", "numeric(10,2)", "numeric(38,38)", "numeric(60,20)", "double precision"]
ITEMS: Final = ["text", *NUMBERS, "boolean", "date", "timestamptz", "uuid"]
KINDS: Final = [*ITEMS, "json", *(f"{kind}[]" for kind in ITEMS)]
NAMES: Final = {kind: re.sub(r"\W+", "_", kind.replace("[]", " list")) for kind in KINDS}
SPEC: Final = sync_spec(
    {"id": "text", **{NAMES[kind]: kind for kind in KINDS}}, target={"table": "exact.things", "deletes": "hard"}
)
ERRORS: Final = {"type", "out-of-range", "precision", "encoding", "malformed"}

Case = tuple[str, bytes]


@pytest.fixture
def table(database: ConnectionInfo) -> Iterator[Table]:
    """A table with a column of each type."""
    with closing(Table(database, SPEC)) as table:
        yield table


def publish(table: Table, cases: Sequence[Case]) -> None:
    """Send each token as a record of its own, and hold against the oracle what is stored of it and what is refused."""
    records = [b'{"id": "%d", "%s": %s}' % (place, NAMES[kind].encode(), token) for place, (kind, token) in enumerate(cases)]
    chunk = map_records(table.spec, *records)
    table.publish(table.review_rows(chunk.rows))
    stored, refused = rows_of(table), {str(reject.key): reject for reject in chunk.rejects}
    found = [
        (kind, token, told(kind, stored.get(str(place)), refused.get(str(place)))) for place, (kind, token) in enumerate(cases)
    ]
    assert [case for case in found if not alike(case[2], oracle.worth(*case[:2]))] == []
    assert len(stored) + len(refused) == len(cases)
    with table.target.held() as held:
        hashes = {row.key: row.row_hash for row in held}
    rows = table_of(chunk)
    assert hashes == dict(zip(rows["_key"].to_pylist(), rows["_row_hash"].to_pylist(), strict=True))


def empty(table: Table) -> None:
    """Have a table without rows; one that is not there yet is filled in another way."""
    if table.target.check():
        table.bring({"id": "first"})
    table.hand.execute("truncate exact.things")
    table.hand.execute("delete from sluice_ledger.object")


def told(kind: str, row: dict[str, Any] | None, reject: Reject | None) -> Any:
    """What became of a token: the value that is stored, or `REFUSED`, with all that a person has to know."""
    name = NAMES[kind]
    if reject is None:
        assert row is not None
        return oracle.held(kind, row[name])
    assert (row, reject.field, reject.error in ERRORS) == (None, name, True), reject
    assert reject.message.startswith(f"{name}: ")
    assert len(reject.message) < 400
    assert reject.message.isprintable()
    return oracle.REFUSED


def rows_of(table: Table) -> dict[str, dict[str, Any]]:
    """The rows of the table by key, each value as Postgres spells it; of arrays each item."""
    items = (
        "case when {0} is not null then array(select x::text from unnest({0}) with ordinality u (x, n) order by n) end as {0}"
    )
    columns = [(items if kind.endswith("[]") else "{0}::text").format(name) for kind, name in NAMES.items()]
    return {row["id"]: row for row in table.rows(", ".join(["id", *columns]))}


def alike(found: Any, expected: Any) -> bool:
    """Whether two values are one."""
    match expected:
        case list():
            return isinstance(found, list) and len(found) == len(expected) and all(map(alike, found, expected))
        case Decimal():
            return isinstance(found, Decimal) and found == expected and (found.is_signed() == expected.is_signed() or not found)
    return type(found) is type(expected) and found == expected


def test_every_edge_in_every_type(table: Table) -> None:
    """What suppliers send at the edges, in columns of all types, alone and in arrays; and a rollback brings it all back."""
    cases = [(kind, token) for kind in KINDS for token in EDGES]
    cases += [(kind, b"[null, %s]" % token) for kind in KINDS for token in EDGES if kind.endswith("[]")]
    publish(table, cases)
    before = table.rows("id, things::text")
    emptied = table.bring(*({"id": row["id"]} for row in before))
    assert table.rows("id, things::text") != before
    table.roll_back(emptied)
    assert table.rows("id, things::text") == before


def test_a_history_gets_back_every_edge(database: ConnectionInfo) -> None:
    """A version that a rollback adds is the one before, value by value."""
    spec = sync_spec(
        {"id": "text", **{NAMES[kind]: kind for kind in KINDS}}, target={"table": "exact.things", "form": "history"}
    )
    with closing(Table(database, spec)) as table:
        empty(table)
        publish(table, [(kind, token) for kind in KINDS for token in EDGES])
        columns = ", ".join(["id", *(f"{name}::text" for name in NAMES.values())])
        before = table.rows(columns)
        table.roll_back(table.bring(*({"id": row["id"]} for row in before)))
        valid = f"select {columns} from exact.things where _sluice_valid_to is null order by 1"
        assert table.hand.execute(valid.encode()).fetchall() == [tuple(row.values()) for row in before]


@given(data=st.data())
@settings(max_examples=16, suppress_health_check=list(HealthCheck))
def test_any_value_in_its_type(table: Table, data: st.DataObject) -> None:
    """Whatever the value: stored as it was sent, or refused by name."""
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=20, max_size=60))
    cases = [(kind, data.draw(tokens(kind))) for kind in kinds]
    empty(table)
    publish(table, cases)


def tokens(kind: str) -> st.SearchStrategy[bytes]:
    """Tokens for a type: mostly such as it takes, of all spellings."""
    if not kind.endswith("[]"):
        return TOKENS[kind.partition("(")[0]] | st.sampled_from(EDGES)
    items = st.lists(TOKENS[kind[:-2].partition("(")[0]] | st.just(b"null"), max_size=5)
    return items.map(lambda items: b"[" + b" , ".join(items) + b"]")


def test_names_and_absence(table: Table) -> None:
    """Keys that differ only in case are different ones, of equal ones the last counts, and absent is null, not empty."""
    records = [
        b'{"id": "a", "TEXT": "no", "Text": "no", "text": "yes"}',
        b'{"id": "b", "text": "no", "text": "yes"}',
        b'{"id": "c", "text": "", "text_list": []}',
        b'{"id": "d", "text": null, "text_list": null}',
        b'{"ID": "no", "id": "e"}',
    ]
    chunk = map_records(table.spec, *records)
    table.publish(table.review_rows(chunk.rows))
    found = [tuple(row.values()) for row in table.rows("id, text, text_list")]
    assert found == [("a", "yes", None), ("b", "yes", None), ("c", "", []), ("d", None, None), ("e", None, None)]


def test_keys_are_any_texts(database: ConnectionInfo) -> None:
    """Whatever their letters, objects are found by them: in table, ledger, diff and undo, and again when they go."""
    with closing(Table(database, sync_spec({"id": "text", "n": "integer"}, target={"table": "exact.keys"}))) as table:
        texts = {text for token in EDGES if isinstance(text := oracle.worth("text", token), str) and len(text) < 500}
        table.bring({"id": "other"})
        table.bring(*({"id": text, "n": 1} for text in texts))
        before = table.rows()
        assert {row["id"] for row in before} == texts | {"other"}
        changed = table.bring(*({"id": text, "n": 2} for text in texts))
        table.roll_back(changed)
        assert table.rows() == before
        assert table.bring(*({"id": text, "n": 1} for text in texts)).counts == {}
        gone = table.bring({"id": "other"}, complete=True)
        assert gone.counts == {Outcome.DELETED: len(texts)}
        table.roll_back(gone)
        assert table.rows() == before


def test_a_text_of_megabytes(table: Table) -> None:
    """Long texts are stored to the last letter, and a message about one is short."""
    letters = json.dumps('é\n"\\' * 100_000).encode()
    publish(table, [("text", letters), ("text[]", b"[%s]" % letters), ("integer", letters), ("numeric[]", b"[%s]" % letters)])


def test_a_rollback_is_exact_whatever_the_server_prefers(table: Table) -> None:
    """A server that spells numbers and times in its own way, and shorter, takes nothing from what is put back."""
    name = table.hand.info.dbname
    for setting in (
        "array_nulls = off",
        "bytea_output = 'escape'",
        "client_encoding = 'LATIN1'",
        "datestyle = 'SQL, DMY'",
        "extra_float_digits = -15",
        "timezone = 'Asia/Tokyo'",
        "intervalstyle = 'sql_standard'",
    ):
        table.hand.execute(f'alter database "{name}" set {setting}'.encode())
    table.database.close()
    record = {"id": "a", "text": "é 👩", "double_precision": 0.1 + 0.2, "date": "2024-02-03", "text_list": ["NULL", None, "é"]}
    review = table.review(record)
    place = place_in(review.diff, ObjectKey("a"))
    assert place is not None
    assert place.raw_hash == table_of(map_records(SPEC, json.dumps(record)))["_raw_hash"][0].as_py()
    table.publish(review)
    assert table.rows("text, text_list") == [{"text": "é 👩", "text_list": ["NULL", None, "é"]}]
    table.hand.execute("alter table exact.things add column others interval, add column floating real")
    table.hand.execute("update exact.things set others = '1 year -2 days 03:04:05.6', floating = 0.1 + 1e-8")
    before = table.rows()
    table.roll_back(table.bring({"id": "a"}, complete=True))
    assert table.rows() == before
    table.roll_back(table.bring({"id": "b"}, complete=True))
    assert table.rows() == before
