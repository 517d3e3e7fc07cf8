"""Some records of a supplier come in; the fields that could be declared of them go out, with what each was concluded from."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from sluice.mapping import shapes
from sluice.mapping.exact import exact_type
from sluice.mapping.violation import Violation
from sluice.model.fields import SYSTEM_COLUMNS, FieldType, TypeName

MOST_FIELDS: Final = 60
"""A person would not read more; whoever needs them writes them."""

_DEPTH: Final = 4
_INT32: Final = 2**31
_INT64: Final = 2**63
_LONGEST_NAME: Final = 63
_WORDS: Final = (TypeName.DATE, TypeName.TIMESTAMPTZ, TypeName.UUID)
_NUMERALS: Final = (TypeName.INTEGER, TypeName.BIGINT, TypeName.NUMERIC)


@dataclass(frozen=True)
class Proposal:
    """A field that could be declared. It tells no value: those may be personal, and a spec is committed."""

    name: str
    path: tuple[str, ...]
    type: TypeName
    seen: int
    """In how many records it has a value."""
    of: int


def proposals(texts: Iterable[bytes]) -> list[Proposal]:
    """Return a field for each path of some records, in their order, up to `MOST_FIELDS`.

    An object is taken apart where it has the same keys in all records; else it is a document of its own.
    """
    records = [record for record in shapes.decoded(texts) if isinstance(record, dict)]
    columns = dict(islice(_columns(records, ()), MOST_FIELDS))
    paths = list(columns)
    # Files of lines and XML know nothing but texts: there a number is what looks like one.
    only_texts = all(isinstance(value, str) for column in columns.values() for value in column)
    names = column_names(paths)
    return [
        Proposal(
            name=name,
            path=path,
            type=_type_of(columns[path], only_texts=only_texts),
            seen=len(columns[path]),
            of=len(records),
        )
        for name, path in zip(names, paths, strict=True)
    ]


def column_names(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a name for the column of each path, each of them once: the last key, or more of the path where that is taken."""
    names: list[str] = []
    for path in paths:
        ways = [_spelled(path[-1:]), _spelled(path)]
        ways += [f"{_spelled(path)[:55]}_{number}" for number in range(2, len(paths) + 2)]
        names.append(next(way for way in ways if way not in names and way not in SYSTEM_COLUMNS))
    return names


def _spelled(keys: Sequence[str]) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", "_".join(keys)).lower()
    name = re.sub(r"[^a-z0-9]+", "_", words).strip("_")
    return (name if name[:1].isalpha() else f"field_{name}".strip("_"))[:_LONGEST_NAME]


def _columns(objects: Sequence[dict[str, Any]], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield the paths below some objects, each with its values that are not null; no field can have an empty key."""
    for key in dict.fromkeys(key for record in objects for key in record if key):
        path = (*above, key)
        values = [value for record in objects if (value := record.get(key)) is not None]
        if len(path) < _DEPTH and _is_alike(values):
            yield from _columns(values, path)
        else:
            yield path, values


def _is_alike(values: Sequence[Any]) -> bool:
    """Whether they are objects with the same keys."""
    return bool(values) and all(isinstance(value, dict) and value and value.keys() == values[0].keys() for value in values)


def _type_of(values: Sequence[Any], *, only_texts: bool) -> TypeName:
    kinds = {type(value) for value in values}
    if kinds & {dict, list}:
        return TypeName.JSON
    if kinds == {bool}:
        return TypeName.BOOLEAN
    if kinds and kinds <= {int, float}:
        return _number(values)
    if kinds == {str}:
        ways = (*_NUMERALS, *_WORDS) if only_texts else _WORDS
        return next((name for name in ways if _takes_all(name, values)), TypeName.TEXT)
    return TypeName.TEXT


def _number(values: Sequence[Any]) -> TypeName:
    if any(isinstance(value, float) or not -_INT64 <= value < _INT64 for value in values):
        return TypeName.NUMERIC
    return TypeName.INTEGER if all(-_INT32 <= value < _INT32 for value in values) else TypeName.BIGINT


def _takes_all(name: TypeName, texts: Sequence[str]) -> bool:
    read = exact_type(FieldType(name=name)).from_text
    try:
        for text in texts:
            read(text)
    except Violation:
        return False
    return True
