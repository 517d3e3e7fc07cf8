"""From JSON text to Parquet: the exact value, or a named refusal; nothing in between."""

import json
import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluice.mapping.exact import exact_type
from tests.unit.mapping.workbench import both_ways, field_type, map_value

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BOUNDS = {"integer": 2**31, "bigint": 2**63}
KINDS = ["text", "integer", "bigint", "numeric", "numeric(10,2)", "numeric(60,20)", "double precision", "boolean", "date"]
KINDS += ["timestamptz", "uuid", "json"]
QUOTED = st.booleans()


def spell(number: str, is_quoted: bool) -> str:
    """A number as a JSON literal, or as the text of one."""
    return f'"{number}"' if is_quoted else number


@given(
    value=st.integers() | st.sampled_from([2**31, 2**53 + 1, 2**63, 10**30]).flatmap(lambda n: st.integers(n - 2, n + 2)),
    sign=st.sampled_from([1, -1]),
    form=st.sampled_from(["{}", "{}.0", "{}.000", "{}e0", "{}0e-1", "{}E+0"]),
    kind=st.sampled_from(list(BOUNDS)),
    is_quoted=QUOTED,
)
@settings(deadline=None)
def test_integers(value: int, sign: int, form: str, kind: str, is_quoted: bool) -> None:
    """A whole number in whatever spelling is itself, beyond 2^53 too; out of range it is refused, never wrapped or rounded."""
    value *= sign
    found = map_value(kind, spell(form.format(value), is_quoted))
    if -BOUNDS[kind] <= value < BOUNDS[kind]:
        assert found.as_py() == value
    else:
        assert found[0] == "out-of-range"


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False) | st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=3
)


@given(value=DECIMALS, is_quoted=QUOTED, shape=st.sampled_from([(10, 2), (38, 0), (38, 38), (60, 20), (1, 1)]))
@example(value=Decimal("-0"), is_quoted=False, shape=(10, 2))
@example(value=Decimal("99999999.990"), is_quoted=False, shape=(10, 2))
@example(value=Decimal("99999999.995"), is_quoted=False, shape=(10, 2))
@example(value=Decimal("1e999999"), is_quoted=False, shape=(38, 0))
@settings(deadline=None)
def test_bounded_numerics(value: Decimal, is_quoted: bool, shape: tuple[int, int]) -> None:
    """A decimal number that fits is exact, at the declared scale; one digit too many on either side is refused."""
    precision, scale = shape
    found = map_value(f"numeric({precision},{scale})", spell(str(value), is_quoted))
    unscaled = Fraction(value) * 10**scale if abs(value.adjusted()) < 10_000 else None
    if unscaled is not None and unscaled.denominator == 1 and abs(unscaled) < 10**precision:
        exact = Decimal(found.as_py())
        assert Fraction(exact) == Fraction(value)
        assert exact.as_tuple().exponent == -scale
        assert not exact.is_signed() or exact
    else:
        assert found[0] in ("precision", "out-of-range")


@given(value=DECIMALS, is_quoted=QUOTED)
@example(value=Decimal("1.50"), is_quoted=False)
@example(value=Decimal("1e2"), is_quoted=False)
@example(value=Decimal("-0.0"), is_quoted=False)
@settings(deadline=None)
def test_unbounded_numerics(value: Decimal, is_quoted: bool) -> None:
    """A numeric without precision keeps all its digits, in plain notation."""
    found = map_value("numeric", spell(str(value), is_quoted))
    if abs(value.adjusted()) > 900:
        return
    assert set(found.as_py()) <= set("-0123456789.")
    assert Fraction(found.as_py()) == Fraction(value)


@pytest.mark.parametrize(
    ("token", "plain"), [("1.50", "1.50"), ("1e2", "100"), ("-0", "0"), ("25e-3", "0.025"), ("0.00", "0.00")]
)
def test_unbounded_numerics_keep_their_scale(token: str, plain: str) -> None:
    """What is stored has the digits that were sent."""
    assert map_value("numeric", token).as_py() == plain


def test_numerics_that_would_flood_memory() -> None:
    """Some bytes of text that stand for a number of a thousand digits and more are refused, not written out."""
    for token in ("1e1001", "1e-1001", "1e99999999999999999999", "-1e131071", "0e99999999999999999999"):
        assert map_value("numeric", token)[0] == "out-of-range"
    assert len(map_value("numeric", "1e1000").as_py()) == 1001


@given(
    value=st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.decimals(allow_nan=False, allow_infinity=False)
)
@example(value=-0.0)
@example(value=5e-324)
@example(value=1.7976931348623157e308)
@settings(deadline=None)
def test_doubles(value: float | Decimal) -> None:
    """A double is the nearest to what is written, to the bit, signed zero too; what overflows is refused."""
    for token in (str(value), f'"{value}"'):
        nearest = float(str(value))
        found = map_value("double precision", token)
        if math.isinf(nearest):
            assert found[0] == "out-of-range"
        else:
            assert struct.pack("d", found.as_py()) == struct.pack("d", nearest)


