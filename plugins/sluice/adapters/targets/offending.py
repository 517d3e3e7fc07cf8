"""An expectation of a kind that can reject rows in; the condition that a row does not meet it out, as SQL.

It says what Great Expectations says: a null offends nothing but the expectation that there is none. What a value is compared
with is read as a value of the column's type; of whole numbers, as a number of any kind.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from psycopg import sql

from sluice.adapters.targets.names import listed, type_sql
from sluice.model.fields import FieldSpec, TypeName
from sluice.model.quality import SuiteExpectation

_WHOLE: Final = frozenset({TypeName.INTEGER, TypeName.BIGINT})

Condition = Callable[[Mapping[str, Any], Sequence[FieldSpec]], sql.Composed]
"""Makes the condition out of the kwargs and the columns that are named in them."""


def offends(expectation: SuiteExpectation, fields: Mapping[str, FieldSpec]) -> sql.Composed:
    """Return the condition that a row of `checked` does not meet the expectation, whose kind is one of `REJECTING`."""
    return _CONDITIONS[expectation.type](expectation.kwargs, [fields[name] for name in expectation.columns])


def shown(expectation: SuiteExpectation) -> sql.Composed:
    """Return what of an offending row is shown: the value of its column, or of its columns together."""
    if len(expectation.columns) == 1:
        return sql.SQL("{}::text").format(sql.Identifier(expectation.columns[0]))
    return sql.SQL("row({})::text").format(listed(expectation.columns))


def _is_null(_: Mapping[str, Any], columns: Sequence[FieldSpec]) -> sql.Composed:
    return sql.SQL("{} is null").format(_name(columns[0]))


def _in_set(kwargs: Mapping[str, Any], columns: Sequence[FieldSpec]) -> sql.Composed:
    kind = _compared_as(columns[0])
    texts = [_text(value) for value in kwargs["value_set"]]
    return sql.SQL("{} = any({}::text[]::{}[])").format(_name(columns[0]), sql.Literal(texts), kind)


def _not_in_set(kwargs: Mapping[str, Any], columns: Sequence[FieldSpec]) -> sql.Composed:
    return sql.SQL("not ({})").format(_in_set(kwargs, columns))


def _outside(kwargs: Mapping[str, Any], columns: Sequence[FieldSpec]) -> sql.Composed:
    return _beyond(_name(columns[0]), _compared_as(columns[0]), kwargs)


def _length_outside(kwargs: Mapping[str, Any], columns: Sequence[FieldSpec]) -> sql.Composed:
    return _beyond(_length(columns[0]), sql.SQL("numeric"), kwargs)


def _length_differs(kwargs: Mapping[str, Any], columns: Sequence[FieldSpec]) -> sql.Composed:
    return sql.SQL("{} <> {}::numeric").format(_length(columns[0]), sql.Literal(_text(kwargs["value"])))


def _beyond(value: sql.Composable, kind: sql.Composable, kwargs: Mapping[str, Any]) -> sql.Composed:
    """Return the condition that a value is on the wrong side of a bound; one that is strict is itself on the wrong side."""
    ends = []
    for bound, strict, wrong, wrong_or_equal in (
        ("min_value", "strict_min", "<", "<="),
        ("max_value", "strict_max", ">", ">="),
    ):
        if kwargs.get(bound) is not None:
            sign = sql.SQL(wrong_or_equal if kwargs.get(strict) else wrong)
            ends.append(sql.SQL("{} {} {}::{}").format(value, sign, sql.Literal(_text(kwargs[bound])), kind))
    return sql.SQL("({})").format(sql.SQL(" or ").join(ends))


def _matches(kwargs: Mapping[str, Any], columns: Sequence[FieldSpec]) -> sql.Composed:
    return sql.SQL("{} ~ {}").format(_name(columns[0]), sql.Literal(str(kwargs["regex"])))


def _differs_from_pattern(kwargs: Mapping[str, Any], columns: Sequence[FieldSpec]) -> sql.Composed:
    return sql.SQL("not ({})").format(_matches(kwargs, columns))


def _repeats(_: Mapping[str, Any], columns: Sequence[FieldSpec]) -> sql.Composed:
    names = listed(field.name for field in columns)
    return sql.SQL("({0}) in (select {0} from pg_temp.checked group by {0} having count(*) > 1)").format(names)


def _is_not_greater(kwargs: Mapping[str, Any], columns: Sequence[FieldSpec]) -> sql.Composed:
    sign = sql.SQL("<" if kwargs.get("or_equal") else "<=")
    return sql.SQL("{} {} {}").format(_name(columns[0]), sign, _name(columns[1]))


def _name(field: FieldSpec) -> sql.Identifier:
    return sql.Identifier(field.name)


def _length(field: FieldSpec) -> sql.Composed:
    return sql.SQL("length({})").format(_name(field))


def _compared_as(field: FieldSpec) -> sql.Composable:
    # Nothing is rounded to the type of a column to be compared with it.
    is_exact = field.type.name in _WHOLE or field.type.name is TypeName.NUMERIC
    return sql.SQL("numeric") if is_exact else type_sql(field.type.sql)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_CONDITIONS: Final[Mapping[str, Condition]] = {
    "expect_column_values_to_not_be_null": _is_null,
    "expect_column_values_to_be_in_set": _not_in_set,
    "expect_column_values_to_not_be_in_set": _in_set,
    "expect_column_values_to_be_between": _outside,
    "expect_column_values_to_match_regex": _differs_from_pattern,
    "expect_column_values_to_not_match_regex": _matches,
    "expect_column_value_lengths_to_be_between": _length_outside,
    "expect_column_value_lengths_to_equal": _length_differs,
    "expect_column_values_to_be_unique": _repeats,
    "expect_compound_columns_to_be_unique": _repeats,
    "expect_column_pair_values_a_to_be_greater_than_b": _is_not_greater,
}
