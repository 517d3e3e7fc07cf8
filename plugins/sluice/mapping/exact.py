"""A declared type comes in; out comes how JSON text becomes exactly a value of it, or a `Violation` that says why not.

A value travels in the form in which Arrow takes it: whole numbers for integers, dates (days since 1970) and instants
(microseconds since 1970), `Decimal`, `float`, `bool`, else text. Where the form that is stored and the form that tells
whether two values are equal differ (`1.50` and `1.5`, the spelling of a JSON document), it travels as the pair of both.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact, InvalidOperation
from math import isinf
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn
from zoneinfo import ZoneInfo

from msgspec import Meta, Raw

from sluice.mapping import arrays
from sluice.mapping.documents import canonical_document, refuse_nul, strip
from sluice.mapping.instants import (
    DAY,
    EPOCH_DAY,
    FIRST_INSTANT,
    LAST_INSTANT,
    date_of,
    date_text,
    instant_of,
    instant_text,
    value_since_1970,
)
from sluice.mapping.violation import ENCODING, OUT_OF_RANGE, PRECISION, TYPE, Violation, shown
from sluice.mapping.written_times import date_reader, moment_reader
from sluice.model.fields import FieldSpec, FieldType, TypeName

if TYPE_CHECKING:
    import pyarrow as pa

STRING: Final = "a string"
NUMBER: Final = "a number"
BOOLEAN: Final = "a boolean"
CONTAINER: Final = "an object or array"

_DECIMAL128_DIGITS: Final = 38
_PLAIN_DIGITS: Final = 1_000
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_EPOCH_WHOLE_DIGITS: Final = 18
"""No number since 1970 that ends within the year 9999 has more."""


@dataclass(frozen=True)
class ExactType:
    """How values of one declared type are read, stored, and told apart."""

    name: str
    accepts: frozenset[str]
    """The kinds of JSON values whose text it reads."""
    from_text: Callable[[str], Any]
    """Reads the exact text form, as it stands in a JSON string or literal."""
    to_text: Callable[[Any], str]
    """Writes the canonical text form: the same text for equal values. Takes what `told_apart` returns."""
    in_arrow: Callable[[Any], "pa.DataType"]
    """Returns its type in Arrow out of `pyarrow`, which a DAG file that is parsed has no need of."""
    wire: Any
    """What the fast decoder reads it as; what that refuses is read again from its text."""
    narrow: Callable[[Any], Any] | None = None
    """Turns what the fast decoder read into the value; None: it is the value already. No text holds a NUL then."""
    taken: type | None = None
    """What `narrow` would leave as it is."""
    is_paired: bool = False
    """Whether values may travel as the pair of what is stored and what tells them apart."""
    to_version: Callable[[int], int] | None = None
    """Turns a value into the 64-bit integer that orders versions; None: values of this type do not order."""
    item: "ExactType | None" = None
    """What it is an array of; None: it is no array. The text form of an array is that of Postgres, not of JSON."""

    @property
    def arrow(self) -> "pa.DataType":
        """Its type in Arrow."""
        import pyarrow as pa

        return self.in_arrow(pa)


def told_apart(value: Any) -> Any:
    """Return the form of a value that is the same for equal values."""
    return value[1] if type(value) is tuple else value


def is_number(text: str) -> bool:
    """Return whether a text is a number as JSON writes it."""
    return _NUMBER(text) is not None


def exact_type(field_type: FieldType) -> ExactType:
    """Return how values of a declared type are read, as JSON usually has them and as Postgres spells them."""
    if field_type.item is not None:
        return _array(field_type.sql, exact_type(field_type.item))
    if field_type.name is not TypeName.NUMERIC:
        return _TYPES[field_type.name]
    if field_type.precision is None:
        return _numeric("numeric", _unbounded_numeric, _string, is_paired=True)
    precision, scale = field_type.precision, field_type.scale or 0
    if precision <= _DECIMAL128_DIGITS:
        return _decimal128(field_type.sql, precision, scale)
    return _numeric(field_type.sql, _wide_numeric(field_type.sql, precision, scale), _string)


def exact_field(field: FieldSpec) -> ExactType:
    """Return how the values of a declared field are read in a supplier's records."""
    kind = exact_type(field.type)
    if field.format is None:
        return kind if field.zone is None else _zoned(kind, ZoneInfo(field.zone))
    return _patterned(kind, field.format, field.zone) if field.is_patterned else _EPOCHS[field.format]


def epoch_text(value: int, written: str) -> str:
    """Return an instant as the number that a supplier writes for it, in the format of that name."""
    return f"{strip(Decimal(value).scaleb(-_EPOCH_DIGITS[written])):f}"


def _decimal(text: str, name: str) -> Decimal:
    if not _NUMBER(text):
        raise Violation(TYPE, f"{shown(text)} is no {name}")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise Violation(OUT_OF_RANGE, f"{shown(text)} is beyond the range of {name}") from None


