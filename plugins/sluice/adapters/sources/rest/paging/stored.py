"""Where paging stands in; the JSON that a shard keeps of it out, and back."""

from typing import TypeVar

import msgspec
from pydantic import JsonValue

from sluice.errors import AnswerUnusable

Place = TypeVar("Place", bound=msgspec.Struct)


def stored(place: msgspec.Struct) -> JsonValue:
    """Return what a shard keeps of a place."""
    document: JsonValue = msgspec.to_builtins(place)
    return document


def place_of(cursor: JsonValue, first: Place) -> Place:
    """Return the place that was stored; `first`, whose tag is the kind of paging, where none was.

    Raises `AnswerUnusable` for what another way of paging has stored.
    """
    if cursor is None:
        return first
    try:
        return msgspec.convert(cursor, type(first))
    except msgspec.ValidationError as exc:
        raise other_paging(str(first.__struct_config__.tag)) from exc


def other_paging(kind: str) -> AnswerUnusable:
    """Return the error for a stored cursor that another way of paging has written."""
    return AnswerUnusable(
        f"the shard's stored cursor was written for another kind of paging than {kind}: begin a new run, whose shards begin "
        "with their first page"
    )
