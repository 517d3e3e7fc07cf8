"""A declared type, and a value that the team's function has returned for it, come in; exactly that value goes out.

A type takes the values of Python's that are of it, and texts that spell one, as it takes them from JSON. What would have to be
rounded, cut or guessed is a `Violation`.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sluice.mapping.arrays import paired
from sluice.mapping.exact import ExactType
from sluice.mapping.python_values import (
    decimal_text,
    instant_text,
    integer_text,
    is_nan,
    named,
    plain,
    token,
    whole_text,
)
from sluice.mapping.violation import ENCODING, OUT_OF_RANGE, PRECISION, TYPE, Violation, shown
from sluice.model.fields import TypeName


def exact_value(kind: ExactType, value: Any, before: Any) -> Any:
    """Return the value as rows hold it; None where it is null.

    NaN and NaT are null only where null stood `before`: there pandas has put them. Elsewhere a sum has come to no result.
    """
    value = plain(value)
    if value is None:
        return None
    if is_nan(value):
        if before is None:
            return None
        raise Violation(OUT_OF_RANGE, f"{value} is no {kind.name}, and not null: null is None or pandas.NA")
    if kind.item is not None:
        return _array(kind, kind.item, value, before)
    return kind.from_text(_text(kind, value))


def _array(kind: ExactType, item: ExactType, value: Any, before: Any) -> Any:
    import numpy as np

    if not isinstance(value, list | tuple | np.ndarray):
        raise Violation(TYPE, f"{named(value)} is no {kind.name}")
    values = []
    stood = before if before is not None and len(before) == len(value) else [item] * len(value)
    for place, part in enumerate(value):
        try:
            values.append(exact_value(item, part, stood[place]))
        except Violation as violation:
            raise Violation(violation.error, f"item {place}: {violation.message}") from None
    return paired(values)


def _text(kind: ExactType, value: Any) -> str:
    """Return the text form of a value, which its type reads exactly."""
    if isinstance(value, str):
        return _written(kind, value)
    read = _TEXTS.get(kind.name, _of_numeric)
    text = read(value)
    if text is None:
        raise Violation(TYPE, f"{named(value)} is no {kind.name}")
    return text


def _written(kind: ExactType, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Violation(ENCODING, f"{shown(value)} has a lone surrogate") from None
    if not value and kind.name != TypeName.TEXT:
        raise Violation(TYPE, f"an empty string is no {kind.name}")
    return str.__str__(value)


def _of_text(_: Any) -> str | None:
    return None


def _of_integer(value: Any) -> str | None:
    match value:
        case bool():
            return None
        case int():
            return integer_text(value)
        case Decimal():
            return decimal_text(value)
        case float():
            return whole_text(value) or repr(value)
    return None


def _of_numeric(value: Any) -> str | None:
    if isinstance(value, float):
        text = whole_text(value)
        if text is None:
            raise Violation(PRECISION, f"{value!r} is a float, which is only near to a decimal number: compute with Decimal")
        return text
    return _of_integer(value)


def _of_double(value: Any) -> str | None:
    match value:
        case bool():
            return None
        case float():
            return repr(float(value))
        case int() if _is_float(value):
            return integer_text(value)
        case int():
            raise Violation(PRECISION, f"{integer_text(value)} is no double precision number: it would be rounded")
        case Decimal():
            return decimal_text(value)
    return None


def _is_float(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _of_boolean(value: Any) -> str | None:
    return ("true" if value else "false") if isinstance(value, bool) else None


def _of_date(value: Any) -> str | None:
    match value:
        case datetime() if value.tzinfo is None and value.time() == time() and not getattr(value, "nanosecond", 0):
            return value.date().isoformat()
        case datetime():
            raise Violation(PRECISION, f"{shown(str(value))} is a moment, and no day")
        case date():
            return value.isoformat()
    return None


def _of_instant(value: Any) -> str | None:
    return instant_text(value) if isinstance(value, datetime) else None


def _of_uuid(value: Any) -> str | None:
    return str(value) if isinstance(value, UUID) else None


def _of_document(value: Any) -> str | None:
    return token(value)


_TEXTS: Final[Mapping[str, Callable[[Any], str | None]]] = {
    TypeName.TEXT: _of_text,
    TypeName.INTEGER: _of_integer,
    TypeName.BIGINT: _of_integer,
    TypeName.DOUBLE: _of_double,
    TypeName.BOOLEAN: _of_boolean,
    TypeName.DATE: _of_date,
    TypeName.TIMESTAMPTZ: _of_instant,
    TypeName.UUID: _of_uuid,
    TypeName.JSON: _of_document,
}
"""By type; what is not named here is numeric, with whatever digits."""