def _integer(name: str, bits: int) -> Callable[[str], int]:
    highest = 2 ** (bits - 1) - 1

    def read(text: str) -> int:
        value = _decimal(text, name)
        if not value:
            return 0
        if value.adjusted() < bits and value != value.to_integral_value():
            raise Violation(TYPE, f"{shown(text)} is not a whole number")
        if value.adjusted() >= bits or not -highest - 1 <= value <= highest:
            raise Violation(OUT_OF_RANGE, f"{shown(text)} is beyond the range of {name}")
        return int(value)

    return read


def _decimal128(name: str, precision: int, scale: int) -> ExactType:
    from_text = _bounded_numeric(name, precision, scale)
    step, context = _step_and_context(precision, scale)

    def narrow(number: Any) -> Any:
        if type(number) is int:
            number = Decimal(number)
        elif type(number) is not Decimal:
            return from_text(number) if type(number) is str else _no_number(name)
        try:
            value = number.quantize(step, None, context)
        except (Inexact, InvalidOperation):
            raise Violation(OUT_OF_RANGE, "its token tells what is wrong") from None
        return value or value.copy_abs()

    return ExactType(name, _NUMBERS, from_text, str, lambda pa: pa.decimal128(precision, scale), Any, narrow)


def _no_number(name: str) -> NoReturn:
    raise Violation(TYPE, f"is no {name}")


def _step_and_context(precision: int, scale: int) -> tuple[Decimal, Context]:
    """Return what to quantize with, so that nothing is rounded and nothing that is too large is taken."""
    return Decimal(1).scaleb(-scale), Context(prec=precision, traps=[Inexact, InvalidOperation])


def _bounded_numeric(name: str, precision: int, scale: int) -> Callable[[str], Decimal]:
    step, context = _step_and_context(precision, scale)

    def read(text: str) -> Decimal:
        try:
            value = _decimal(text, name).quantize(step, context=context)
        except Inexact:
            raise Violation(PRECISION, f"{shown(text)} has more than {scale} fractional digits") from None
        except InvalidOperation:
            raise Violation(OUT_OF_RANGE, f"{shown(text)} is beyond the range of {name}") from None
        return value or value.copy_abs()

    return read


def _wide_numeric(name: str, precision: int, scale: int) -> Callable[[str], str]:
    bounded = _bounded_numeric(name, precision, scale)
    return lambda text: f"{bounded(text):f}"


def _unbounded_numeric(text: str) -> tuple[str, str]:
    value = _decimal(text, "numeric")
    digits = value.as_tuple()
    if not isinstance(digits.exponent, int) or max(value.adjusted(), -digits.exponent) > _PLAIN_DIGITS:
        raise Violation(OUT_OF_RANGE, f"{shown(text)} has more than {_PLAIN_DIGITS} digits before or behind the point")
    value = value or value.copy_abs()
    return f"{value:f}", f"{strip(value):f}"


def _numeric(
    name: str, from_text: Callable[[str], Any], in_arrow: Callable[[Any], "pa.DataType"], is_paired: bool = False
) -> ExactType:
    def narrow(token: Raw) -> Any:
        text = str(token, "utf-8", "replace")
        if text == "null":
            return None
        return from_text(text[1:-1] if text[0] == '"' else text)

    return ExactType(name, frozenset({STRING, NUMBER}), from_text, str, in_arrow, Raw, narrow, is_paired=is_paired)


def _array(name: str, item: ExactType) -> ExactType:
    return ExactType(
        name,
        frozenset(),
        arrays.reading(_letter if item.name == TypeName.BOOLEAN else item.from_text),
        arrays.writing(item.to_text),
        lambda pa: pa.list_(item.in_arrow(pa)),
        list[item.wire if item.wire is Raw else item.wire | None],  # type: ignore[misc]  # it is for msgspec, at run time
        arrays.narrowing(item.narrow),
        is_paired=item.is_paired,
        item=item,
    )


def _double(text: str) -> Any:
    if not _NUMBER(text):
        raise Violation(TYPE, f"{shown(text)} is no double precision")
    value = float(text)
    if isinf(value):
        raise Violation(OUT_OF_RANGE, f"{shown(text)} is beyond the range of double precision")
    if not value and text.lower().partition("e")[0].strip("-0."):
        raise Violation(OUT_OF_RANGE, f"{shown(text)} is too small for double precision")
    return _one_zero(value)


def _one_zero(value: float) -> Any:
    return value or (value, 0.0)


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise Violation(TYPE, f"{shown(text)} is neither true nor false")
    return text == "true"


def _letter(text: str) -> bool:
    """Read a boolean in an array of them, where Postgres has a letter for each."""
    return _boolean({"t": "true", "f": "false"}.get(text, text))


def _zoned(kind: ExactType, zone: ZoneInfo) -> ExactType:
    """Return how instants are read whose offset may be left out: then they are of a zone."""

    def read(text: str) -> int:
        return instant_of(text, zone)

    return replace(kind, from_text=read, narrow=read)


