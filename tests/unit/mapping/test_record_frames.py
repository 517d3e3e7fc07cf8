"""A function that is given the records as they came: what it sees, and what becomes of what it returns."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.mapping.mapper import Mapper
from tests.unit.mapping.functions import page_of, spec_with, through, values_after
from tests.unit.mapping.workbench import ARTIFACT, nothing, rows_of, sync_spec, watermarked

SPEC = spec_with({"id": "text", "value": "json"}, when="before")


def seen(*records: str) -> pd.DataFrame:
    """The frame that a function is given."""
    frames: list[pd.DataFrame] = []

    def function(frame: Any) -> Any:
        frames.append(frame.copy())
        return frame

    through(SPEC, function, *records)
    return frames[0]


def written(value: Any, was: str = "1") -> Any:
    """The JSON that a value comes to in a record, or the `(error, message)`."""
    chunk = through(SPEC, _putting(value), f'{{"id": "1", "value": {was}}}')
    if chunk.rejects:
        return chunk.rejects[0].error, chunk.rejects[0].message
    return values_after(SPEC, chunk)[0]["value"]


def _putting(value: Any) -> Callable[[Any], Any]:
    def function(frame: Any) -> Any:
        frame["value"] = pd.Series([value] * len(frame), index=frame.index, dtype=object)
        return frame

    return function


def test_values_are_pythons_own() -> None:
    """Texts, whole numbers however long, decimal numbers, lists, dictionaries; null is told from what is not there."""
    frame = seen('{"id": "1", "a": 9007199254740993, "b": 1.10, "c": null, "d": [1, {"e": 2.5}], "f": true}', '{"id": "2"}')
    assert list(frame.columns) == ["id", "a", "b", "c", "d", "f"]
    assert {str(dtype) for dtype in frame.dtypes} == {"object"}
    assert frame.index.tolist() == ["0/0", "0/1"]
    first, second = ({name: frame[name].tolist()[place] for name in frame.columns} for place in (0, 1))
    assert first == {"id": "1", "a": 2**53 + 1, "b": Decimal("1.10"), "c": None, "d": [1, {"e": Decimal("2.5")}], "f": True}
    assert isinstance(first["b"], Decimal)
    assert all(second[name] is pd.NA for name in "abcdf")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**30), max_value=10**30)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0")),
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.text(st.characters(exclude_characters="\0")), parts, max_size=3)
    ),
    max_leaves=8,
)


def _spelled(value: Any) -> str:
    """Return JSON that keeps numbers as they are written."""
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(key)}:{_spelled(part)}" for key, part in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_spelled, value)) + "]"
        case Decimal():
            return str(value)
    return json.dumps(value)


@given(st.lists(json_values, min_size=1, max_size=4))
def test_what_a_function_leaves_alone_is_as_it_came(values: list[Any]) -> None:
    """Whatever JSON it is: the rows are those without a function, to the last digit and the last letter of a text."""
    fields = {"id": "text", "as_json": {"type": "json", "path": "v"}, "as_text": {"type": "text", "path": "v"}}
    page = page_of(*(f'{{"id": "{number}", "v": {_spelled(value)}}}' for number, value in enumerate(values)))
    plain = Mapper(sync_spec(fields)).map_chunk([page], ARTIFACT, nothing)
    spec = spec_with(fields, when="before")
    chunk = through(spec, lambda frame: frame, *(f'{{"id": "{n}", "v": {_spelled(value)}}}' for n, value in enumerate(values)))
    assert [(reject.key, reject.error) for reject in chunk.rejects] == [(reject.key, reject.error) for reject in plain.rejects]
    assert [row["_row_hash"] for row in rows_of(chunk)] == [row["_row_hash"] for row in rows_of(plain)]
    assert [row["as_text"] for row in rows_of(chunk)] == [row["as_text"] for row in rows_of(plain)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (pd.NA, None),
        (3, "3"),
        (3.0, "3"),
        (0.1, "0.1"),
        (np.float32(0.5), "0.5"),
        (np.int64(2**62), str(2**62)),
        (np.bool_(True), "true"),
        (Decimal("1.10"), "1.10"),
        ("ä\n", '"ä\\n"'),
        ([1, (2, np.array([3]))], "[1,[2,[3]]]"),
        ({"b": None}, '{"b":null}'),
        (date(2024, 1, 2), '"2024-01-02"'),
        (datetime(2024, 1, 2, tzinfo=UTC), '"2024-01-02T00:00:00+00:00"'),
        (pd.Timestamp("2024-01-02"), '"2024-01-02T00:00:00"'),
    ],
)
def test_what_is_put_into_a_record_is_written_exactly(value: Any, expected: str | None) -> None:
    """As JSON; what is not there any more is null."""
    assert written(value) == expected


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (float("nan"), "out-of-range", '"value": nan is no value of JSON\'s, and not null: null is None'),
        (pd.NaT, "out-of-range", '"value": NaT is no value of JSON\'s, and not null: null is None'),
        (float("inf"), "out-of-range", '"value": inf is no number that can be stored'),
        (
            2.0**60,
            "precision",
            '"value": 1.152921504606847e+18 is a float, which does not tell whole numbers apart from 2^53 on',
        ),
        (b"a", "type", '"value": bytes "b\'a\'" is no value of JSON\'s'),
        (pd.Timedelta("1h"), "type", '"value": Timedelta "0 days 01:00:00" is no value of JSON\'s'),
        (pd.Timestamp(1), "precision", '"value": "1970-01-01 00:00:00.000000001" is finer than a microsecond (1 ns)'),
        ("\ud800", "encoding", "value: a lone surrogate in a text"),
    ],
)
def test_what_json_has_no_value_for_is_told(value: Any, error: str, message: str) -> None:
    """By the key of the record, since no field has read it yet."""
    assert written(value) == (error, message)


def test_nan_stands_for_null_only_where_it_was() -> None:
    """Where pandas has put it, null stays null and what was not there stays away."""
    assert written(float("nan"), was="null") is None
    chunk = through(SPEC, lambda frame: frame.assign(value=frame["value"].astype("float64")), '{"id": "1", "value": null}')
    assert values_after(SPEC, chunk) == [{"id": "1", "value": None}]


def test_records_may_gain_and_lose_keys() -> None:
    """The fields read what is there then."""
    spec = spec_with({"id": "text", "city": {"type": "text", "path": "address.city"}}, when="before")

    def function(frame: Any) -> Any:
        frame["address"] = [{"city": place.split(", ")[1]} for place in frame["place"]]
        return frame.drop(columns="place")

    chunk = through(spec, function, '{"id": "1", "place": "Main St 1, Graz"}', '{"id": "2", "place": "Graz"}')
    assert values_after(spec, chunk) == [{"id": "1", "city": "Graz"}]
    assert [(reject.key, reject.error) for reject in chunk.rejects] == [("2", "function")]
    assert "IndexError" in chunk.rejects[0].message


@pytest.mark.parametrize(
    ("changes", "field"), [({"id": "2"}, "id"), ({"seen": 2}, "seen"), ({"seen": "x"}, "seen"), ({"at": 4}, "at")]
)
def test_what_an_object_is_may_not_be_changed(changes: dict[str, Any], field: str) -> None:
    """It was read before: an object that is known is not even given to the function."""
    fields = {"id": "text", "seen": "bigint", "at": "bigint"}
    spec = watermarked(spec_with(fields, when="before", object={"key": ["id"], "version": "seen"}), "at")
    chunk = through(spec, lambda frame: frame.assign(**changes), '{"id": "1", "seen": 1, "at": 3}')
    (reject,) = chunk.rejects
    assert (reject.key, reject.error, reject.field) == ("1", "identity", field)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda frame: frame.rename(columns={"value": 5}), 'has returned a frame with the column "5", which is no text'),
        (lambda frame: pd.concat([frame, frame[["value"]]], axis=1), "has returned a frame with the column value twice"),
        (lambda frame: frame.to_dict("records"), "has returned list, and no DataFrame"),
    ],
)
def test_a_frame_of_no_records_is_told(function: Callable[[Any], Any], message: str) -> None:
    """As for frames of fields."""
    chunk = through(SPEC, function, '{"id": "1", "value": 1}')
    assert chunk.rejects[0].message == f"transforms.hotels.enrich {message}"


def test_an_object_that_does_not_come_back_is_named() -> None:
    """It is rejected, and not lost."""
    chunk = through(SPEC, lambda frame: frame[frame["value"] == 1], '{"id": "1", "value": 1}', '{"id": "2", "value": 2}')
    assert [(reject.key, reject.error) for reject in chunk.rejects] == [("2", "not-returned")]


def test_a_record_too_deep_for_python_is_rejected_alone() -> None:
    """Also where decoders are about to give up, which depends on the version of Python and on who calls them."""
    depths = (299, 300, *range(900, 1000, 8), *range(1470, 1500, 8), *range(9960, 10_000, 8))
    chunk = through(SPEC, lambda frame: frame, *(f'{{"id": "{n}", "more": {"[" * n}-0{"]" * n}}}' for n in depths))
    assert [row["id"] for row in values_after(SPEC, chunk)] == ["299"]
    (told,) = ((reject.error, reject.message) for reject in chunk.rejects if reject.key == "300")
    assert (len(chunk.rejects), told) == (len(depths) - 1, ("out-of-range", "nested deeper than 300 levels"))
