"""An Arrow column comes in; the texts by which Postgres reads its values go out."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sluice.mapping.arrow import text_scalar

_NOTHING: Final = text_scalar("")
_NULL: Final = text_scalar("NULL")
_QUOTE: Final = text_scalar('"')
_COMMA: Final = text_scalar(",")
_OPENING: Final = text_scalar("{")
_CLOSING: Final = text_scalar("}")
_IN_UTC: Final = text_scalar("Z")


def spelled(column: pa.Array) -> pa.Array:
    """Return the values of a column as texts, null as null; those of lists as arrays, in braces."""
    if not pa.types.is_list(column.type):
        return _text_of(column)
    items = _quoted(column.flatten())
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(column), 0))
    lists = pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), ends]), items)
    arrays = pc.binary_join_element_wise(_OPENING, pc.binary_join(lists, _COMMA), _CLOSING, _NOTHING)
    return pc.if_else(column.is_valid(), arrays, text_scalar(None))


def _quoted(items: pa.Array) -> pa.Array:
    """Return items as they stand in an array: all in quotes but null, which a text could be mistaken for."""
    texts = _text_of(items)
    if pa.types.is_string(items.type):
        texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    return pc.fill_null(pc.binary_join_element_wise(_QUOTE, texts, _QUOTE, _NOTHING), _NULL)


def _text_of(column: pa.Array) -> pa.Array:
    """Return plain values as texts. Instants get their zone apart: with it, Arrow takes twenty times as long."""
    kind = column.type
    if not pa.types.is_timestamp(kind) or kind.tz != "UTC":
        return column.cast(pa.string())
    return pc.binary_join_element_wise(column.cast(pa.timestamp(kind.unit)).cast(pa.string()), _IN_UTC, _NOTHING)
