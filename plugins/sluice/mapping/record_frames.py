"""Raw records come in; a frame of all that stands in them goes out to the team's function, and records come back exactly.

A frame has one column for each key that any record of the chunk has at its root. Values are Python's own: texts, whole numbers,
`Decimal`, lists, dictionaries; None is null, and pandas.NA a key that the record does not have.
"""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from sluice.mapping.documents import refuse_depth
from sluice.mapping.frames import Labels, places_of, refuse_doubles, values_of
from sluice.mapping.narrowing import Unusable
from sluice.mapping.python_values import Written, is_nan, token
from sluice.mapping.tokens import MINUS_ZERO
from sluice.mapping.violation import NOT_RETURNED, Problem, Violation, shown

if TYPE_CHECKING:
    import pandas as pd

Record = Mapping[str, Any]

_DEPTH: Final = 300
"""Levels of a record that Python reads and writes wherever it stands in a program, and whatever its version: more than a json
field may have, with some to spare for the way to it."""
_INTEGER_DIGITS: Final = 4_300
"""Python reads no longer int from text."""
_FAST: Final = msgspec.json.Decoder(dict[str, Any], float_hook=Written)


def too_deep(raw: Raw) -> tuple[Problem, ...]:
    """Return what is wrong with a record that has too many levels to be decoded; nothing with others."""
    try:
        refuse_depth(bytes(raw), _DEPTH)
    except Violation as violation:
        return (Problem(None, violation.error, violation.message),)
    return ()


def decoded(raw: Raw) -> Record:
    """Return a record with all its values, exactly. It is known to be an object, and not to be too deep."""
    text = bytes(raw)
    if MINUS_ZERO.search(text) is None:
        try:
            return _FAST.decode(text)
        except msgspec.MsgspecError:
            pass
    found: Record = json.loads(text, parse_float=Written, parse_int=_integer)
    return found


def frame_of(records: Sequence[Record], labels: Labels) -> "pd.DataFrame":
    """Return records as a frame. They become the function's own: what it changes within them is changed."""
    import pandas as pd

    keys = dict.fromkeys(key for record in records for key in record)
    index = pd.Index(labels, dtype=object)
    columns = {key: pd.Series([record.get(key, pd.NA) for record in records], index, dtype=object) for key in keys}
    return pd.DataFrame(columns, index=index, columns=pd.Index(list(keys), dtype=object))


def records_of(frame: Any, before: Sequence[Record], labels: Labels) -> list[Raw | tuple[Problem, ...]]:
    """Return what came back of the records, in their order; raise `Unusable` if it is no frame of them."""
    places = places_of(frame, labels)
    names = list(frame.columns)
    if strange := [name for name in names if not isinstance(name, str)]:
        raise Unusable(f"has returned a frame with the column {shown(str(strange[0]))}, which is no text")
    refuse_doubles(frame, names)
    members: list[list[str]] = [[] for _ in before]
    problems: list[list[Problem]] = [[] for _ in before]
    for name in names:
        key = token(name)
        for place, value in zip(places, values_of(frame[name]), strict=True):
            try:
                if (written := _written(value, before[place], name)) is not None:
                    members[place].append(f"{key}:{written}")
            except Violation as violation:
                problems[place].append(Problem(None, violation.error, f"{shown(name)}: {violation.message}"))
    found: list[Raw | tuple[Problem, ...]] = [
        tuple(wrong) or Raw(f"{{{','.join(parts)}}}".encode()) for parts, wrong in zip(members, problems, strict=True)
    ]
    for place in set(range(len(before))) - set(places):
        found[place] = (Problem(None, NOT_RETURNED, "the team's function has not returned it"),)
    return found


def _written(value: Any, before: Record, name: str) -> str | None:
    """Return a value as JSON; None: the record does not have it. NaN is what was there only if that was nothing or null."""
    import pandas as pd

    if isinstance(value, str | list | dict):
        return token(value)
    if isinstance(value, Violation):
        raise value
    if value is pd.NA:
        return None
    if before.get(name) is None and is_nan(value):
        return "null" if name in before else None
    return token(value)


def _integer(text: str) -> int | Decimal:
    return Written(text) if text == "-0" or len(text) >= _INTEGER_DIGITS else int(text)
