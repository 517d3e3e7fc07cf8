"""Watermarks as text: out of the values of a chunk, and compared with one another."""

from collections.abc import Iterable
from typing import Any

from sluice.mapping.exact import exact_type
from sluice.model.fields import FieldType


def highest(values: Iterable[Any], field_type: FieldType) -> str | None:
    """Return the highest of some values of a field, in its canonical text form; None if all are null."""
    mark = max((value for value in values if value is not None), default=None)
    return None if mark is None else exact_type(field_type).to_text(mark)


def higher(mark_a: str | None, mark_b: str | None, field_type: FieldType) -> str | None:
    """Return the higher of two watermarks of a field; any is higher than none."""
    if mark_a is None or mark_b is None:
        return mark_b if mark_a is None else mark_a
    read = exact_type(field_type).from_text
    return mark_a if read(mark_a) >= read(mark_b) else mark_b
