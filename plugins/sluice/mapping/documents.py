"""The JSON text of a json field comes in; its canonical form goes out, once it is sure that Postgres' jsonb takes it.

Canonical: keys sorted, no white space, numbers by their exact value (`1`, `1.0` and `1e0` are one), of a key that stands twice
the last one. Two texts are the same document to jsonb if, and only if, their canonical forms are the same bytes.
"""

import json
import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any, Final, NoReturn

import msgspec

from sluice.mapping.violation import ENCODING, MALFORMED, OUT_OF_RANGE, Violation, shown, shown_token

_WHOLE_DIGITS: Final = 131_072
_FRACTION_DIGITS: Final = 16_383
_DEPTH: Final = 256
_INTEGER_DIGITS: Final = 4_300
"""Up to here Python reads and writes an int as text."""
_FLOAT_DIGITS: Final = 15
"""Decimal numbers of so many digits are told apart by the floats nearest to them."""
_FLOAT_SMALLEST: Final = -300
_EXACT: Final = Context(prec=_WHOLE_DIGITS + _FRACTION_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ESCAPED_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def canonical_document(text: bytes) -> bytes:
    """Return the canonical form of a JSON text; raise `Violation` if it is none, or if jsonb could not hold it.

    For the sake of speed it does not look for NUL characters: see `refuse_nul`.
    """
    refuse_depth(text, _DEPTH)
    try:
        document = _DECODE(text)
    except msgspec.MsgspecError:
        document = _decode_with_care(text)
    return _ENCODE(document)


def refuse_depth(text: bytes, most: int) -> None:
    """Raise `Violation` if brackets of the JSON text nest deeper than so many levels."""
    if len(text) > 2 * most and text.count(b"[") + text.count(b"{") > most and _depth(text) > most:
        raise Violation(OUT_OF_RANGE, f"nested deeper than {most} levels")


def refuse_nul(text: bytes) -> None:
    """Raise `Violation` if a text within the JSON text has a NUL character."""
    if rb"\u0000" in text and _ESCAPED_NUL.search(text):
        raise Violation(ENCODING, "a NUL character in a text")


def strip(value: Decimal) -> Decimal:
    """Return the same number without trailing zeros."""
    return value.normalize(_EXACT)


def _number(text: str) -> float | Decimal:
    """Return the one Python value that stands for a number in canonical forms.

    An int if it is whole; a float as long as it tells all decimal numbers apart, since it is fast; else a `Decimal`.
    """
    if len(text) <= _FLOAT_DIGITS and "e" not in text and "E" not in text:
        nearest = float(text)
        return int(nearest) if text[-1] == "0" and nearest.is_integer() else nearest
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise Violation(OUT_OF_RANGE, f"{shown(text)} is beyond what jsonb can hold") from None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or value.adjusted() >= _WHOLE_DIGITS or -exponent > _FRACTION_DIGITS:
        raise Violation(OUT_OF_RANGE, f"{shown(text)} is beyond what jsonb can hold")
    value = strip(value)
    if value == value.to_integral_value():
        return int(value) if value.adjusted() < _INTEGER_DIGITS else value
    is_told_apart = len(value.as_tuple().digits) <= _FLOAT_DIGITS and value.adjusted() > _FLOAT_SMALLEST
    return float(value) if is_told_apart else value


def _decode_with_care(text: bytes) -> Any:
    """Decode what the fast decoder refuses: integers of thousands of digits; and find out what is wrong with the rest."""
    try:
        document = json.loads(text.decode(), parse_int=_integer, parse_float=_number, parse_constant=_not_json)
    except ValueError:
        raise Violation(MALFORMED, f"{shown_token(text)} is not JSON") from None
    try:
        _ENCODE(document)
    except UnicodeEncodeError:
        raise Violation(ENCODING, "a lone surrogate in a text") from None
    return document


def _integer(text: str) -> int | float | Decimal:
    return int(text) if len(text) < _INTEGER_DIGITS else _number(text)


def _not_json(constant: str) -> NoReturn:
    raise Violation(MALFORMED, f"{constant} is not JSON")


def _depth(text: bytes) -> int:
    depth = deepest = 0
    for sign in re.sub(rb'"[^"\\]*(?:\\.[^"\\]*)*"', b"", text, flags=re.DOTALL):
        if sign in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in b"]}":
            depth -= 1
    return deepest


_DECODE: Final = msgspec.json.Decoder(float_hook=_number).decode
_ENCODE: Final = msgspec.json.Encoder(decimal_format="number", order="sorted").encode
