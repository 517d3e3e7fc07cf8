"""Pages that list what there is to be cut into shards come in; the values that stand in their records go out."""

import json
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from sluice.errors import AnswerUnusable, ShardsUnusable
from sluice.mapping.pages import PageSplitter
from sluice.mapping.violation import shown_token

LONGEST_VALUE: Final = 200
"""Characters: a value is a shard's key."""


class ShardValueReader:
    """Reads the values at one place of the records of pages."""

    def __init__(self, records: str, place: str) -> None:
        """Say where in a page its records stand, and where in a record the value does."""
        self._splitter = PageSplitter(records)
        self._place = place
        self._keys = place.split(".")

    def values(self, page: bytes) -> Iterator[str]:
        """Yield the value of each record; raise `ShardsUnusable` quoting one that has none, or one that can be no key."""
        try:
            records = self._splitter.split(page).records
        except AnswerUnusable as exc:
            raise ShardsUnusable(f"shards.source: {exc.message}") from exc
        yield from (self._value(bytes(record)) for record in records)

    def _value(self, record: bytes) -> str:
        try:
            # A number is its exact digits.
            found = json.loads(record, parse_int=str, parse_float=str, parse_constant=_refuse)
        except (ValueError, RecursionError):
            raise self._unusable("cannot be read", record) from None
        for key in self._keys:
            found = found.get(key) if isinstance(found, dict) else None
        if not isinstance(found, str):
            raise self._unusable(f"has neither a text nor a number at `{self._place}` (shards.value)", record)
        if not 1 <= len(found) <= LONGEST_VALUE or "\0" in found or not _is_utf8(found):
            raise self._unusable(
                f"has at `{self._place}` (shards.value) no text of 1 to {LONGEST_VALUE} characters without NUL", record
            )
        return found

    def _unusable(self, why: str, record: bytes) -> ShardsUnusable:
        return ShardsUnusable(f"shards.source: a record {why}: {shown_token(record)}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _is_utf8(text: Any) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
