"""Arrays: items as exact as values by themselves, in JSON, as Postgres spells them, and as texts on their way to it."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluice.mapping import arrays
from sluice.mapping.exact import exact_type, told_apart
from sluice.mapping.spelling import spelled
from sluice.mapping.violation import Violation
from tests.unit.mapping.test_exact import TOKENS
from tests.unit.mapping.workbench import both_ways, field_type, map_records, map_value, rows_of, sync_spec, table_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
ITEMS = sorted(set(TOKENS) - {"json"})
ARRAYS = st.sampled_from(ITEMS).flatmap(
    lambda kind: st.tuples(st.just(f"{kind}[]"), st.lists(st.just("null") | TOKENS[kind], max_size=4))
)


@given(case=ARRAYS)
def test_both_ways_agree(case: tuple[str, list[str]]) -> None:
    """However an array is read, it is the same, and each item is what it would be by itself."""
    kind, items = case
    fast, careful = both_ways(kind, f"[{', '.join(items)}]")
    assert fast == careful
    alone = [both_ways(kind[:-2], item)[1] for item in items]
    assert careful == alone
    assert list(map(type, fast)) == list(map(type, alone))


@given(case=ARRAYS)
def test_canonical_text_reads_back(case: tuple[str, list[str]]) -> None:
    """The text by which Postgres spells an array is read as that array."""
    kind, items = case
    exact = exact_type(field_type(kind))
    _, value = both_ways(kind, f"[{','.join(items)}]")
    text = exact.to_text(value)
    again = told_apart(exact.from_text(text))
    assert again == value
    assert exact.to_text(again) == text


@given(values=st.lists(st.none() | st.lists(st.none() | TEXTS, max_size=4), max_size=5))
@example(values=[None, [], [None], ["NULL", "null", "", "\\", '"', "{}", "a,b", " ", "\n"]])
def test_columns_are_spelled_as_values_are(values: list[list[str | None] | None]) -> None:
    """A whole column at once gives texts that read as the same arrays, from any row on."""
    column = pa.array(values, pa.list_(pa.string()))
    read = arrays.reading(str)
    for start in range(len(values) + 1):
        found = [None if text is None else read(text) for text in spelled(column.slice(start)).to_pylist()]
        assert found == values[start:]


@pytest.mark.parametrize(
    ("kind", "token", "error", "message"),
    [
        ("integer[]", "[1, [2]]", "type", "item 1: [2] is an object or array, not integer"),
        ("text[]", '["a", {"b": 1}]', "type", 'item 1: {"b": 1} is an object or array, not text'),
        ("integer[]", "1", "type", "1 is no array, which integer[] has to be"),
        ("text[]", '"a"', "type", '"a" is no array, which text[] has to be'),
        ("text[]", '"{a}"', "type", '"{a}" is no array, which text[] has to be'),
        ("text[]", '{"0": "a"}', "type", '{"0": "a"} is no array, which text[] has to be'),
        (
            "bigint[]",
            "[null, 9223372036854775808]",
            "out-of-range",
            'item 1: "9223372036854775808" is beyond the range of bigint',
        ),
        ("numeric(3,1)[]", "[1.25]", "precision", 'item 0: "1.25" has more than 1 fractional digits'),
        ("boolean[]", '["t"]', "type", 'item 0: "t" is neither true nor false'),
        ("date[]", '[""]', "type", "item 0: an empty string is no date"),
        ("text[]", r'["\ud800"]', "encoding", r'item 0: "\ud800" has a lone surrogate'),
        ("text[]", r'["a", "\u0000"]', "encoding", r'item 1: "\u0000" has a NUL character'),
        ("double precision[]", "[0.5, NaN]", "malformed", "item 1: NaN is not JSON"),
    ],
)
def test_what_is_no_item_is_named(kind: str, token: str, error: str, message: str) -> None:
    """With its place, the first being 0, and with what is wrong."""
    assert map_value(kind, token) == (error, message)


@pytest.mark.parametrize(
    "text", ["", "1", "{1", "{1,}", "{,1}", "{{1},{2}}", "[0:1]={1,2}", "{1}x", '{"1}', '{1"2"}', "{1} ", '{"1"2}']
)
def test_what_postgres_spells_otherwise_is_no_array_of_ours(text: str) -> None:
    """Several dimensions, or one that does not begin at 1, nobody here has written."""
    with pytest.raises(Violation, match="no array of one dimension"):
        exact_type(field_type("integer[]")).from_text(text)


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("numeric[]", "[1.50, null]", "[15e-1, null]"),
        ("double precision[]", "[0.0, 1]", "[-0.0, 1.0]"),
        ("timestamptz[]", '["2026-01-01T00:00:00Z"]', '["2026-01-01T01:00:00+01:00"]'),
        ("text[]", '["é"]', r'["\u00e9"]'),
    ],
)
def test_equal_arrays_hash_alike(kind: str, one: str, other: str) -> None:
    """Whatever the spelling of their items, which is kept."""
    hashes = {_row(kind, token)["_row_hash"] for token in (one, other)}
    assert len(hashes) == 1


def test_different_arrays_hash_otherwise() -> None:
    """Empty is not null, and where one item ends and the next begins makes a difference."""
    tokens = ["null", "[]", "[null]", '[""]', '["ab"]', '["a", "b"]', '["b", "a"]', '["a", "b", null]', '["a,b"]', '["null"]']
    assert len({_row("text[]", token)["_row_hash"] for token in tokens}) == len(tokens)


def test_frames_see_lists() -> None:
    """In Arrow an array is a list of what its items are."""
    fields: dict[str, Any] = {kind: f"{kind}[]" for kind in ("integer", "numeric", "date")}
    spec = sync_spec({"id": "text", "prices": "numeric(10,2)[]", **fields})
    schema = table_of(map_records(spec, '{"id": "a"}')).schema
    assert schema.field("prices").type.value_type == pa.decimal128(10, 2)
    assert [schema.field(kind).type.value_type for kind in fields] == [pa.int32(), pa.string(), pa.date32()]


def test_nul_and_damage_elsewhere_do_no_harm() -> None:
    """A page that is no JSON as a whole is taken apart, and arrays in it are read all the same."""
    records = [
        '{"id": "a", "tags": ["x", "\\u0041"], "y": NaN}',
        '{"id": "b", "tags": ["x" , null ]}',
        '{"id": "c", "tags": [tru]}',
    ]
    chunk = map_records(sync_spec({"id": "text", "tags": "text[]"}), *records)
    assert [(row["id"], row["tags"]) for row in rows_of(chunk)] == [("b", ["x", None])]
    assert {reject.key: reject.error for reject in chunk.rejects} == {"a": "malformed", "c": "malformed"}


def _row(kind: str, token: str) -> dict[str, Any]:
    spec = sync_spec({"id": "text", "value": kind})
    (row,) = rows_of(map_records(spec, json.dumps({"id": "1"})[:-1] + f', "value": {token}}}'))
    return row
