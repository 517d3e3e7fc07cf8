"""Raw records come in; for each the exact values of the declared fields, or all that is wrong with it, go out."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Raw

from sluice.mapping.reader import MISSES, Reader
from sluice.mapping.violation import Problem

Outcome = list[Any] | tuple[Problem, ...]
"""The values of an object in the order of the fields; or, where there is anything wrong, that."""


def outcome(reader: Reader, raw: Raw, *, is_dubious: bool) -> Outcome:
    """Return what becomes of one record; one that is dubious is read with care from the first."""
    if not is_dubious:
        try:
            return reader.fast(raw)
        except MISSES:
            pass
    values, problems = reader.examine(bytes(raw))
    return tuple(problems) if problems else values


def outcomes(reader: Reader, records: Sequence[tuple[Raw, bool]]) -> Iterator[Outcome]:
    """Yield the outcome of each record, which comes with whether it is dubious.

    Expressions and patterns are worked out for all of them at once.
    """
    if not reader.is_columnar:
        for raw, is_dubious in records:
            yield outcome(reader, raw, is_dubious=is_dubious)
        return
    gathered = [None if is_dubious else _gathered(reader, raw) for raw, is_dubious in records]
    places = [place for place, row in enumerate(gathered) if row is not None]
    broken = {places[place] for place in reader.complete([row for row in gathered if row is not None])}
    for place, ((raw, _), row) in enumerate(zip(records, gathered, strict=True)):
        yield outcome(reader, raw, is_dubious=True) if row is None or place in broken else row


def _gathered(reader: Reader, raw: Raw) -> list[Any] | None:
    try:
        return reader.gather(raw)
    except MISSES:
        return None