@given(text=st.text(st.characters(codec=None)), is_ascii=st.booleans())
@example(text="", is_ascii=True)
@example(text="\0", is_ascii=True)
@example(text="a\ud83d", is_ascii=True)
@example(text="\udc00\ud800", is_ascii=True)
@example(text="👩‍👩‍👧 שלום \\u0000 \u202e \u2028", is_ascii=False)
@settings(deadline=None)
def test_texts(text: str, is_ascii: bool) -> None:
    """Text is kept to the last code point; NUL and lone surrogates, which Postgres cannot hold, are refused."""
    is_lone = any("\ud800" <= letter <= "\udfff" for letter in json.loads(json.dumps(text)))
    found = map_value("text", json.dumps(text, ensure_ascii=is_ascii or is_lone))
    if is_lone or "\0" in text:
        assert found[0] == "encoding"
    else:
        assert found.as_py() == json.loads(json.dumps(text))


@pytest.mark.parametrize("literal", ["0", "42", "-0", "1.0", "1e2", "1.50", "123456789012345678901234567890", "true", "false"])
def test_texts_from_literals(literal: str) -> None:
    """A number or boolean where text is declared becomes its literal text: an id is the same however it was sent."""
    assert map_value("text", literal).as_py() == literal


@pytest.mark.parametrize(
    ("token", "value"), [("true", True), ("false", False), ('"true"', True), ('"false"', False), ("null", None)]
)
def test_booleans(token: str, value: bool | None) -> None:
    """A boolean is a boolean, or its exact text."""
    assert map_value("boolean", token).as_py() is value


@given(value=st.dates())
@example(value=date(1, 1, 1))
@example(value=date(9999, 12, 31))
@settings(deadline=None)
def test_dates(value: date) -> None:
    """A date is the day it names."""
    assert map_value("date", f'"{value.isoformat()}"').as_py() == value


@given(
    value=st.datetimes(),
    minutes=st.integers(-23 * 60 - 59, 23 * 60 + 59),
    style=st.sampled_from(["{date}T{time}{offset}", "{date} {time}{offset}", "{date}t{time}000{offset}"]),
)
@example(value=datetime(1, 1, 1), minutes=1, style="{date}T{time}{offset}")  # noqa: DTZ001 - the offset is added below
@example(value=datetime(9999, 12, 31, 23, 59, 59, 999999), minutes=-1, style="{date}T{time}{offset}")  # noqa: DTZ001
@example(value=datetime(1, 1, 1), minutes=0, style="{date}T{time}{offset}")  # noqa: DTZ001
@settings(deadline=None)
def test_timestamps(value: datetime, minutes: int, style: str) -> None:
    """An instant is the same to the microsecond whatever its offset; outside the years 1 to 9999 in UTC it is refused."""
    sign = "-" if minutes < 0 else "+"
    offset = "Z" if not minutes else f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    day, time = value.isoformat(timespec="microseconds").split("T")
    found = map_value("timestamptz", f'"{style.format(date=day, time=time, offset=offset)}"')
    elapsed = value.replace(tzinfo=timezone(timedelta(minutes=minutes))) - EPOCH
    if datetime.min.replace(tzinfo=UTC) - EPOCH <= elapsed <= datetime.max.replace(tzinfo=UTC) - EPOCH:
        assert found.value == elapsed // timedelta(microseconds=1)
    else:
        assert found[0] == "out-of-range"


def test_escapes_in_texts_of_numbers() -> None:
    """How the letters of a text are written makes no difference."""
    assert map_value("numeric(10,2)", r'"\u0031.5"').as_py() == Decimal("1.50")
    assert map_value("bigint", r'"\u0031"').as_py() == 1


def test_uuids() -> None:
    """A uuid is stored in lower case."""
    assert map_value("uuid", '"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"').as_py() == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"


