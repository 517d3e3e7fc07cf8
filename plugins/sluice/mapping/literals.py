"""A value that stands in a spec comes in; the same as its field's type has it goes out."""

import json
from typing import Any, Final

from sluice.mapping.exact import ExactType
from sluice.mapping.values import value_of
from sluice.mapping.violation import TYPE, Violation
from sluice.model.fields import TypeName

_NUMBERS: Final = (TypeName.INTEGER, TypeName.BIGINT, TypeName.NUMERIC, TypeName.DOUBLE)


def literal(kind: ExactType, value: Any) -> Any:
    """Return a value as the type by itself reads it, whatever `format` says; raise `Violation` if it is none.

    A text has to be written as one: what YAML takes for a number has lost its spelling.
    """
    refuse_unquoted(kind, value)
    return value_of(kind, json.dumps(value, ensure_ascii=False).encode())


def refuse_unquoted(kind: ExactType, value: Any) -> None:
    """Raise `Violation` if a value is a number or truth value of YAML's, where the type is written as text."""
    if kind.item is not None:
        for item in value if isinstance(value, list | tuple) else ():
            refuse_unquoted(kind.item, item)
    elif isinstance(value, int | float) and not isinstance(value, bool) and not _takes_numbers(kind):
        raise Violation(TYPE, f"{value} is a number, and {kind.name} is written in quotes")
    elif isinstance(value, bool) and kind.name not in (TypeName.BOOLEAN, TypeName.JSON):
        raise Violation(TYPE, f"{str(value).lower()} is a truth value, which {kind.name} is not: write a text in quotes")


def _takes_numbers(kind: ExactType) -> bool:
    return kind.name.startswith(_NUMBERS) or kind.name == TypeName.JSON
