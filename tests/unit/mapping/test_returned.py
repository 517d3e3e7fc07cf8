"""What a function returns for a field is exactly a value of its type, or named as none."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from tests.unit.mapping.functions import returned, spec_with, through, values_after
from tests.unit.mapping.workbench import watermarked

CODE = UUID("123e4567-e89b-12d3-a456-426614174000")


def put(value: Any, dtype: Any = object) -> Callable[[Any], Any]:
    """A function's way to put one value into a column of a type."""
    return lambda column: pd.Series([value], index=column.index, dtype=dtype)


@pytest.mark.parametrize(
    ("kind", "value", "dtype", "expected"),
    [
        ("integer", 3.0, "float64", 3),
        ("integer", np.int16(3), object, 3),
        ("integer", Decimal("3.0"), object, 3),
        ("integer", "3", "category", 3),
        ("bigint", 2**63 - 1, object, 2**63 - 1),
        ("bigint", 2**53 + 1, "Int64", 2**53 + 1),
        ("bigint", 2**53 - 1, "float64", 2**53 - 1),
        ("numeric", Decimal("1E+3"), object, "1000"),
        ("numeric", 2**70, object, str(2**70)),
        ("numeric", 7.0, "float64", "7"),
        ("numeric(10,2)", Decimal("1.5"), object, Decimal("1.50")),
        ("numeric(60,2)", Decimal("1.5"), object, "1.50"),
        ("double precision", np.float32(0.5), object, 0.5),
        ("double precision", 3, object, 3.0),
        ("double precision", -0.0, "float64", -0.0),
        ("boolean", np.True_, object, True),
        ("text", "ä 😀 \u200f\u05d0", "str", "ä 😀 \u200f\u05d0"),
        ("text", "", object, ""),
        ("date", date(1, 1, 1), object, date(1, 1, 1)),
        ("date", pd.Timestamp("2024-02-29"), "datetime64[us]", date(2024, 2, 29)),
        ("date", "2024-02-29", object, date(2024, 2, 29)),
        ("timestamptz", pd.Timestamp("2024-01-01T02:00+02:00"), object, datetime(2024, 1, 1, tzinfo=UTC)),
        ("timestamptz", pd.Timestamp("2024-01-01", tz="UTC"), "datetime64[ns, UTC]", datetime(2024, 1, 1, tzinfo=UTC)),
        ("uuid", CODE, object, str(CODE)),
        ("uuid", str(CODE).upper(), object, str(CODE)),
        ("json", '{"a": 1.0}', object, '{"a": 1.0}'),
        ("json", {"a": [Decimal("1.10"), None, True]}, object, '{"a":[1.10,null,true]}'),
        ("integer[]", [1, np.int64(2)], object, [1, 2]),
        ("integer[]", np.array([1, 2]), object, [1, 2]),
        ("text[]", ("a", ""), object, ["a", ""]),
        ("bigint", None, object, None),
        ("bigint", pd.NA, "Int64", None),
        ("json", None, object, None),
    ],
)
def test_values_of_a_type_are_taken_as_they_are(kind: str, value: Any, dtype: Any, expected: Any) -> None:
    """From whatever column, as Python's, numpy's or pandas' own; where null stood before as where a value did."""
    found = returned(kind, "null", put(value, dtype))
    assert (found, type(found)) == (expected, type(expected))
    assert str(found) == str(expected)


