"""Values that are made of several texts: as columns, one by one, and by an oracle in plain Python."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from sluice.mapping.columns import reading_of
from sluice.mapping.exact import told_apart
from sluice.mapping.reader import Reader
from sluice.mapping.reading import outcomes
from sluice.mapping.violation import Problem
from sluice.model.fields import FieldSpec
from tests.unit.mapping.workbench import map_records, rows_of, sync_spec

TABLE = {"a": "first", "ä": "", "1.50": None, "true": "yes"}


def made(**keys: Any) -> FieldSpec:
    """A field that is made so."""
    return FieldSpec.model_validate({"name": "value", "type": "text", **keys})


def lowered(text: str) -> str:
    """Each letter for itself, as Unicode's simple mapping has it."""
    return "".join("i" if letter == "İ" else letter.lower() for letter in text)


def oracle(field: FieldSpec, record: dict[str, str]) -> tuple[str | None, str | None]:
    """The text of a field, out of tokens by key; and the text that is not in its map."""
    texts = {key: None if token == "null" else json.loads(token) if token[0] == '"' else token for key, token in record.items()}
    if field.concat is not None:
        parts = [texts.get(part[0]) if isinstance(part, tuple) else part.text for part in field.concat]
        found = None if None in parts else "".join(part or "" for part in parts)
    else:
        paths = field.coalesce or field.paths
        found = next((text for path in paths if (text := texts.get(path[0])) is not None), None)
    if found is not None and field.lower:
        found = lowered(found)
    if found is None or field.map is None:
        return found, None
    return (field.map[found], None) if found in field.map else (None, found)


TOKENS = st.sampled_from(["null", "true", "false", "1.50", "-0", "1E2", "12345678901234567890"]) | st.text(
    "aAäÄßİΣ ,1", max_size=3
).map(json.dumps)
RECORDS = st.dictionaries(st.sampled_from(["a", "b", "c"]), TOKENS, max_size=3)
FIELDS = st.sampled_from(
    [
        made(coalesce=["a", "b", "c"]),
        made(concat=["a", {"text": ", "}, "b"]),
        made(concat=[{"text": "<"}, {"text": "<"}, "c", "c", {"text": "Ä"}], lower=True),
        made(path="b", lower=True),
        made(path="a", map=TABLE),
        made(coalesce=["b", "a"], lower=True, map=TABLE),
    ]
)


@given(records=st.lists(RECORDS, min_size=1, max_size=8), field=FIELDS)
@settings(deadline=None, max_examples=100)
def test_expressions_come_to_what_they_say(records: list[dict[str, str]], field: FieldSpec) -> None:
    """Columns, single objects and the oracle agree; what is not in the map is rejected by name."""
    reader = Reader([field])
    raws = [Raw(("{" + ",".join(f'"{key}": {token}' for key, token in record.items()) + "}").encode()) for record in records]
    for record, raw, outcome in zip(records, raws, outcomes(reader, [(raw, False) for raw in raws]), strict=True):
        values, problems = reader.examine(bytes(raw))
        expected, unmapped = oracle(field, record)
        if unmapped is not None:
            assert outcome == tuple(problems)
            assert problems == [Problem("value", "unmapped", f"{json.dumps(unmapped)} is not in the map")]
        else:
            assert (outcome, values, problems) == ([expected], [expected], [])
            assert reader.fast(raw) == [expected]


@pytest.mark.parametrize(
    ("keys", "record", "value"),
    [
        ({"type": "integer", "coalesce": ["a", "b"]}, '{"a": null, "b": "7"}', 7),
        ({"type": "boolean", "lower": True, "map": {"y": True, "n": False}}, '{"value": "Y"}', True),
        ({"type": "numeric(5,2)", "concat": ["a", {"text": "."}, "b"]}, '{"a": 12, "b": "50"}', "12.50"),
        ({"type": "date", "concat": ["y", {"text": "-"}, "m", {"text": "-01"}]}, '{"y": 2024, "m": "02"}', "2024-02-01"),
        ({"type": "json", "coalesce": ["a", "b"]}, '{"b": {"x": 1.50}}', '{"x": 1.50}'),
        ({"type": "integer[]", "coalesce": ["a", "b[*].n"]}, '{"b": [{"n": 1}, {}]}', [1, None]),
        ({"type": "text", "map": {"x": None}, "default": "none"}, '{"value": "x"}', "none"),
        ({"type": "text", "coalesce": ["a", "b.c"]}, '{"a": "x", "b": 7}', "x"),
    ],
)
def test_the_type_reads_what_an_expression_comes_to(keys: dict[str, Any], record: str, value: Any) -> None:
    """Exactly, as if it had stood in the record; a part that does not count does no harm."""
    chunk = map_records(sync_spec({"id": "text", "value": keys}), record.replace("{", '{"id": "1", ', 1))
    (row,) = rows_of(chunk)
    assert row["value"] == value or str(row["value"]) == value


