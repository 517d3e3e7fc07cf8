"""Columns of Parquet in; the rows as JSON out, no value rounded on the way.

Decimals and integers keep their digits, timestamps their unit; bytes are base64. What JSON cannot hold becomes a text.
"""

import json
import math
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from sluice.errors import FileUnreadable

_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MILLISECONDS: Final = 86_400_000
_UUIDS: Final = "arrow.uuid"
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def json_values(batch: Any, name: str) -> list[bytes]:
    """Return each row of a batch as a JSON object; raise `FileUnreadable` for a type of column that has no values to tell."""
    columns = [(column, _values(batch.column(place), name)) for place, column in enumerate(batch.schema.names)]
    names = [column for column, _ in columns]
    if len(set(names)) < len(names):
        raise FileUnreadable(f"{name}: has two columns of the same name", file=name)
    return [_json(dict(zip(names, row, strict=True))) for row in zip(*(values for _, values in columns), strict=True)]


def _json(row: dict[str, Any]) -> bytes:
    try:
        return _ENCODER.encode(row)
    except UnicodeEncodeError:  # bytes that are no UTF-8 stay so, for the mapping to reject
        return json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "surrogateescape")


def _values(array: Any, name: str) -> list[Any]:
    from pyarrow import types

    kind = array.type
    if isinstance(array, _extension()):
        return _uuids(array.storage) if kind.extension_name == _UUIDS else _values(array.storage, name)
    if types.is_dictionary(kind):
        return _values(array.dictionary_decode(), name)
    if types.is_struct(kind):
        return _structs(array, name)
    if types.is_map(kind):
        return _maps(array, name)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _lists(array, name)
    convert = _scalar(kind)
    if convert is None:
        raise FileUnreadable(f"{name}: has a column of type {kind}, which is not read", file=name)
    return [None if value is None else convert(value) for value in _plain(array)]


def _extension() -> Any:
    from pyarrow import ExtensionArray

    return ExtensionArray


def _uuids(array: Any) -> list[str | None]:
    return [None if value is None else str(UUID(bytes=value)) for value in array.to_pylist()]


def _plain(array: Any) -> list[Any]:
    """Return values as Python has them; of times, and of texts that may be damaged, what they are stored as."""
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    if types.is_timestamp(kind) or types.is_duration(kind) or types.is_time64(kind) or types.is_date64(kind):
        return list(array.cast(pa.int64()).to_pylist())
    if types.is_time32(kind) or types.is_date32(kind):
        return list(array.cast(pa.int32()).to_pylist())
    if types.is_string(kind):
        return list(array.cast(pa.binary()).to_pylist())
    if types.is_large_string(kind):
        return list(array.cast(pa.large_binary()).to_pylist())
    return list(array.to_pylist())


def _scalar(kind: Any) -> Callable[[Any], Any] | None:
    """Return what makes a value fit for JSON out of one as `_plain` gives it; None for a type that is not read."""
    from pyarrow import types

    makers: tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...] = (
        (types.is_timestamp, lambda value: _instant(value, kind.unit, "" if kind.tz is None else "Z")),
        (types.is_time, lambda value: _time(value, kind.unit)),
        (types.is_date32, _date),
        (types.is_date64, lambda value: _date(value // _DAY_MILLISECONDS)),
        (types.is_string, _text),
        (types.is_large_string, _text),
        (types.is_binary, _base64),
        (types.is_large_binary, _base64),
        (types.is_fixed_size_binary, _base64),
        (types.is_floating, lambda value: value if math.isfinite(value) else str(value)),
        (types.is_primitive, lambda value: value),
        (types.is_decimal, lambda value: value),
        (types.is_null, lambda value: value),
    )
    return next((make for is_meant, make in makers if is_meant(kind)), None)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _structs(array: Any, name: str) -> list[Any]:
    keys = [array.type.field(place).name for place in range(array.type.num_fields)]
    if len(set(keys)) < len(keys):
        raise FileUnreadable(f"{name}: has a column with two parts of the same name", file=name)
    children = [_values(child, name) for child in array.flatten()]
    rows = zip(*children, strict=True) if children else (() for _ in range(len(array)))
    valid = array.is_valid().to_pylist()
    return [dict(zip(keys, row, strict=True)) if is_valid else None for row, is_valid in zip(rows, valid, strict=True)]


def _lists(array: Any, name: str) -> list[Any]:
    from pyarrow import compute

    items = iter(_values(array.flatten(), name))
    lengths = compute.list_value_length(array).to_pylist()
    return [None if length is None else [next(items) for _ in range(length)] for length in lengths]


def _maps(array: Any, name: str) -> list[Any]:
    """Return objects where all keys are texts and none stands twice, else lists of pairs."""
    keys, items = _values(array.keys, name), _values(array.items, name)
    offsets = array.offsets.to_pylist()
    found: list[Any] = []
    for place, is_valid in enumerate(array.is_valid().to_pylist()):
        span = slice(offsets[place], offsets[place + 1])
        pairs = list(zip(keys[span], items[span], strict=True))
        is_object = all(isinstance(key, str) for key, _ in pairs) and len({key for key, _ in pairs}) == len(pairs)
        found.append((dict(pairs) if is_object else [list(pair) for pair in pairs]) if is_valid else None)
    return found


def _instant(value: int, unit: str, zone: str) -> str:
    """Return a timestamp as text; one that no calendar holds as its number, which is then no timestamp."""
    digits = _DIGITS[unit]
    seconds, fraction = divmod(value, 10**digits)
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{value} {unit} since 1970"
    return f"{moment.replace(tzinfo=None).isoformat()}{_fraction(fraction, digits)}{zone}"


def _time(value: int, unit: str) -> str:
    digits = _DIGITS[unit]
    seconds, fraction = divmod(value, 10**digits)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{_fraction(fraction, digits)}"


def _fraction(fraction: int, digits: int) -> str:
    return f".{fraction:0{digits}d}" if digits and fraction else ""


def _date(days: int) -> str:
    try:
        return (_EPOCH + timedelta(days=days)).date().isoformat()
    except OverflowError:
        return f"{days} days since 1970"
