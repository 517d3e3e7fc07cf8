"""Frames of declared fields: whatever a value is, it comes back from a function that leaves it alone exactly as it was."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.mapping.mapper import Mapper
from tests.unit.mapping.functions import page_of, spec_with, through
from tests.unit.mapping.workbench import ARTIFACT, nothing, rows_of, sync_spec

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
instants = st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat())
numbers = st.decimals(allow_nan=False, allow_infinity=False).map(str)


def decimals(places: int) -> st.SearchStrategy[str]:
    """Numbers of up to so many digits, two of them behind the point."""
    return st.integers(-(10**places) + 1, 10**places - 1).map(lambda number: f"{number}e-2")


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(texts, parts, max_size=3),
    max_leaves=6,
)
TOKENS: dict[str, st.SearchStrategy[str]] = {
    "text": texts.map(json.dumps),
    "integer": st.integers(-(2**31), 2**31 - 1).map(str),
    "bigint": st.integers(-(2**63), 2**63 - 1).map(str),
    "numeric": numbers,
    "numeric(10,2)": decimals(10),
    "numeric(50,2)": decimals(50),
    "numeric(90,2)": decimals(90),
    "double precision": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "boolean": st.sampled_from(["true", "false"]),
    "date": st.dates().map(lambda day: json.dumps(day.isoformat())),
    "timestamptz": instants.map(json.dumps),
    "uuid": st.uuids().map(lambda code: json.dumps(str(code))),
    "json": documents.map(json.dumps),
}
ARRAYS = {
    f"{kind}[]": st.lists(tokens | st.just("null"), max_size=4).map(lambda items: f"[{','.join(items)}]")
    for kind, tokens in TOKENS.items()
    if kind != "json"
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda frame: frame,
    "the other way round": lambda frame: frame.iloc[::-1],
    "as objects": lambda frame: frame.astype(object),
    "object by object": lambda frame: pd.concat([frame.iloc[place : place + 1] for place in range(len(frame))]),
}


@pytest.mark.parametrize("kind", [*TOKENS, *ARRAYS])
@settings(max_examples=8)
@given(data=st.data())
def test_values_come_back_as_they_were(kind: str, data: st.DataObject) -> None:
    """Of each type, null among them, in whatever form a function hands them back."""
    tokens = data.draw(st.lists((TOKENS | ARRAYS)[kind] | st.just("null"), min_size=1, max_size=4))
    records = [f'{{"id": "{number}", "value": {token}}}' for number, token in enumerate(tokens)]
    fields = {"id": "text", "value": kind}
    plain = Mapper(sync_spec(fields)).map_chunk([page_of(*records)], ARTIFACT, nothing)
    expected = [(row["_key"], row["_row_hash"], row["value"]) for row in rows_of(plain)]
    for way in WAYS.values():
        chunk = through(spec_with(fields), way, *records)
        assert chunk.rejects == plain.rejects
        assert [(row["_key"], row["_row_hash"], row["value"]) for row in rows_of(chunk)] == expected


def test_a_frame_has_arrows_types() -> None:
    """Numbers of more digits than Arrow has are Python's own; the labels say where in the chunk a record stands."""
    kinds = ["text", "bigint", "numeric(10,2)", "numeric(50,2)", "numeric", "timestamptz", "json", "date[]"]
    spec = spec_with({"id": "text"} | {f"f{number}": kind for number, kind in enumerate(kinds)})
    frames: list[pd.DataFrame] = []
    through(spec, lambda frame: frames.append(frame.copy()) or frame, '{"id": "1"}', '{"id": "2"}')
    (frame,) = frames
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        "id": "string[pyarrow]",
        "f0": "string[pyarrow]",
        "f1": "int64[pyarrow]",
        "f2": "decimal128(10, 2)[pyarrow]",
        "f3": "decimal256(50, 2)[pyarrow]",
        "f4": "object",
        "f5": "timestamp[us, tz=UTC][pyarrow]",
        "f6": "string[pyarrow]",
        "f7": "object",
    }
    assert frame.index.tolist() == ["0/0", "0/1"]


def test_arrays_are_lists_of_exact_values() -> None:
    """Of Python's own, in which null changes nothing about what stands beside it."""
    kinds = ["bigint[]", "numeric[]", "numeric(10,2)[]", "timestamptz[]", "text[]"]
    spec = spec_with({"id": "text"} | {f"f{number}": kind for number, kind in enumerate(kinds)})
    frames: list[pd.DataFrame] = []
    values = f'[{2**53 + 1}, null], "f1": [1.10], "f2": [1.1], "f3": ["0001-01-01T00:00:00Z"], "f4": null'
    through(spec, lambda frame: frames.append(frame) or frame, f'{{"id": "1", "f0": {values}}}')
    assert [frames[0][f"f{number}"].iloc[0] for number in range(5)] == [
        [2**53 + 1, None],
        [Decimal("1.10")],
        [Decimal("1.10")],
        [datetime(1, 1, 1, tzinfo=UTC)],
        None,
    ]


@pytest.mark.parametrize(
    ("kind", "token", "array", "error"),
    [
        ("date", '"2024-01-01"', pa.array([2**31 - 1], pa.int32()).cast(pa.date32()), "out-of-range"),
        ("timestamptz", '"2024-01-01T00:00:00Z"', pa.array([2**62], pa.timestamp("us", "UTC")), "out-of-range"),
        ("timestamptz", '"2024-01-01T00:00:00Z"', pa.array([1], pa.timestamp("ns", "UTC")), "precision"),
        ("timestamptz", '"2024-01-01T00:00:00Z"', pa.array([1], pa.timestamp("us")), "type"),
        ("integer", "1", pa.array([2**40]), "out-of-range"),
        ("integer", "1", pa.array([1.5]), "type"),
        ("numeric(10,2)", "1", pa.array([1.5]), "precision"),
        ("text", '"a"', pa.array([b"a"]), "type"),
        ("text", '"a"', pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers()), "encoding"),
        ("json", '"a"', pa.array([{"a": 1.5}]), None),
        ("integer", "1", pa.array(["7"]).dictionary_encode(), None),
    ],
)
def test_columns_of_other_types_are_read_value_by_value(kind: str, token: str, array: pa.Array, error: str | None) -> None:
    """Also where Python has no such value at all."""

    def function(frame: Any) -> Any:
        frame["value"] = pd.Series(pd.arrays.ArrowExtensionArray(array), index=frame.index)
        return frame

    chunk = through(spec_with({"id": "text", "value": kind}), function, f'{{"id": "1", "value": {token}}}')
    assert [(reject.key, reject.field, reject.error) for reject in chunk.rejects] == ([("1", "value", error)] if error else [])


WITHOUT_PANDAS = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nowhere())
from tests.unit.mapping.workbench import map_records, sync_spec
print(map_records(sync_spec({"id": "text", "n": "numeric"}), '{"id": "1", "n": 1}').objects)
"""


def test_a_spec_without_a_function_needs_no_pandas() -> None:
    """It is mapped where that cannot be imported."""
    found = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True, check=True)
    assert found.stdout == "1\n"
