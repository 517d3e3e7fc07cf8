"""Paging by a cursor that each answer carries, in its body or a header: what was asked with and the answer in; the next out."""

from typing import Final

from pydantic import JsonValue

from sluice.adapters.sources.rest.paging.placing import with_parameter
from sluice.adapters.sources.rest.paging.stops import StopRules
from sluice.adapters.sources.rest.paging.stored import other_paging
from sluice.adapters.sources.rest.reading import Reading
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.errors import AnswerUnusable
from sluice.model.paging import BodyCursor, HeaderCursor

LONGEST_CURSOR: Final = 4096
"""Characters; a cursor travels in every request's address and stands in the shard's row."""


class CursorPager:
    """Follows cursors. What a shard keeps is the cursor itself."""

    def __init__(self, declared: BodyCursor | HeaderCursor, endpoint: Endpoint) -> None:
        self._declared = declared
        self._endpoint = endpoint
        self._rules = StopRules(declared, endpoint)

    def request(self, first: Request, cursor: JsonValue) -> Request:
        """Return the first request with the cursor, which is a text or an integer."""
        parameter = self._declared.parameter
        if parameter is None or cursor is None:
            return first
        if not isinstance(cursor, str | int) or isinstance(cursor, bool):
            raise other_paging(self._declared.kind)
        return with_parameter(first, self._declared.into, parameter, cursor)

    def after(self, cursor: JsonValue, reading: Reading) -> JsonValue:
        """Return the answer's cursor."""
        following = self._found(reading)
        return gone_on(self._rules, cursor, following, reading)

    def guess(self, cursor: JsonValue) -> JsonValue:
        """Return None."""

    def _found(self, reading: Reading) -> str | int | None:
        if self._declared.kind == "body":
            return self._rules.text_or_integer(reading, "path", LONGEST_CURSOR)
        return header_text(self._declared.header, reading)


def header_text(name: str, reading: Reading, longest: int = LONGEST_CURSOR) -> str | None:
    """Return a header of the answer; None if it is absent or empty."""
    text = reading.answer.headers.get(name.lower(), "").strip()
    if len(text) > longest:
        raise AnswerUnusable(
            f"{reading.asked}: the header {name}, which leads to the next page, is longer than {longest} characters",
            url=reading.answer.shown,
        )
    return text or None


def gone_on(rules: StopRules, asked: JsonValue, following: str | int | None, reading: Reading) -> str | int | None:
    """Return the cursor that an answer names, unless another of its signs says that nothing follows.

    A page without records that names the cursor it was asked for is the last one; with records, `CursorStuck` is due.
    """
    more = rules.says_more(reading)
    is_same = following is not None and following == asked
    if more is False or (more is None and rules.is_short(reading)):
        return None
    if following is None or (is_same and not reading.records):
        if more:
            raise rules.contradiction(reading, "there is no new cursor to ask with")
        return None
    return following
