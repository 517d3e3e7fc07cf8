"""A raw record comes in; the exact values of the declared fields, or all that is wrong with it, go out."""

from typing import Any

from msgspec import Raw

from sluice.mapping.reader import MISSES, Problem, Reader

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
