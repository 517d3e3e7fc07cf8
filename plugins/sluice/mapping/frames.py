"""Rows of exact values come in; a frame of them on Arrow's types goes out to the team's function, and rows come back exactly.

A frame has one column for each field, and the labels of its index say which object a row is of, in whatever order they return.
What comes back as it went out is the value it was; anything else is read one by one, as `returned` has it.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from sluice.mapping.exact import ExactType, exact_type
from sluice.mapping.narrowing import Unusable
from sluice.mapping.reading import Outcome
from sluice.mapping.returned import exact_value
from sluice.mapping.violation import ENCODING, NOT_RETURNED, OUT_OF_RANGE, Problem, Violation, shown
from sluice.model.fields import FieldSpec, TypeName

if TYPE_CHECKING:
    import pandas as pd

Labels = Sequence[str]
Row = Sequence[Any]

_DECIMAL256_DIGITS: Final = 76


class TypedFrames:
    """Frames of the declared fields of one sync."""

    def __init__(self, fields: Sequence[FieldSpec]) -> None:
        self._names = [field.name for field in fields]
        # Whatever the supplier writes it in, an instant is an instant here.
        self._kinds = [exact_type(field.type) for field in fields]
        self._types = [_shown_as(field) for field in fields]

    def frame(self, rows: Sequence[Row], labels: Labels) -> "pd.DataFrame":
        """Return the rows as a frame of its own, which a function may do with as it likes."""
        import pandas as pd

        columns = {name: self._column(place, rows) for place, name in enumerate(self._names)}
        return pd.DataFrame(columns, index=pd.Index(labels, dtype=object))

    def rows(self, frame: Any, rows: Sequence[Row], labels: Labels) -> list[Outcome]:
        """Return what came back of the rows, in their order; raise `Unusable` if it is no frame of them."""
        places = places_of(frame, labels)
        missing = [name for name in self._names if name not in frame.columns]
        if missing:
            raise Unusable(f"has returned a frame that lacks {', '.join(missing)}")
        refuse_doubles(frame, self._names)
        values: list[list[Any]] = [[None] * len(self._names) for _ in rows]
        problems: list[list[Problem]] = [[] for _ in rows]
        for column, name in enumerate(self._names):
            for place, value in self._returned(column, frame[name], rows, places):
                if isinstance(value, Violation):
                    problems[place].append(Problem(name, value.error, value.message))
                else:
                    values[place][column] = value
        found: list[Outcome] = [tuple(wrong) or row for row, wrong in zip(values, problems, strict=True)]
        for place in set(range(len(rows))) - set(places):
            found[place] = (Problem(None, NOT_RETURNED, "the team's function has not returned it"),)
        return found

    def _column(self, column: int, rows: Sequence[Row]) -> Any:
        import pandas as pd

        kind, arrow = self._kinds[column], self._types[column]
        values = [_stored(row[column]) for row in rows]
        if kind.item is not None:
            values = pa.array(values, kind.arrow).to_pylist()
        if _is_wide(kind.item or kind):
            values = [_as_decimals(value) for value in values]
        if arrow is None:
            return pd.Series(values, dtype=object).array
        return pd.arrays.ArrowExtensionArray(pa.array(values, arrow))

    def _returned(
        self, column: int, series: "pd.Series[Any]", rows: Sequence[Row], places: Sequence[int]
    ) -> Iterator[tuple[int, Any]]:
        """Yield the value, or the `Violation`, of each row that came back."""
        kind = self._kinds[column]
        if self._is_as_sent(column, series, rows, places):
            for place in places:
                yield place, rows[place][column]
            return
        for place, value in zip(places, values_of(series), strict=True):
            before = rows[place][column]
            try:
                yield place, value if isinstance(value, Violation) else exact_value(kind, value, _stored(before))
            except Violation as violation:
                yield place, violation

    def _is_as_sent(self, column: int, series: "pd.Series[Any]", rows: Sequence[Row], places: Sequence[int]) -> bool:
        import pandas as pd

        arrow = self._types[column]
        # -0.0 equals 0.0, so that floats are looked at one by one.
        if arrow is None or not isinstance(series.dtype, pd.ArrowDtype) or pa.types.is_floating(arrow):
            return False
        sent = pd.Series(self._column(column, [rows[place] for place in places]))
        return bool(series.dtype.pyarrow_dtype == arrow and _arrow(series).equals(_arrow(sent)))


def places_of(frame: Any, labels: Labels) -> list[int]:
    """Return of each row of a returned frame which object it is; raise `Unusable` if that cannot be told."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise Unusable(f"has returned {type(frame).__name__}, and no DataFrame")
    if frame.columns.nlevels > 1:
        raise Unusable("has returned a frame with columns on several levels")
    known = {label: place for place, label in enumerate(labels)}
    returned = frame.index.tolist()
    unknown = [label for label in returned if label not in known]
    if unknown:
        raise Unusable(f"has returned a frame with labels that it was not given, such as {shown(str(unknown[0]))}")
    places = [known[label] for label in returned]
    if len(set(places)) < len(places):
        raise Unusable("has returned a frame with the same label twice")
    return places


def refuse_doubles(frame: "pd.DataFrame", names: Sequence[str]) -> None:
    """Raise `Unusable` if a column stands twice."""
    doubled = [name for name in frame.columns[frame.columns.duplicated()] if name in names]
    if doubled:
        raise Unusable(f"has returned a frame with the column {doubled[0]} twice")


def values_of(series: "pd.Series[Any]") -> Iterator[Any]:
    """Yield the values of a column as they are; a `Violation` where Python has none."""
    import pandas as pd

    if not isinstance(series.dtype, pd.ArrowDtype):
        yield from series.tolist()
        return
    for scalar in _arrow(series):
        try:
            yield scalar.as_py()
        except UnicodeDecodeError:
            yield Violation(ENCODING, "has bytes that are not UTF-8")
        except (ValueError, ArithmeticError):
            yield Violation(OUT_OF_RANGE, f"a {scalar.type} outside the years 0001 to 9999")


def _arrow(column: Any) -> pa.ChunkedArray:
    """Return a column on Arrow's types as Arrow has it."""
    found = pa.array(column.array)
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _is_wide(kind: ExactType) -> bool:
    """Whether values are numbers that are stored as text."""
    return kind.name.startswith(TypeName.NUMERIC) and pa.types.is_string(kind.arrow)


def _as_decimals(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_decimals(item) for item in value]
    return None if value is None else Decimal(value)


def _stored(value: Any) -> Any:
    return value[0] if type(value) is tuple else value


def _shown_as(field: FieldSpec) -> pa.DataType | None:
    """Return the type of a field's column; None: Python's own values.

    Arrow has no numbers of so many digits; and of its lists pandas makes floats where null is among the items.
    """
    if field.type.item is not None:
        return None
    if field.type.name is not TypeName.NUMERIC:
        return exact_type(field.type).arrow
    precision, scale = field.type.precision or _DECIMAL256_DIGITS + 1, field.type.scale or 0
    if precision > _DECIMAL256_DIGITS:
        return None
    arrow = exact_type(field.type).arrow
    return arrow if pa.types.is_decimal(arrow) else pa.decimal256(precision, scale)
