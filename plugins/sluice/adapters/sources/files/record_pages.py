"""Records as they stood in a file in; a page, which is a JSON array of them, out, whatever is wrong with some of them."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from sluice.mapping import tokens
from sluice.mapping.tokens import Unbalanced

_RECORDS: Final = msgspec.json.Decoder(list[Raw])


def page_of(records: Sequence[bytes]) -> bytes:
    """Return the page.

    Records stay as they are, so that the mapping rejects what is damaged; one that would not keep to its own place in the
    array becomes a text, which is as good as no record.
    """
    page = _joined(records)
    try:
        if [bytes(raw) for raw in _RECORDS.decode(page)] == list(records):
            return page
    except (msgspec.MsgspecError, RecursionError):
        pass
    return _joined([record if _keeps_to_itself(record) else as_text(record) for record in records])


def as_text(record: bytes | str) -> bytes:
    """Return a JSON text of what is no record; bytes that are no UTF-8 are spelled out."""
    return msgspec.json.encode(record.decode("utf-8", "backslashreplace") if isinstance(record, bytes) else record)


def _joined(records: Sequence[bytes]) -> bytes:
    return b"[%s]" % b",".join(records)


def _keeps_to_itself(record: bytes) -> bool:
    """Whether the record, and nothing less or more, is one item of an array."""
    array = b"[%s]" % record
    try:
        found = [array[begin:end] for _, begin, end in tokens.items(array)]
        return found == [record] and tokens.end(array) == len(array)
    except Unbalanced:
        return False
