"""A JSON token and a type of Postgres in; what a column of that type has to hold then out, without a line of Sluice.

Values come out as Python has them exactly: a `Decimal`, a `datetime`, a document whose numbers are `Decimal`. `REFUSED` stands
for a token that says nothing the type can hold.
"""

import json
import math
import re
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final

REFUSED: Final = object()
_MOST_DIGITS: Final = 1_000
_JSONB_WHOLE: Final = 131_072
_JSONB_FRACTION: Final = 16_383
_JSONB_DEPTH: Final = 256


@dataclass(frozen=True)
class Literal:
    """A number as it stands in JSON."""

    text: str


class _Unfit(Exception):
    """Says that a token has no value."""


def worth(kind: str, token: bytes) -> Any:
    """Return what a column of that type has to hold for a token."""
    try:
        return _worth(kind, _decoded(token))
    except _Unfit:
        return REFUSED


def held(kind: str, found: Any) -> Any:
    """Return what a column holds, read from the text by which Postgres spells it; of an array from those of its items."""
    if found is None:
        return None
    if kind.endswith("[]"):
        return [held(kind[:-2], item) for item in found]
    return _HELD[kind.partition("(")[0]](found)


def _worth(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind.endswith("[]"):
        if not isinstance(value, list):
            raise _Unfit
        return [_worth(kind[:-2], item) for item in value]
    name, _, shape = kind.partition("(")
    if shape:
        precision, scale = map(int, shape.removesuffix(")").split(","))
        return _bounded(value, precision, scale)
    return _WORTHS[name](value)


def _decoded(token: bytes) -> Any:
    try:
        text = token.decode()
        value = json.loads(text, parse_int=Literal, parse_float=Literal, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _Unfit from None
    _require_text(value)
    return value


def _no_constant(_: str) -> None:
    raise _Unfit


def _require_text(value: Any) -> None:
    """Refuse what no text of Postgres can be: NUL, and half a character."""
    match value:
        case str():
            if "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
                raise _Unfit
        case list():
            for item in value:
                _require_text(item)
        case dict():
            for name, item in value.items():
                _require_text(name)
                _require_text(item)


def _number(value: Any) -> Decimal:
    """Return a number, or a text that is one."""
    text = value.text if isinstance(value, Literal) else value
    if not isinstance(text, str) or not re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        raise _Unfit
    try:
        return Decimal(text)
    except InvalidOperation:
        raise _Unfit from None


def _exactly(value: Any) -> Decimal:
    number = _number(value)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if max(number.adjusted(), -exponent) > _MOST_DIGITS:
        raise _Unfit
    return number or abs(number)


def _whole(bits: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        number = _number(value)
        if number and abs(number.adjusted()) > 10 * bits:
            raise _Unfit
        exact = Fraction(number) if number else Fraction(0)
        if exact.denominator != 1 or not -(2 ** (bits - 1)) <= exact < 2 ** (bits - 1):
            raise _Unfit
        return int(exact)

    return read


def _bounded(value: Any, precision: int, scale: int) -> Decimal:
    number = _number(value)
    if number and abs(number.adjusted()) > 10 * _MOST_DIGITS:
        raise _Unfit
    unscaled = (Fraction(number) if number else Fraction(0)) * 10**scale
    if unscaled.denominator != 1 or abs(unscaled) >= 10**precision:
        raise _Unfit
    sign, digits = int(unscaled < 0), tuple(map(int, str(abs(int(unscaled)))))
    return Decimal((sign, digits, -scale))


def _double(value: Any) -> bytes:
    number = _number(value)
    nearest = float(value.text if isinstance(value, Literal) else value)
    if math.isinf(nearest) or (number and not nearest):
        raise _Unfit
    return struct.pack(">d", nearest)


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case Literal(text):
            return text
        case bool():
            return json.dumps(value)
    raise _Unfit


def _boolean(value: Any) -> bool:
    if value is True or value == "true":
        return True
    if value is False or value == "false":
        return False
    raise _Unfit


def _date(value: Any) -> date:
    match = re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", value) if isinstance(value, str) else None
    if match is None:
        raise _Unfit
    try:
        return date(*map(int, match.groups()))
    except ValueError:
        raise _Unfit from None


_MOMENT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2})?)"
)


def _moment(value: Any) -> datetime:
    match = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if match is None or value.endswith(":"):
        raise _Unfit
    day, hour, minute, second, fraction, sign, hours, minutes = match.groups()
    micros, finer = (fraction or "")[:6].ljust(6, "0"), (fraction or "")[6:].strip("0")
    if finer or int(minutes or 0) > 59:
        raise _Unfit
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        zone = timezone(-offset if sign == "-" else offset)
        on = _date(day)
        local = datetime(on.year, on.month, on.day, int(hour), int(minute), int(second or 0), int(micros), zone)
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _Unfit from None


def _uuid(value: Any) -> uuid.UUID:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        raise _Unfit
    return uuid.UUID(value)


def _document(value: Any, depth: int = 1) -> Any:
    """Return a document, told apart by kind, of which jsonb can hold each number."""
    match value:
        case Literal(text):
            number = _number(Literal(text))
            exponent = number.as_tuple().exponent
            assert isinstance(exponent, int)
            if number.adjusted() >= _JSONB_WHOLE or -exponent > _JSONB_FRACTION:
                raise _Unfit
            return ("number", number)
        case list() | dict() if depth > _JSONB_DEPTH:
            raise _Unfit
        case list():
            return ("list", tuple(_document(item, depth + 1) for item in value))
        case dict():
            return ("object", {name: _document(item, depth + 1) for name, item in value.items()})
        case True | False:
            return ("boolean", value)
    return ("other", value)


def _held_moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("+00", "+00:00"))


_WORTHS: Final[dict[str, Callable[[Any], Any]]] = {
    "text": _text,
    "integer": _whole(32),
    "bigint": _whole(64),
    "numeric": _exactly,
    "double precision": _double,
    "boolean": _boolean,
    "date": _date,
    "timestamptz": _moment,
    "uuid": _uuid,
    "json": _document,
}
_HELD: Final[dict[str, Callable[[str], Any]]] = {
    "text": str,
    "integer": int,
    "bigint": int,
    "numeric": Decimal,
    "double precision": lambda text: struct.pack(">d", float(text)),
    "boolean": lambda text: {"true": True, "false": False, "t": True, "f": False}[text],
    "date": date.fromisoformat,
    "timestamptz": _held_moment,
    "uuid": uuid.UUID,
    "json": lambda text: _document(json.loads(text, parse_int=Literal, parse_float=Literal)),
}
