"""A value of Python's comes in, out of a frame of the team's; its JSON token, or a `Violation` that says why not, goes out.

Nothing is written that is only near to the value: what is no plain value of JSON's, a date or a uuid is refused by name.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from math import isfinite, isnan
from typing import Any, Final, Self
from uuid import UUID

import msgspec

from sluice.mapping.violation import OUT_OF_RANGE, PRECISION, TYPE, Violation, shown

_EXACT: Final = 2**53
"""From here on a float may stand for several whole numbers."""
_INTEGER_BITS: Final = 14_000
"""Whole numbers of more have more digits than Python writes."""
_ENCODE: Final = msgspec.json.Encoder().encode


class Written(Decimal):
    """A number as it was written, so that one which nobody has touched is written alike again.

    One with an exponent beyond all that Python reckons with is NaN to whoever looks at it.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Return the number that a text stands for."""
        try:
            number = super().__new__(cls, text)
        except InvalidOperation:
            number = super().__new__(cls, "NaN")
        number.text = text
        return number


def plain(value: Any) -> Any:
    """Return numpy's scalars as Python's own, exactly; missing values as None if that is what they say: see `is_nan`."""
    import numpy as np
    import pandas as pd

    if value is pd.NA:
        return None
    if isinstance(value, np.datetime64):
        return pd.Timestamp(value)
    if isinstance(value, np.bool_ | np.integer | np.floating) and not isinstance(value, np.longdouble):
        return value.item()
    return value


def is_nan(value: Any) -> bool:
    """Whether a value is NaN or NaT: what pandas puts where it has no value, and what comes of sums that have no result."""
    import pandas as pd

    is_number = isinstance(value, float | Decimal) and not isinstance(value, Written)
    return value is pd.NaT or (is_number and isnan(value))


def named(value: Any) -> str:
    """Return a value for a message: shortened, with its type."""
    try:
        text = str(value)
    except Exception:  # noqa: BLE001  it is the team's
        text = "?"
    return f"{type(value).__name__} {shown(text)}"


def integer_text(value: int) -> str:
    """Return the digits of a whole number."""
    if value.bit_length() > _INTEGER_BITS:
        raise Violation(OUT_OF_RANGE, "a whole number of thousands of digits")
    return str(int(value))


def whole_text(value: float) -> str | None:
    """Return the digits of a float if it is a whole number; None if it is not."""
    if not isfinite(value):
        raise Violation(OUT_OF_RANGE, f"{value} is no number that can be stored")
    if value != int(value):
        return None
    if abs(value) >= _EXACT:
        raise Violation(PRECISION, f"{value!r} is a float, which does not tell whole numbers apart from 2^53 on")
    return "-0" if value == 0 and str(value)[0] == "-" else str(int(value))


def instant_text(value: datetime) -> str:
    """Return a moment that has a time zone, in UTC."""
    moment = _datetime(value)
    if moment.tzinfo is None:
        raise Violation(TYPE, f"{shown(moment.isoformat())} has no offset from UTC: a timestamp needs a time zone")
    try:
        return moment.astimezone(UTC).isoformat()
    except OverflowError:
        raise Violation(OUT_OF_RANGE, f"{shown(moment.isoformat())} is outside the years 0001 to 9999 in UTC") from None


def token(value: Any) -> str:
    """Return a value as JSON; null for None."""
    try:
        return _token(value)
    except RecursionError:
        raise Violation(OUT_OF_RANGE, "nested too deeply") from None


def _token(value: Any) -> str:
    write = _WRITERS.get(type(value))
    return _other(value) if write is None else write(value)


def _list(values: Iterable[Any]) -> str:
    return f"[{','.join(map(_token, values))}]"


def _object(value: Mapping[Any, Any]) -> str:
    return f"{{{','.join(f'{_key(key)}:{_token(part)}' for key, part in value.items())}}}"


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise Violation(TYPE, f"{named(key)} is no key of a JSON object")
    return _string(key)


def _other(given: Any) -> str:  # noqa: C901, PLR0911  one case for each type
    """Return a value as JSON whose type is not one of those that JSON itself comes to."""
    import numpy as np

    value = plain(given)
    if is_nan(value):
        raise Violation(OUT_OF_RANGE, f"{value} is no value of JSON's, and not null: null is None")
    match value:
        case float():
            return whole_text(value) or repr(float(value))
        case Decimal():
            return decimal_text(value)
        case datetime():
            return _string(_datetime(value).isoformat())
        case date() | UUID():
            return _string(str(value))
        case Mapping():
            return _object(value)
        case tuple():
            return _list(value)
        case np.ndarray() if value.ndim:
            return _list(value)
    for kind in (bool, str, int, list, type(None)):
        if isinstance(value, kind):
            return _WRITERS[kind](value)
    raise Violation(TYPE, f"{named(value)} is no value of JSON's")


def decimal_text(value: Decimal) -> str:
    """Return the digits of a decimal number."""
    if not value.is_finite():
        raise Violation(OUT_OF_RANGE, f"{value} is no number that can be stored")
    return str(value)


def _datetime(value: datetime) -> datetime:
    """Return a moment as Python's own, which tells microseconds."""
    if nanoseconds := getattr(value, "nanosecond", 0):
        raise Violation(PRECISION, f"{shown(str(value))} is finer than a microsecond ({nanoseconds} ns)")
    return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


def _string(text: str) -> str:
    try:
        return _ENCODE(text).decode()
    except UnicodeEncodeError:
        return json.dumps(text)


_WRITERS: Final[Mapping[type, Callable[[Any], str]]] = {
    str: _string,
    int: integer_text,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
    Written: lambda value: value.text,
    list: _list,
    dict: _object,
}
"""For the types that JSON itself comes to."""