@pytest.mark.parametrize(
    ("keys", "record", "error", "message"),
    [
        ({"coalesce": ["b", "a"]}, '{"a": {}}', "type", "a: {} is an object or array, not a text"),
        ({"concat": ["b", "x.y"]}, r'{"x": {"y": "\ud800"}, "b": 1}', "encoding", r'x.y: "\ud800" has a lone surrogate'),
        ({"path": "a", "lower": True}, '{"a": {}}', "type", "{} is an object or array, not a text"),
        ({"concat": ["a", "c.d"]}, '{"a": "x", "c": 7}', "type", "c is not an object but 7"),
        ({"coalesce": ["a"]}, r'{"a": "\u0000"}', "encoding", r'"\u0000" has a NUL character'),
        ({"lower": True}, r'{"value": "\ud800"}', "encoding", r'"\ud800" has a lone surrogate'),
        ({"type": "integer", "concat": ["a", "b"]}, '{"a": "", "b": ""}', "type", '"" is no integer'),
        ({"type": "integer", "concat": ["a", "b"]}, '{"a": 99999, "b": 99999}', "out-of-range", None),
        ({"coalesce": ["a"], "required": True}, '{"a": null}', "required", "is null"),
        ({"coalesce": ["a"], "max_length": 2}, '{"a": "abc"}', "max-length", '"abc" is longer than max_length: 2'),
    ],
)
def test_what_cannot_be_taken_is_rejected_by_name(keys: dict[str, Any], record: str, error: str, message: str | None) -> None:
    """Object by object, whatever else is in the chunk."""
    spec = sync_spec({"id": "text", "value": {"type": "text", **keys}})
    chunk = map_records(
        spec, record.replace("{", '{"id": "1", ', 1), '{"id": "2", "a": "1", "b": "1", "c": {"d": "1"}, "value": "1"}'
    )
    (reject,) = chunk.rejects
    assert (reject.key, reject.field, reject.error) == ("1", "value", error)
    assert message is None or reject.message == f"value: {message}"
    assert [row["_key"] for row in rows_of(chunk)] == ["2"]


def test_a_key_may_be_put_together() -> None:
    """Objects are told apart by it before anything else of them is read."""
    spec = sync_spec({"id": {"type": "text", "concat": ["country", {"text": "/"}, "code"], "lower": True}, "name": "text"})
    chunk = map_records(spec, '{"country": "DE", "code": 7, "name": "x"}', '{"country": "DE"}')
    assert [(row["_key"], row["id"], row["name"]) for row in rows_of(chunk)] == [("de/7", "de/7", "x")]
    assert [(reject.key, reject.error) for reject in chunk.rejects] == [(None, "required")]


def test_a_default_stands_in_where_there_is_nothing() -> None:
    """For absent and null alike, not for what is empty; a constant stands everywhere."""
    fields = {
        "id": "text",
        "a": {"type": "text", "default": "none"},
        "b": {"type": "numeric", "default": "1.50"},
        "c": {"type": "date", "constant": "2024-01-31"},
        "d": {"type": "boolean", "constant": False},
        "e": {"type": "integer[]", "default": [1, None]},
    }
    chunk = map_records(sync_spec(fields), '{"id": "1", "c": "x"}', '{"id": "2", "a": "", "b": null, "e": []}')
    rows = [[str(row[name]) for name in "abcde"] for row in rows_of(chunk)]
    assert rows == [["none", "1.50", "2024-01-31", "False", "[1, None]"], ["", "1.50", "2024-01-31", "False", "[]"]]


def test_a_value_from_the_spec_is_the_same_as_a_suppliers() -> None:
    """Its hash, too: a default that a supplier begins to send changes nothing."""
    reader = Reader([FieldSpec.model_validate({"name": "a", "type": "numeric", "default": "1.50"})])
    absent, sent = reader.fast(Raw(b"{}")), reader.fast(Raw(b'{"a": 1.5}'))
    assert told_apart(absent[0]) == told_apart(sent[0])


@pytest.mark.parametrize(
    "keys",
    [
        {"path": "a[0]"},
        {"coalesce": ["a"]},
        {"concat": ["a"]},
        {"constant": "a"},
        {"lower": True},
        {"map": {"a": "b"}},
        {"default": "a"},
        {"required": True},
        {"pattern": "a"},
        {"min_length": 1},
        {"max_length": 1},
        {"allowed": ["a"]},
        {"type": "integer", "minimum": 1},
        {"type": "integer", "maximum": 1},
        {"type": "json", "rest": True},
        {"type": "timestamptz", "zone": "Europe/Berlin"},
        {"type": "date", "format": "%Y%m%d"},
    ],
)
def test_bytes_that_are_read_otherwise_are_new(keys: dict[str, Any]) -> None:
    """What the ledger remembers of raw bytes does not count any more."""
    declared = {"type": "text", **keys}
    plain = reading_of(sync_spec({"id": "text", "value": declared["type"]}))
    assert reading_of(sync_spec({"id": "text", "value": declared})) != plain
