"""Paths as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.model.fields import FieldSpec
from sluice.model.paths import EACH, Path, spell_path

KEYS = st.text("ab_é -", min_size=1, max_size=3)


def parsed(path: object) -> Path:
    """The path of a field that is written so."""
    return FieldSpec.model_validate({"name": "a", "type": "json", "path": path}).path


@given(first=KEYS, more=st.lists(KEYS | st.integers(0, 99) | st.just(EACH), max_size=4))
def test_what_is_spelled_is_read_again(first: str, more: list[str | int]) -> None:
    """As one text, and as a list, whose JSON is read back, too."""
    path = (first, *more)
    assert parsed(spell_path(path)) == parsed(list(path)) == path
    field = FieldSpec.model_validate({"name": "a", "type": "json", "path": list(path)})
    assert FieldSpec.model_validate_json(field.model_dump_json()) == field


@pytest.mark.parametrize(
    ("path", "steps", "spelled"),
    [
        ("rooms[0].code", ("rooms", 0, "code"), "rooms[0].code"),
        ("rooms[*][1]", ("rooms", EACH, 1), "rooms[*][1]"),
        ("rooms.[0]", ("rooms", 0), "rooms[0]"),
        (["a.b", 0, "c[0]"], ("a.b", 0, "c[0]"), '["a.b"][0]["c[0]"]'),
        (["0"], ("0",), "0"),
    ],
)
def test_steps(path: object, steps: Path, spelled: str) -> None:
    """A list keeps dots and brackets in keys."""
    assert parsed(path) == steps
    assert spell_path(steps) == spelled


@pytest.mark.parametrize(
    ("keys", "origin"),
    [
        ({}, "a"),
        ({"path": "b[0].c"}, "b[0].c"),
        ({"coalesce": ["b", "c.d"]}, "coalesce(b, c.d)"),
        ({"concat": ["b", {"text": ", "}, "c"]}, 'concat(b, ", ", c)'),
        ({"constant": "x"}, "constant 'x'"),
        ({"type": "json", "rest": True}, "rest"),
    ],
)
def test_where_a_value_comes_from(keys: dict[str, object], origin: str) -> None:
    """It is told for people."""
    assert FieldSpec.model_validate({"name": "a", "type": "text", **keys}).origin == origin


def test_keys_that_are_not_set_leave_no_trace() -> None:
    """What is declared as ever is dumped as ever, so that its hash stays the same."""
    plain = FieldSpec.model_validate({"name": "a", "type": "text"})
    assert list(plain.model_dump()) == ["name", "path", "type", "format", "required", "description"]
    full = {"default": False, "map": {"x": False}, "min_length": 1, "max_length": 0, "allowed": [False], "lower": True}
    dumped = FieldSpec.model_validate({"name": "a", "type": "text", **full}).model_dump(mode="json")
    assert {key: dumped[key] for key in full} == full