REFUSALS: dict[str, dict[str, list[str | bytes]]] = {
    "integer": {
        "type": ['""', '"042"', '" 42"', '"+42"', '"4_2"', '"٤٢"', "1.5", "1e-1", "true", "[]", "{}"],
        "out-of-range": ["2147483648", "1e99999999999999999999", "9" * 5000],
        "malformed": ["007", "NaN"],
    },
    "bigint": {"out-of-range": ["9223372036854775808", "-9223372036854775809", "1e400"]},
    "numeric(10,2)": {
        "type": ['""', '"NaN"', '"Infinity"', '"1_0"', '"٤٢"', '"x"', "true", "{}"],
        "precision": ["1.001"],
        "out-of-range": ["123456789", "1e99999999999999999999", "9" * 5000],
        "malformed": ["NaN", "-Infinity"],
    },
    "double precision": {
        "type": ['""', '"NaN"', '"inf"', '"1_0"', '"0x1"'],
        "out-of-range": ["1e400", "9" * 400],
        "malformed": ["NaN", "Infinity"],
    },
    "boolean": {"type": ["1", "0", '"TRUE"', '""', '"yes"'], "malformed": ["tru"]},
    "date": {
        "type": ['""', '"2024-1-1"', '"20240101"', '"2024-01-01T00:00:00Z"', '"10000-01-01"', "20240101"],
        "out-of-range": ['"2024-02-30"', '"0000-01-01"'],
    },
    "timestamptz": {
        "type": [
            '"2024-01-01T10:00:٤٢Z"',
            '""',
            '"2024-01-01T00:00:00"',
            '"2024-01-01"',
            '"2024-W01-1T00:00:00Z"',
            '"20240101T000000Z"',
            '"2024-01-01T00:00:00,5Z"',
            "1700000000",
        ],
        "precision": ['"2024-01-01T00:00:00.1234567Z"'],
        "out-of-range": [
            '"2024-01-01T24:00:00Z"',
            '"2024-06-30T23:59:60Z"',
            '"2024-01-01T00:00:00+24:00"',
            '"0001-01-01T00:00:00+00:01"',
        ],
    },
    "uuid": {"type": ['""', '"x"', '"a0eebc999c0b4ef8bb6d6bb9bd380a11"', "1"]},
    "text": {
        "type": ["[]", "{}"],
        "malformed": ["NaN", rb'"\x"', b'"\x01"'],
        "encoding": [b'"\xff"', b'"\xed\xa0\x80"'],
    },
}


@pytest.mark.parametrize(
    ("kind", "error", "token"),
    [(kind, error, token) for kind, cases in REFUSALS.items() for error, tokens in cases.items() for token in tokens],
)
def test_refusals(kind: str, error: str, token: str | bytes) -> None:
    """What a type cannot hold is refused by the rule it breaks, with the value in the message."""
    found = map_value(kind, token)
    assert found[0] == error
    assert found[1].isascii() or "±" in found[1] or "…" in found[1]
    assert found[1].isprintable()
    assert len(found[1]) < 300


def test_messages_say_what_to_do() -> None:
    """The commonest mistakes are told in full."""
    assert map_value("timestamptz", '"2024-01-01T00:00:00"') == (
        "type",
        '"2024-01-01T00:00:00" has no offset from UTC: a timestamp needs Z or ±hh:mm',
    )
    assert map_value("numeric(10,2)", "12.345") == ("precision", '"12.345" has more than 2 fractional digits')
    assert map_value("bigint", '""') == ("type", "an empty string is no bigint")
    assert map_value("text", "[1]") == ("type", "[1] is an object or array, not text")


@pytest.mark.parametrize("kind", KINDS)
def test_null_and_absent(kind: str) -> None:
    """Null is null for every type; only text tells it from the empty string."""
    assert map_value(kind, "null").as_py() is None
    if kind == "text":
        assert map_value(kind, '""').as_py() == ""


TOKENS = {
    "text": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).map(json.dumps),
    "integer": st.integers(-(2**31), 2**31 - 1).map(str),
    "bigint": st.integers(-(2**63), 2**63 - 1).map(str),
    "numeric": DECIMALS.filter(lambda value: abs(value.adjusted()) < 900).map(str),
    "numeric(10,2)": st.decimals(min_value=-(10**7), max_value=10**7, places=2).map(str),
    "double precision": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "boolean": st.booleans().map(json.dumps),
    "date": st.dates().map(lambda value: f'"{value}"'),
    "timestamptz": st.datetimes(timezones=st.just(UTC)).map(lambda value: f'"{value.isoformat()}"'),
    "uuid": st.uuids().map(lambda value: f'"{value}"'),
    "json": st.recursive(st.floats(allow_nan=False, allow_infinity=False) | st.text("a\\u0é"), st.lists).map(json.dumps),
}


@given(case=st.sampled_from(sorted(TOKENS)).flatmap(lambda kind: st.tuples(st.just(kind), TOKENS[kind])))
@settings(deadline=None)
def test_both_ways_agree(case: tuple[str, str]) -> None:
    """Values in the declared form take the fast way, and the careful way reads them as the same values."""
    fast, careful = both_ways(*case)
    assert fast == careful
    assert type(fast) is type(careful)


@given(case=st.sampled_from(sorted(set(TOKENS) - {"json"})).flatmap(lambda kind: st.tuples(st.just(kind), TOKENS[kind])))
@settings(deadline=None)
def test_canonical_text_reads_back(case: tuple[str, Any]) -> None:
    """The canonical text of a value, as in keys and watermarks, is text of the same value, and of itself."""
    kind, token = case
    exact = exact_type(field_type(kind))
    value, _ = both_ways(kind, token)
    text = exact.to_text(value)
    again, _ = both_ways(kind, json.dumps(text) if kind in ("text", "date", "timestamptz", "uuid") else text)
    assert again == value
    assert exact.to_text(again) == text