def _patterned(kind: ExactType, pattern: str, zone: str | None) -> ExactType:
    """Return how dates or instants are read that are written by a pattern, be it as a number (20240131)."""
    if kind.name == TypeName.DATE:
        day = date_reader(pattern)
        return _rewritten(kind, lambda text: day(text).toordinal() - EPOCH_DAY)
    elapsed = moment_reader(pattern, zone)
    return _rewritten(kind, lambda text: value_since_1970(elapsed(text), text))


def _rewritten(kind: ExactType, read: Callable[[str], int]) -> ExactType:
    return replace(kind, accepts=_NUMBERS, from_text=read, wire=str | int, narrow=lambda value: read(str(value)))


def _epoch(places: int) -> Callable[[str], int]:
    """Return what reads numbers that count from 1970, of which so many places make microseconds."""
    context = Context(prec=_PLAIN_DIGITS, traps=[Inexact, InvalidOperation])

    def read(text: str) -> int:
        number = _decimal(text, "timestamp (a number since 1970)")
        if number and number.adjusted() > _EPOCH_WHOLE_DIGITS:
            raise Violation(OUT_OF_RANGE, f"{shown(text)} is outside the years 0001 to 9999 in UTC")
        try:
            value = number.scaleb(places, context) if number else Decimal(0)
        except (Inexact, InvalidOperation):
            raise Violation(PRECISION, f"{shown(text)} is finer than a microsecond") from None
        if value.adjusted() < -1 or value != value.to_integral_value():
            raise Violation(PRECISION, f"{shown(text)} is finer than a microsecond")
        if not FIRST_INSTANT <= value <= LAST_INSTANT:
            raise Violation(OUT_OF_RANGE, f"{shown(text)} is outside the years 0001 to 9999 in UTC")
        return int(value)

    return read


def _uuid(text: str) -> str:
    if not _UUID(text):
        raise Violation(TYPE, f"{shown(text)} is no uuid")
    return text.lower()


def _text(text: str) -> str:
    if "\0" in text:
        raise Violation(ENCODING, f"{shown(text)} has a NUL character")
    return text


def _literal_text(value: str | int) -> str:
    if type(value) is str:
        return value
    if not value:
        raise Violation(TYPE, "0 or -0: only its token tells")
    return str(value)


def _document(token: Raw) -> tuple[bytes, bytes] | None:
    text = bytes(token)
    return None if text == b"null" else (text, canonical_document(text))


def _document_text(text: str) -> tuple[bytes, bytes]:
    token = text.encode()
    refuse_nul(token)
    return token, canonical_document(token)


def _string(pa: Any) -> "pa.DataType":
    return pa.string()


def _timestamp(pa: Any) -> "pa.DataType":
    return pa.timestamp("us", "UTC")


_WORDS: Final = frozenset({STRING})
_NUMBERS: Final = frozenset({STRING, NUMBER})
_INT32: Final = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_INT64: Final = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

_TYPES: Final = {
    kind.name: kind
    for kind in (
        ExactType(TypeName.TEXT, frozenset({STRING, NUMBER, BOOLEAN}), _text, str, _string, str | int, _literal_text, str),
        ExactType(TypeName.INTEGER, _NUMBERS, _integer("integer", 32), str, lambda pa: pa.int32(), _INT32, to_version=int),
        ExactType(TypeName.BIGINT, _NUMBERS, _integer("bigint", 64), str, lambda pa: pa.int64(), _INT64, to_version=int),
        ExactType(TypeName.DOUBLE, _NUMBERS, _double, repr, lambda pa: pa.float64(), float, _one_zero, is_paired=True),
        ExactType(
            TypeName.BOOLEAN,
            frozenset({STRING, BOOLEAN}),
            _boolean,
            lambda value: "true" if value else "false",
            lambda pa: pa.bool_(),
            bool,
        ),
        ExactType(
            TypeName.DATE, _WORDS, date_of, date_text, lambda pa: pa.date32(), str, date_of, to_version=lambda days: days * DAY
        ),
        ExactType(TypeName.TIMESTAMPTZ, _WORDS, instant_of, instant_text, _timestamp, str, instant_of, to_version=int),
        ExactType(TypeName.UUID, _WORDS, _uuid, str, _string, str, _uuid),
        ExactType(
            TypeName.JSON,
            frozenset({STRING, NUMBER, BOOLEAN, CONTAINER}),
            _document_text,
            bytes.decode,
            _string,
            Raw,
            _document,
            is_paired=True,
        ),
    )
}

_EPOCH_DIGITS: Final = {"epoch_s": 6, "epoch_ms": 3}
"""By format, how many places make microseconds of its numbers."""
_EPOCHS: Final = {
    name: replace(_numeric(TypeName.TIMESTAMPTZ, _epoch(places), _timestamp), to_text=instant_text, to_version=int)
    for name, places in _EPOCH_DIGITS.items()
}
