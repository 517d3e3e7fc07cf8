"""What has to hold of fields, at its bounds: object by object, with the value and the rule named."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from sluice.mapping.reader import MISSES, Reader
from sluice.mapping.reading import outcomes
from sluice.mapping.rules import RowRules, pattern_refused
from sluice.mapping.violation import Problem
from sluice.model.fields import FieldSpec
from tests.unit.mapping.workbench import map_records, rows_of, sync_spec


def ruled(kind: str, **rules: Any) -> FieldSpec:
    """A field with these rules."""
    return FieldSpec.model_validate({"name": "value", "type": kind, **rules})


def problem_of(field: FieldSpec, token: str) -> Problem | None:
    """What is wrong with a value, on which all ways of reading have to agree."""
    reader, raw = Reader([field]), Raw(f'{{"value": {token}}}'.encode())
    values, problems = reader.examine(bytes(raw))
    assert list(outcomes(reader, [(raw, False)])) == [tuple(problems) or values]
    try:
        assert reader.fast(raw) == values
        assert not problems
    except MISSES:
        assert problems
    return problems[0] if problems else None


@pytest.mark.parametrize(
    ("kind", "rules", "kept", "broken", "message"),
    [
        ("integer", {"minimum": -5}, "-5", "-6", "-6 is below minimum: -5"),
        ("bigint", {"maximum": 2**62}, str(2**62), str(2**62 + 1), f"{2**62 + 1} is above maximum: {2**62}"),
        ("numeric(5,2)", {"minimum": "1.50"}, "1.5", "1.49", "1.49 is below minimum: 1.50"),
        ("numeric", {"maximum": "1e-30"}, "1e-30", "1.1e-30", f"0.{'0' * 29}11 is above maximum: 1e-30"),
        ("numeric", {"maximum": 9}, "9", f"1{'0' * 900}", f'"1{"0" * 59}\\u2026" is above maximum: 9'),
        ("numeric(50,40)", {"minimum": 0}, "-0", "-1e-40", f"-0.{'0' * 39}1 is below minimum: 0"),
        (
            "double precision",
            {"maximum": 0.5},
            "0.5",
            "0.50000000000000011",
            "0.5000000000000001 is above maximum: 0.5",
        ),
        (
            "date",
            {"minimum": "2024-02-29"},
            '"2024-02-29"',
            '"2024-02-28"',
            "2024-02-28 is below minimum: 2024-02-29",
        ),
        (
            "timestamptz",
            {"maximum": "2024-01-01T00:00:00Z"},
            '"2024-01-01T01:00:00+01:00"',
            '"2024-01-01T00:00:00.000001Z"',
            "2024-01-01T00:00:00.000001Z is above maximum: 2024-01-01T00:00:00Z",
        ),
        ("text", {"min_length": 2}, '"éé"', '"é"', r'"\u00e9" is shorter than min_length: 2'),
        ("text", {"max_length": 1}, '"😀"', '"ab"', '"ab" is longer than max_length: 1'),
        ("integer[]", {"min_length": 2}, "[1, null]", "[1]", '"{1}" is shorter than min_length: 2'),
        ("text[]", {"max_length": 0}, "[]", "[null]", '"{NULL}" is longer than max_length: 0'),
        ("text", {"pattern": "[A-Z]{2}"}, '"DE"', r'"DE\n"', r'"DE\n" does not match pattern: [A-Z]{2}'),
        ("text", {"pattern": "a|b"}, '"b"', '"ab"', '"ab" does not match pattern: a|b'),
        ("text", {"allowed": ["a", "1"]}, "1", '"A"', '"A" is not among allowed: a, 1'),
        ("numeric", {"allowed": [1.5, 2]}, "1.50", "1.51", "1.51 is not among allowed: 1.5, 2"),
        ("boolean", {"allowed": [True]}, "true", "false", "false is not among allowed: true"),
        (
            "uuid",
            {"allowed": ["A" * 8 + "-0000-0000-0000-" + "0" * 12]},
            f'"{"a" * 8}-0000-0000-0000-{"0" * 12}"',
            None,
            "",
        ),
        ("text", {"required": True}, '""', "null", "is null"),
    ],
)
def test_at_the_bound(kind: str, rules: dict[str, Any], kept: str, broken: str | None, message: str) -> None:
    """The bound itself is taken; what is next to it is rejected, and null breaks no rule but `required`."""
    field = ruled(kind, **rules)
    (rule,) = rules
    assert problem_of(field, kept) is None
    if broken is not None:
        assert problem_of(field, broken) == Problem("value", rule.replace("_", "-"), message)
    if rule != "required":
        assert problem_of(field, "null") is None


@given(value=st.decimals(-2, 2, places=3), low=st.decimals(-1, 0, places=2), high=st.decimals(0, 1, places=2))
@settings(deadline=None, max_examples=60)
def test_a_range_of_numbers(value: Decimal, low: Decimal, high: Decimal) -> None:
    """Whatever their type, they compare by their exact values."""
    for kind in ("numeric", "numeric(9,3)", "numeric(60,3)"):
        problem = problem_of(ruled(kind, minimum=str(low), maximum=str(high)), str(value))
        assert (problem and problem.error) == ("minimum" if value < low else "maximum" if value > high else None)


def test_a_pattern_takes_its_time_whatever_comes() -> None:
    """What sends other engines round for ages is told at once; what would need them is no pattern."""
    assert problem_of(ruled("text", pattern="(a*)*b"), f'"{"a" * 100_000}"') is not None
    assert pattern_refused("(a)\\1") == "invalid escape sequence: \\1"
    assert pattern_refused("(a|b)*") is None


def test_bad_objects_are_named_and_good_ones_go_through() -> None:
    """Each problem of an object is told, in the order of the fields."""
    fields: dict[str, Any] = {
        "id": "text",
        "a": {"type": "integer", "minimum": 1},
        "b": {"type": "text", "pattern": "x+", "required": True},
    }
    chunk = map_records(
        sync_spec(fields), '{"id": "1", "a": 0}', '{"id": "2", "a": 1, "b": "xx"}', '{"id": "3", "a": "0", "b": "y"}'
    )
    assert [row["_key"] for row in rows_of(chunk)] == ["2"]
    assert [(reject.key, reject.error, reject.field, reject.message) for reject in chunk.rejects] == [
        ("1", "minimum", "a", "a: 0 is below minimum: 1; b: is missing"),
        ("3", "minimum", "a", 'a: 0 is below minimum: 1; b: "y" does not match pattern: x+'),
    ]


def test_rows_that_were_made_otherwise() -> None:
    """The same rules hold for rows of exact values, wherever they come from."""
    fields = [ruled("numeric", minimum=1), FieldSpec.model_validate({"name": "other", "type": "text", "allowed": ["x"]})]
    rules = RowRules(fields, ["other"])
    rows = [[("1", "1"), "x"], [("0.50", "0.5"), "x"], [None, None], [None, "y"]]
    assert rules.broken(rows) == {1, 2, 3}
    assert [rules.problems(row) for row in rows] == [
        [],
        [Problem("value", "minimum", "0.5 is below minimum: 1")],
        [Problem("other", "required", "is null")],
        [Problem("other", "allowed", '"y" is not among allowed: x')],
    ]


def test_rules_on_what_tells_objects_apart() -> None:
    """An object whose key breaks one is rejected under that key; one that is gone has no row to be judged."""
    fields: dict[str, Any] = {
        "id": {"type": "text", "pattern": "[a-z]"},
        "at": {"type": "integer", "minimum": 1},
        "gone": {"type": "boolean", "lower": True, "map": {"y": True, "n": False}},
    }
    spec = sync_spec(fields, object={"key": ["id"], "version": "at", "deleted": "gone"})
    chunk = map_records(
        spec, '{"id": "A", "at": 1}', '{"id": "b", "at": 0}', '{"id": "c", "at": 0, "gone": "Y"}', '{"id": "d", "gone": "?"}'
    )
    assert [(row["_key"], row["_deleted"]) for row in rows_of(chunk)] == [("c", True)]
    assert [(reject.key, reject.error) for reject in chunk.rejects] == [("A", "pattern"), ("b", "minimum"), ("d", "unmapped")]
