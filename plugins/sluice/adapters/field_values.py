"""A field, with the values that stand in its YAML, in; those of them that are none of its type, or break its own rules, out."""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from sluice.adapters.yaml_positions import Path, Problem
from sluice.mapping.exact import exact_field, exact_type
from sluice.mapping.expressions import meant_text
from sluice.mapping.literals import literal, refuse_unquoted
from sluice.mapping.rules import FieldRules, order_of
from sluice.mapping.violation import Violation
from sluice.model.fields import FieldSpec


def broken_values(at: Path, field: FieldSpec, item: Mapping[str, Any], texts: Mapping[Path, str]) -> Iterator[Problem]:
    """Yield what is wrong with the values that stand in a field's item; `texts` are the scalars as written."""
    problems = [*_imprecise(at, item, texts), *_mistyped(at, field), *_unreadable(at, field)]
    yield from problems or _contradicting(at, field)


def _imprecise(at: Path, item: Mapping[str, Any], texts: Mapping[Path, str]) -> Iterator[Problem]:
    """Yield each number of which YAML has not kept all digits."""
    for key in ("default", "constant", "minimum", "maximum", "allowed", "map"):
        for path, value in _floats((*at, key), item.get(key)):
            written = texts.get(path, "")
            try:
                is_kept = Decimal(written) == Decimal(repr(value))
            except InvalidOperation:
                is_kept = False
            if not is_kept:
                yield Problem(path, f"{written} has more digits than YAML keeps of a number: write '{written}' in quotes")


def _floats(path: Path, value: Any) -> Iterator[tuple[Path, float]]:
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, list | dict):
        for key, part in enumerate(value) if isinstance(value, list) else value.items():
            yield from _floats((*path, key), part)


def _mistyped(at: Path, field: FieldSpec) -> Iterator[Problem]:
    """Yield each value that is none of the field's type."""
    kind = exact_type(field.type)
    values = [(("constant",), field.constant), (("default",), field.default)]
    values += [(("minimum",), field.minimum), (("maximum",), field.maximum)]
    listed: list[tuple[Path, Any]] = [
        *values,
        *((("allowed", place), value) for place, value in enumerate(field.allowed or ())),
    ]
    for key, value in listed:
        if value is None and key[0] != "allowed":
            continue
        try:
            if literal(kind, value) is None:
                yield Problem((*at, *key), "is null, which needs no rule: leave it out")
        except Violation as violation:
            yield Problem((*at, *key), violation.message)


def _unreadable(at: Path, field: FieldSpec) -> Iterator[Problem]:
    """Yield each entry of a map whose text the field cannot be read from."""
    kind = exact_field(field)
    for text, meant in (field.map or {}).items():
        try:
            refuse_unquoted(kind, meant)
            told = meant_text(meant)
            if told is not None:
                kind.from_text(told)
        except Violation as violation:
            yield Problem((*at, "map", text), violation.message)


def _contradicting(at: Path, field: FieldSpec) -> Iterator[Problem]:
    """Yield what can never hold: bounds the wrong way round, and values that the field's own rules reject.

    Its pattern is held against them elsewhere: see `pattern_rules`.
    """
    field = field.model_copy(update={"pattern": None})
    kind = exact_type(field.type)
    order = order_of(kind)
    if field.minimum is not None and field.maximum is not None:
        low, high = (order(literal(kind, bound)) for bound in (field.minimum, field.maximum))
        if low > high:
            yield Problem((*at, "minimum"), f"{field.minimum} is above maximum: {field.maximum}")
            return
    if field.default is not None:
        yield from _rejected((*at, "default"), field, field.default)
    bounds = field.model_copy(update={"allowed": None})
    for place, value in enumerate(field.allowed or ()):
        yield from _rejected((*at, "allowed", place), bounds, value)


def _rejected(path: Path, field: FieldSpec, value: Any) -> Iterator[Problem]:
    try:
        FieldRules(field).check(literal(exact_type(field.type), value))
    except Violation as violation:
        yield Problem(path, f"breaks a rule of the field's own: {violation.message}")
