"""Finding the declared fields in records, by the fast way and by the careful one."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from sluice.mapping.exact import told_apart
from sluice.mapping.reader import MISSES, Reader
from sluice.mapping.violation import Problem
from sluice.model.fields import FieldSpec


def reader(*fields: tuple[str, str] | tuple[str, str, bool], required: tuple[str, ...] = ()) -> Reader:
    """A reader of fields given as path, type and whether they are required, named by their paths."""
    return Reader(
        [
            FieldSpec.model_validate(
                {"name": path.replace(".", "_").lower(), "path": path, "type": kind, "required": bool(required)}
            )
            for path, kind, *required in fields
        ],
        required,
    )


def raw(record: str) -> Raw:
    """A record as the splitter hands it on."""
    return msgspec.json.decode(record, type=Raw)


def read(a_reader: Reader, record: str) -> list[Any]:
    """Read a record both ways, which have to agree."""
    values, problems = a_reader.examine(record.encode())
    assert problems == []
    assert [told_apart(value) for value in a_reader.fast(raw(record))] == [told_apart(value) for value in values]
    return values


NESTED = reader(("z", "text"), ("a.b.c", "integer"), ("a.b.d", "text"), ("a.e", "boolean"), ("f.g", "text"))


@pytest.mark.parametrize(
    ("record", "values"),
    [
        ('{"a": {"b": {"c": 1, "d": "x"}, "e": true}, "f": {"g": "y"}, "z": "w"}', ["w", 1, "x", True, "y"]),
        ('{"f": {"g": "y"}}', [None, None, None, None, "y"]),
        ('{"a": null, "f": {}, "z": null}', [None] * 5),
        ('{"a": {"b": null, "e": false}}', [None, None, None, False, None]),
        ('{"a": {"e": true}, "a": {"b": {"c": 2}}}', [None, 2, None, None, None]),
        ("{}", [None] * 5),
        ('{"other": {"z": 1}, "Z": "no"}', [None] * 5),
    ],
)
def test_paths(record: str, values: list[Any]) -> None:
    """Values are found by their paths; what is absent, or below what is null, is null; of two members the last counts."""
    assert read(NESTED, record) == values


def test_a_path_through_another_field() -> None:
    """An object may be taken as a document, and values out of it as well; one value may be read as two types."""
    crossed = reader(("a", "json"), ("a.b", "text"), ("c", "integer"), ("c", "text"), ("a.b.x", "text"))
    record = '{"a": {"b": null}, "c": 7}'
    values, problems = crossed.examine(record.encode())
    assert (values, problems) == ([(b'{"b": null}', b'{"b":null}'), None, 7, "7", None], [])
    texts = reader(("a", "json"), ("a.b", "text"), ("a.c", "text"))
    assert read(texts, '{"a": {"b": "x", "c": "y"}}') == [(b'{"b": "x", "c": "y"}', b'{"b":"x","c":"y"}'), "x", "y"]


def test_keys_with_dots_and_in_other_cases() -> None:
    """A path may be a list, whose keys may have dots; keys that differ in case are different keys."""
    fields = [{"name": "a", "path": ["x.y", "Z"], "type": "text"}, {"name": "b", "path": ["x.y", "z"], "type": "text"}]
    dotted = Reader([FieldSpec.model_validate(field) for field in fields])
    assert read(dotted, '{"x.y": {"Z": "1", "z": "2"}, "x": {"y": "3"}}') == ["1", "2"]


@pytest.mark.parametrize("key", ['6" pipe', "a\\b", "a\tb", "\x00", "é ☃", " ", "'", "%s"])
def test_a_key_may_be_any_text(key: str) -> None:
    """Also one that no compiled type can have."""
    fields = [{"name": "a", "path": ["x", key], "type": "bigint"}, {"name": "b", "type": "text"}]
    a_reader = Reader([FieldSpec.model_validate(field) for field in fields])
    record = json.dumps({"x": {key: 1, "b": 2}, "b": "3"})
    assert a_reader.examine(record.encode()) == ([1, "3"], [])
    try:
        assert a_reader.fast(raw(record)) == [1, "3"]
    except MISSES:
        assert key in ('6" pipe', "a\\b", "a\tb", "\x00")


def test_one_field() -> None:
    """A reader of a single field yields a single value."""
    assert read(reader(("id", "bigint")), '{"id": 9007199254740993}') == [9007199254740993]


KEY = reader(("id", "text", True), ("n", "integer"), ("t.x", "date", True), required=("n",))


@pytest.mark.parametrize(
    ("record", "problems"),
    [
        ("{}", [("id", "required", "is missing"), ("n", "required", "is missing"), ("t_x", "required", "is missing")]),
        ('{"id": null, "n": 1, "t": {"x": null}}', [("id", "required", "is null"), ("t_x", "required", "is null")]),
        ('{"id": "", "n": 1, "t": null}', [("t_x", "required", "is missing")]),
        ('{"id": "1", "n": 1, "t": "x"}', [("t_x", "type", 't is not an object but "x"')]),
        (
            '{"id": "1", "n": "x", "t": [1]}',
            [("n", "type", '"x" is no integer'), ("t_x", "type", "t is not an object but [1]")],
        ),
        ("[1]", [(None, "not-an-object", "[1] is not an object")]),
        ('"x"', [(None, "not-an-object", '"x" is not an object')]),
        ("null", [(None, "not-an-object", "null is not an object")]),
    ],
)
def test_every_problem_is_told(record: str, problems: list[tuple[str | None, str, str]]) -> None:
    """The fast way gives up; the careful one names all that is wrong, in the order of the fields."""
    with pytest.raises(MISSES):
        KEY.fast(raw(record))
    assert KEY.examine(record.encode())[1] == [Problem(*problem) for problem in problems]


def test_damaged_records_still_show_their_fields() -> None:
    """Of a record that is no JSON, the sound fields are read and the damaged one is named, at any depth."""
    values, problems = NESTED.examine(
        rb'{"z": "w", "a": {"b": {"c": NaN, "d": "\ud800"}, "e": true}, "x": 007, "f": {"g": 1.50}}'
    )
    assert values == ["w", None, None, True, "1.50"]
    assert problems == [
        Problem("a_b_c", "malformed", "NaN is not JSON"),
        Problem("a_b_d", "encoding", '"\\ud800" has a lone surrogate'),
    ]


def test_an_object_that_does_not_end() -> None:
    """Even that is told, and not raised."""
    _, problems = NESTED.examine(b'{"a": {"b": ')
    assert [problem.error for problem in problems] == ["malformed"]


EVERY_KIND = reader(
    ("a", "text"),
    ("b", "numeric(5,2)"),
    ("c", "numeric"),
    ("d", "double precision"),
    ("e", "bigint"),
    ("f", "uuid"),
    ("g", "json"),
    ("z", "timestamptz"),
)
OF_EVERY_ORIGIN = Reader(
    [
        FieldSpec.model_validate({"name": f"f{number}", **field})
        for number, field in enumerate(
            [
                {"type": "integer", "path": "a[0].b", "minimum": 0, "default": 7},
                {"type": "numeric", "path": "a[1]"},
                {"type": "text[]", "path": "a[*].b", "min_length": 1},
                {"type": "json", "path": "a[*].c[*]"},
                {"type": "text", "coalesce": ["b", "c.d"], "lower": True, "max_length": 3},
                {"type": "numeric(5,2)", "concat": ["c.d", {"text": "."}, "b"]},
                {"type": "date", "path": "d", "format": "%Y-%m-%d", "allowed": ["2024-01-01"]},
                {"type": "timestamptz", "path": "d", "zone": "Europe/Berlin"},
                {"type": "boolean", "constant": False},
                {"type": "json", "rest": True},
            ]
        )
    ]
)
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just("2024-01-01")
RECORDS = st.recursive(
    VALUES,
    lambda inner: st.dictionaries(st.sampled_from("abcdefgz"), inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(record=RECORDS, a_reader=st.sampled_from([NESTED, EVERY_KIND, OF_EVERY_ORIGIN]))
@settings(deadline=None, max_examples=400)
def test_fast_never_takes_what_careful_refuses(record: Any, a_reader: Reader) -> None:
    """Whatever arrives, the fast way either yields what the careful way yields, or leaves it to that; so do columns."""
    text = json.dumps(record, ensure_ascii=False)
    values, problems = a_reader.examine(text.encode())
    columns = a_reader.columns([Raw(text.encode())])
    try:
        fast = a_reader.fast(Raw(text.encode()))
    except MISSES:
        assert columns is None
        return
    assert columns is None or [value for (value,) in columns] == fast
    if "\\u0000" not in text:
        assert (fast, []) == (values, problems)