@pytest.mark.parametrize(
    ("kind", "value", "error", "message"),
    [
        ("integer", 2**31, "out-of-range", '"2147483648" is beyond the range of integer'),
        ("integer", 3.5, "type", '"3.5" is not a whole number'),
        ("integer", True, "type", 'bool "True" is no integer'),
        ("integer", b"3", "type", "bytes \"b'3'\" is no integer"),
        ("integer", "", "type", "an empty string is no integer"),
        ("bigint", 2.0**53, "precision", "9007199254740992.0 is a float, which does not tell whole numbers apart from 2^53 on"),
        ("bigint", 1e300, "precision", "1e+300 is a float, which does not tell whole numbers apart from 2^53 on"),
        ("bigint", 10**4_250, "out-of-range", "a whole number of thousands of digits"),
        ("bigint", np.inf, "out-of-range", "inf is no number that can be stored"),
        ("numeric(10,2)", 0.1, "precision", "0.1 is a float, which is only near to a decimal number: compute with Decimal"),
        ("numeric(10,2)", Decimal("0.125"), "precision", '"0.125" has more than 2 fractional digits'),
        ("numeric(10,2)", Decimal("Infinity"), "out-of-range", "Infinity is no number that can be stored"),
        ("numeric", Decimal("1E+99999"), "out-of-range", '"1E+99999" has more than 1000 digits before or behind the point'),
        ("double precision", 2**53 + 1, "precision", "9007199254740993 is no double precision number: it would be rounded"),
        ("double precision", -np.inf, "type", '"-inf" is no double precision'),
        ("boolean", 1, "type", 'int "1" is no boolean'),
        ("boolean", 1.0, "type", 'float "1.0" is no boolean'),
        ("text", 5, "type", 'int "5" is no text'),
        ("text", 5.0, "type", 'float "5.0" is no text'),
        ("text", "a\0b", "encoding", '"a\\u0000b" has a NUL character'),
        ("text", "a\ud800", "encoding", '"a\\ud800" has a lone surrogate'),
        ("text", ["a"], "type", "list \"['a']\" is no text"),
        ("date", datetime(2024, 1, 1, 12), "precision", '"2024-01-01 12:00:00" is a moment, and no day'),  # noqa: DTZ001
        ("date", datetime(2024, 1, 1, tzinfo=UTC), "precision", '"2024-01-01 00:00:00+00:00" is a moment, and no day'),
        (
            "timestamptz",
            pd.Timestamp("2024-01-01"),
            "type",
            '"2024-01-01T00:00:00" has no offset from UTC: a timestamp needs a time zone',
        ),
        (
            "timestamptz",
            pd.Timestamp("2024-01-01T00:00:00.000000001Z"),
            "precision",
            '"2024-01-01 00:00:00.000000001+00:00" is finer than a microsecond (1 ns)',
        ),
        (
            "timestamptz",
            datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            "out-of-range",
            '"0001-01-01T00:00:00+01:00" is outside the years 0001 to 9999 in UTC',
        ),
        ("timestamptz", date(2024, 1, 1), "type", 'date "2024-01-01" is no timestamptz'),
        ("timestamptz", 1_700_000_000, "type", 'int "1700000000" is no timestamptz'),
        ("timestamptz", pd.Timedelta("1s"), "type", 'Timedelta "0 days 00:00:01" is no timestamptz'),
        ("uuid", 7, "type", 'int "7" is no uuid'),
        ("json", float("nan"), "out-of-range", "nan is no json, and not null: null is None or pandas.NA"),
        ("json", {"a": float("nan")}, "out-of-range", "nan is no value of JSON's, and not null: null is None"),
        ("json", {"a": pd.NaT}, "out-of-range", "NaT is no value of JSON's, and not null: null is None"),
        ("json", {"a": {1, 2}}, "type", 'set "{1, 2}" is no value of JSON\'s'),
        ("json", {1: "a"}, "type", 'int "1" is no key of a JSON object'),
        ("json", {"a": b"x"}, "type", "bytes \"b'x'\" is no value of JSON's"),
        ("json", "{", "malformed", "{ is not JSON"),
        ("json", {"a": "\0"}, "encoding", "a NUL character in a text"),
        ("integer[]", [1, 2.5], "type", 'item 1: "2.5" is not a whole number'),
        ("integer[]", [1, float("nan")], "out-of-range", "item 1: nan is no integer, and not null: null is None or pandas.NA"),
        ("integer[]", "1", "type", 'str "1" is no integer[]'),
        ("integer[]", [[1]], "type", 'item 0: list "[1]" is no integer'),
    ],
)
def test_what_is_no_value_of_a_type_is_told(kind: str, value: Any, error: str, message: str) -> None:
    """Nothing is rounded, cut, guessed or left out."""
    assert returned(kind, TOKENS[kind.partition("(")[0]], put(value)) == (error, message)


