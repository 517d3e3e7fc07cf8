"""What a spec says has to hold of its fields comes in; which values break it, and how, goes out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sluice.mapping.exact import ExactType, exact_type, told_apart
from sluice.mapping.literals import literal
from sluice.mapping.violation import (
    ALLOWED,
    MAX_LENGTH,
    MAXIMUM,
    MIN_LENGTH,
    MINIMUM,
    PATTERN,
    REQUIRED,
    Problem,
    Violation,
    shown,
    shown_token,
)
from sluice.model.fields import FieldSpec, TypeName


@dataclass(frozen=True)
class Rule:
    """One rule of a field; values come as they are told apart."""

    error: str
    words: str
    """How a value is that breaks it."""
    holds: Callable[[Any], bool]


class FieldRules:
    """The rules of one field."""

    def __init__(self, field: FieldSpec) -> None:
        """Raise `Violation` if a bound is no value of the field's type."""
        self._kind = exact_type(field.type)
        self._rules = list(_rules(field, self._kind))
        self._pattern = None if field.pattern is None else _whole(field.pattern)
        self._pattern_words = f"does not match pattern: {field.pattern}"

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._rules) or self._pattern is not None

    def check(self, value: Any) -> None:
        """Raise `Violation` if a value, which is not null, breaks a rule."""
        apart = told_apart(value)
        for rule in self._rules:
            if not rule.holds(apart):
                raise Violation(rule.error, f"{self._shown(apart)} {rule.words}")
        if self._pattern is not None and _matches([apart], self._pattern) == [False]:
            raise Violation(PATTERN, f"{self._shown(apart)} {self._pattern_words}")

    def broken(self, values: Sequence[Any]) -> list[int]:
        """Return the places of the values, null or not, that break a rule."""
        apart = [told_apart(value) for value in values]
        found = {
            place
            for place, value in enumerate(apart)
            if value is not None and not all(rule.holds(value) for rule in self._rules)
        }
        if self._pattern is not None:
            matches = _matches(apart, self._pattern)
            found.update(place for place, is_match in enumerate(matches) if is_match is False)
        return sorted(found)

    def _shown(self, apart: Any) -> str:
        text = self._kind.to_text(apart)
        is_word = self._kind.name in (TypeName.TEXT, TypeName.UUID) or self._kind.item is not None
        return shown(text) if is_word else shown_token(text.encode())


class RowRules:
    """The rules of all fields of a sync, `required` among them, for rows of exact values in the order of the fields."""

    def __init__(self, fields: Sequence[FieldSpec], required: Sequence[str] = ()) -> None:
        """Hold those named in `required` to be required, whatever they say themselves."""
        self._names = [field.name for field in fields]
        self._required = [index for index, field in enumerate(fields) if field.required or field.name in required]
        self.checked = [(index, rules) for index, field in enumerate(fields) if (rules := FieldRules(field))]
        """The fields that have rules of their own, by their places."""

    def broken(self, rows: Sequence[Sequence[Any]]) -> set[int]:
        """Return the places of the rows that break a rule."""
        found = {place for place, row in enumerate(rows) if any(row[index] is None for index in self._required)}
        for index, rules in self.checked:
            found.update(rules.broken([row[index] for row in rows]))
        return found

    def problems(self, row: Sequence[Any]) -> list[Problem]:
        """Return the rules that one row breaks, at most one for each field."""
        return sorted(self._problems(row), key=lambda problem: self._names.index(problem.field or ""))

    def _problems(self, row: Sequence[Any]) -> Iterator[Problem]:
        for index in self._required:
            if row[index] is None:
                yield Problem(self._names[index], REQUIRED, "is null")
        for index, rules in self.checked:
            if row[index] is not None:
                try:
                    rules.check(row[index])
                except Violation as violation:
                    yield Problem(self._names[index], violation.error, violation.message)


def pattern_refused(pattern: str) -> str | None:
    """Return why a pattern cannot be used; None: it can."""
    for tried in (pattern, _whole(pattern)):
        try:
            _matches([""], tried)
        except ValueError as error:
            return str(error).partition("\n")[0].removeprefix("Invalid regular expression: ")
    return None


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


def _matches(texts: Sequence[str | None], pattern: str) -> list[bool | None]:
    """Return for each text whether a pattern is found in it. RE2 takes time in proportion to a text, whatever is in it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: list[bool | None] = pc.match_substring_regex(pa.array(texts, pa.string()), pattern).to_pylist()
    return found


def _rules(field: FieldSpec, kind: ExactType) -> Iterator[Rule]:
    order = order_of(kind)
    if field.minimum is not None:
        low = order(literal(kind, field.minimum))
        yield Rule(MINIMUM, f"is below minimum: {_spelled(field.minimum)}", lambda value: order(value) >= low)
    if field.maximum is not None:
        high = order(literal(kind, field.maximum))
        yield Rule(MAXIMUM, f"is above maximum: {_spelled(field.maximum)}", lambda value: order(value) <= high)
    if (least := field.min_length) is not None:
        yield Rule(MIN_LENGTH, f"is shorter than min_length: {least}", lambda value: len(value) >= least)
    if (most := field.max_length) is not None:
        yield Rule(MAX_LENGTH, f"is longer than max_length: {most}", lambda value: len(value) <= most)
    if field.allowed is not None:
        allowed = frozenset(told_apart(literal(kind, value)) for value in field.allowed)
        listed = shown(", ".join(map(_spelled, field.allowed)))
        yield Rule(ALLOWED, f"is not among allowed: {listed[1:-1]}", lambda value: value in allowed)


def order_of(kind: ExactType) -> Callable[[Any], Any]:
    """Return what tells by what a value of a type is compared with others."""
    if kind.name.startswith(TypeName.NUMERIC):
        return lambda value: Decimal(told_apart(value))
    return told_apart


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
