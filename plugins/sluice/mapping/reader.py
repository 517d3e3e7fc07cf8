"""Declared fields and a record's raw bytes come in; the exact values of the fields, or all that is wrong with them, come out.

There are two ways, and they agree. `fast` decodes with a type compiled once from the fields, takes what arrives in the
form that was declared, and gives up on anything else. `examine` takes the record apart token by token: it reads the other
forms a value may have, names every problem, and copes with records that are not even JSON.

Expressions and patterns are worked out for many records at once where that can be had: `gather` does what `fast` does up to
them, `complete` the rest.
"""

from collections.abc import Iterable, Sequence
from decimal import InvalidOperation
from typing import Any, Final

import msgspec
from msgspec import Raw

from sluice.mapping.compiled import CompiledPaths
from sluice.mapping.exact import exact_field, exact_type
from sluice.mapping.literals import literal
from sluice.mapping.members import Members, rest_of
from sluice.mapping.origins import Found, Given, Left, Made, origin_of, read
from sluice.mapping.rules import RowRules
from sluice.mapping.tokens import ODD_ZERO
from sluice.mapping.values import value_of
from sluice.mapping.violation import REQUIRED, TYPE, Problem, Violation
from sluice.model.fields import FieldSpec, TypeName

MISSES: Final = (msgspec.MsgspecError, Violation, RecursionError, InvalidOperation)
"""What `fast` raises where it gives up."""


