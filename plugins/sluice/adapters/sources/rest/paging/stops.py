"""What an answer says about whether more follows: flags and numbers beside the records in; yes, no or nothing out."""

import json
from typing import Final

from sluice.adapters.sources.rest.reading import Reading
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.errors import AnswerUnusable, CursorStuck
from sluice.model import paging

_FLAGS: Final = {"true": True, "false": False, "1": True, "0": False}
_LONGEST_NUMBER: Final = 18

Paging = (
    paging.BodyCursor
    | paging.HeaderCursor
    | paging.NextUrl
    | paging.LinkHeader
    | paging.PageNumber
    | paging.Offset
    | paging.Keyset
)


class StopRules:
    """The rules by which a spec tells the last page."""

    def __init__(self, declared: Paging, endpoint: Endpoint) -> None:
        self._declared = declared
        self._endpoint = endpoint

    def says_more(self, reading: Reading) -> bool | None:
        """Return what the flag says; None: nothing, or there is none. Raises `AnswerUnusable` for what is no flag."""
        found = reading.values.get("cursor.has_more")
        if found is None:
            return None
        flag = _FLAGS.get(found.decode("utf-8", "replace").strip('"').lower())
        if flag is None:
            raise self._unusable(reading, "has_more", found, "true or false")
        return flag

    def number(self, reading: Reading, key: str) -> int | None:
        """Return the number at a place; None if there is none."""
        found = reading.values.get(f"cursor.{key}")
        if found is None:
            return None
        digits = found.decode("utf-8", "replace").strip('"')
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER):
            raise self._unusable(reading, key, found, "a number of records or pages")
        return int(digits)

    def is_short(self, reading: Reading) -> bool:
        """Whether the page is the last, having fewer records than one can have."""
        size = self._declared.size
        return self._declared.short_page_ends and size is not None and len(reading.records) < size

    def text_or_integer(self, reading: Reading, key: str, longest: int) -> str | int | None:
        """Return the cursor at a place; None if it is absent or empty."""
        found = reading.values.get(f"cursor.{key}")
        if found is None:
            return None
        try:
            # Not msgspec, which may turn an integer beyond 64 bits into a float.
            cursor = json.loads(found)
            is_fit = isinstance(cursor, str | int) and not isinstance(cursor, bool) and "\0" not in str(cursor)
            is_fit = is_fit and len(str(cursor).encode()) <= longest
        except (ValueError, RecursionError):
            is_fit = False
        if not is_fit:
            raise self._unusable(
                reading, key, found, f"a text or an integer of at most {longest} characters, or null behind the last page"
            )
        return None if cursor == "" else cursor

    def contradiction(self, reading: Reading, why: str) -> CursorStuck:
        """Return the error for an answer that says that more follows, and not how to get it."""
        return stuck(reading, f"source.cursor.has_more `{self._declared.has_more}` says that more follows, but {why}")

    def _unusable(self, reading: Reading, key: str, found: bytes, expected: str) -> AnswerUnusable:
        place = f"source.cursor.{key} `{getattr(self._declared, key)}`"
        what = f"a cursor is {expected}" if key == "path" else f"it has to be {expected}"
        return AnswerUnusable(
            f"{reading.asked}: at {place} stands {self._endpoint.snippet(found)}, but {what}", url=reading.answer.shown
        )


def stuck(reading: Reading, what: str) -> CursorStuck:
    """Return the error for pages that would never end."""
    return CursorStuck(f"{reading.asked}: {what}", url=reading.answer.shown)