@pytest.mark.parametrize(
    ("kind", "missing", "dtype"),
    [
        ("integer", float("nan"), "float64"),
        ("double precision", float("nan"), "float64"),
        ("numeric(10,2)", Decimal("NaN"), object),
        ("text", float("nan"), "str"),
        ("timestamptz", pd.NaT, "datetime64[us, UTC]"),
        ("date", pd.NaT, "datetime64[us]"),
    ],
)
def test_nan_is_null_only_where_null_was(kind: str, missing: Any, dtype: Any) -> None:
    """There pandas has put it; where a value was, something came to nothing."""
    assert returned(kind, "null", put(missing, dtype)) is None
    error, message = returned(kind, TOKENS[kind.partition("(")[0]], put(missing, dtype))
    assert error == "out-of-range"
    assert f"is no {kind}, and not null: null is None or pandas.NA" in message


def test_a_sum_without_a_result_is_not_null() -> None:
    """0/0 on Arrow's types, which pandas would take for null."""
    error, message = returned("double precision", "0.0", lambda column: column / column)
    assert (error, message) == ("out-of-range", "nan is no double precision, and not null: null is None or pandas.NA")


def test_every_field_that_is_wrong_is_told() -> None:
    """The reject names the first, and its message all."""
    spec = spec_with({"id": "text", "a": "integer", "b": "integer"})
    chunk = through(spec, lambda frame: frame.assign(a=0.5, b="x"), '{"id": "1", "a": 1, "b": 2}')
    (reject,) = chunk.rejects
    assert (reject.field, reject.message) == ("a", 'a: "0.5" is not a whole number; b: "x" is no integer')


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"id": "2"}, "id"), ({"id": None}, "id"), ({"seen": None}, "seen"), ({"gone": True}, "gone"), ({"mark": 5}, "mark")],
)
def test_what_an_object_is_may_not_be_changed(changes: dict[str, Any], field: str) -> None:
    """Key, version, deletion and watermark are as the record says."""
    spec = spec_with(
        {"id": "text", "seen": "bigint", "gone": "boolean", "mark": "bigint"},
        object={"key": ["id"], "version": "seen", "deleted": "gone"},
    )
    spec = watermarked(spec, "mark")
    record = '{"id": "1", "seen": 1, "gone": false, "mark": 3}'
    chunk = through(
        spec, lambda frame: frame.assign(**{name: put(value)(frame["id"]) for name, value in changes.items()}), record
    )
    (reject,) = chunk.rejects
    assert (reject.key, reject.error, reject.field, chunk.objects) == ("1", "identity", field, 0)
    assert reject.message.startswith(f"{field}: the function may not change it: ")


def test_rules_judge_what_comes_out() -> None:
    """A required field may be filled by the function, and a value mended; what it breaks is rejected."""
    spec = spec_with(
        {
            "id": "text",
            "score": {"type": "integer", "required": True},
            "stars": {"type": "integer", "maximum": 5},
        }
    )

    def function(frame: Any) -> Any:
        frame["score"] = frame["stars"].where(frame["id"] != "2")
        frame["stars"] = frame["stars"] - 1
        return frame

    chunk = through(spec, function, *(f'{{"id": "{number}", "stars": {number + 5}}}' for number in range(3)))
    assert values_after(spec, chunk) == [{"id": "0", "score": 5, "stars": 4}, {"id": "1", "score": 6, "stars": 5}]
    (reject,) = chunk.rejects
    assert (reject.key, reject.error) == ("2", "required")
    assert reject.message == "score: is null; stars: 6 is above maximum: 5"


TOKENS = {
    "integer": "1",
    "bigint": "1",
    "numeric": "1",
    "double precision": "1",
    "boolean": "true",
    "text": '"a"',
    "date": '"2024-01-01"',
    "timestamptz": '"2024-01-01T00:00:00Z"',
    "uuid": f'"{CODE}"',
    "json": "{}",
    "integer[]": "[1]",
}
"""A value of each type."""