class Reader:
    """Reads some declared fields of records."""

    def __init__(self, fields: Sequence[FieldSpec], required: Iterable[str] = ()) -> None:
        """Read `fields`; those named in `required` may not be null, whatever they say themselves."""
        demanded = set(required)
        self.kinds = [exact_field(field) for field in fields]
        self._names = [field.name for field in fields]
        self._origins = [origin_of(field, kind, fields) for field, kind in zip(fields, self.kinds, strict=True)]
        self._required = [index for index, field in enumerate(fields) if field.required or field.name in demanded]
        self._defaults = {
            index: literal(exact_type(field.type), field.default)
            for index, field in enumerate(fields)
            if field.default is not None
        }
        self._row_rules = RowRules(fields, tuple(demanded))
        self._rules = dict(self._row_rules.checked)
        self._narrowing = [
            (index, kind.narrow, kind.taken)
            for index, (kind, origin) in enumerate(zip(self.kinds, self._origins, strict=True))
            if kind.narrow and isinstance(origin, Found)
        ]
        self._doubles = [index for index, kind in enumerate(self.kinds) if (kind.item or kind).name == TypeName.DOUBLE]
        self._made = [(index, origin) for index, origin in enumerate(self._origins) if isinstance(origin, Made)]
        self.is_columnar = bool(self._made) or any(field.pattern is not None for field in fields)
        """Whether many records are read faster by `gather` and `complete`."""
        self._is_found = all(isinstance(origin, Found) for origin in self._origins)
        self.is_plain = self._is_found and not self.is_columnar
        """Whether each value stands somewhere in the record, and is read as fast by itself as many are at once."""
        self._paths = CompiledPaths([leaf for index in range(len(fields)) for leaf in self._leaves(index)])

    def fast(self, record: Raw) -> list[Any]:
        """Return the values in the order of the fields; raise one of `MISSES` if it takes `examine` to tell them."""
        values = self.gather(record)
        for index, origin in self._made:
            values[index] = read(self.kinds[index], origin.expression.of(iter(values[index])))
        for index, default in self._defaults.items():
            if values[index] is None:
                values[index] = default
        for index in self._required:
            if values[index] is None:
                raise Violation(REQUIRED, "is missing")
        for index, rules in self._rules.items():
            if (value := values[index]) is not None:
                rules.check(value)
        return values

    def columns(self, records: Sequence[Raw]) -> list[Sequence[Any]] | None:
        """Return field by field what `fast` finds in records, at once; None if it has to be asked of each of them."""
        if not (records and self._is_found and self._paths.is_possible):
            return None
        try:
            columns = self._paths.columns(records)
            for index, narrow, taken in self._narrowing:
                columns[index] = [value if value is None or type(value) is taken else narrow(value) for value in columns[index]]
            for index in self._doubles:
                if any(map(_is_odd, columns[index], records)):
                    return None
            for index, default in self._defaults.items():
                columns[index] = [default if value is None else value for value in columns[index]]
            for index, rules in self._rules.items():
                for value in columns[index]:
                    if value is not None:
                        rules.check(value)
        except MISSES:
            return None
        return None if any(None in columns[index] for index in self._required) else columns

    def gather(self, record: Raw) -> list[Any]:
        """Return the values, of expressions the texts they are made of; raise one of `MISSES` as `fast` does."""
        if not self._paths.is_possible:
            raise Violation(TYPE, "has to be examined")
        values = self._paths.decode(record)
        if not self._is_found:
            values = self._put_together(values, record)
        for index, narrow, taken in self._narrowing:
            value = values[index]
            if value is not None and type(value) is not taken:
                values[index] = narrow(value)
        for index in self._doubles:
            if _is_odd(values[index], record):
                raise Violation(TYPE, "only its token tells which number is read as 0")
        return values

    def complete(self, rows: Sequence[list[Any]]) -> set[int]:
        """Put the values into rows that were gathered; return the places of those that it takes `examine` to tell."""
        broken: set[int] = set()
        for index, origin in self._made if rows else ():
            texts, unmapped = origin.expression.column(list(zip(*(row[index] for row in rows), strict=True)))
            broken.update(place for place, is_unmapped in enumerate(unmapped) if is_unmapped)
            for place, (row, text) in enumerate(zip(rows, texts, strict=True)):
                try:
                    row[index] = read(self.kinds[index], text)
                except Violation:
                    row[index] = None
                    broken.add(place)
        for index, default in self._defaults.items():
            for row in rows:
                row[index] = default if row[index] is None else row[index]
        return broken | self._row_rules.broken(rows)

    def examine(self, record: bytes) -> tuple[list[Any], list[Problem]]:
        """Return the values, null where there is a problem, and the problems."""
        values: list[Any] = [None] * len(self._names)
        try:
            members = Members(record)
        except Violation as violation:
            return values, [Problem(None, violation.error, violation.message)]
        problems = []
        for index, name in enumerate(self._names):
            try:
                values[index] = self._examined(index, members)
            except Violation as violation:
                problems.append(Problem(name, violation.error, violation.message))
        return values, problems

    def _examined(self, index: int, members: Members) -> Any:
        origin = self._origins[index]
        value = origin.value(self.kinds[index], members)
        if value is None:
            value = self._defaults.get(index)
        if value is None and index in self._required:
            is_missing = isinstance(origin, Found) and members.find(origin.path) is None
            raise Violation(REQUIRED, "is missing" if is_missing else "is null")
        if value is not None and index in self._rules:
            self._rules[index].check(value)
        return value

    def _leaves(self, index: int) -> Iterable[tuple[Any, Any]]:
        match self._origins[index]:
            case Found(path):
                return [(path, self.kinds[index].wire)]
            case Made(paths):
                return [(path, Raw) for path in paths]
            case Given() | Left():
                return []

    def _put_together(self, found: list[Any], record: Raw) -> list[Any]:
        """Return the values of the fields, out of what stands at all paths in the order of the fields."""
        values: list[Any] = []
        rest = iter(found)
        for kind, origin in zip(self.kinds, self._origins, strict=True):
            match origin:
                case Found():
                    values.append(next(rest))
                case Made(paths, _, text):
                    tokens = [next(rest) for _ in paths]
                    values.append(tuple(None if token is None else text(bytes(token)) for token in tokens))
                case Given(given):
                    values.append(given)
                case Left(taken):
                    values.append(value_of(kind, rest_of(bytes(record), taken)))
        return values


def _is_odd(double: Any, record: Raw) -> bool:
    """Whether a value is 0, and may be another number that was read as 0."""
    return type(double) is tuple and ODD_ZERO.search(record) is not None
