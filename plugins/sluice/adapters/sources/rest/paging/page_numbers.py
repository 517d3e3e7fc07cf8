"""Paging by page numbers, and none at all: the number asked for and the answer in; the next number out."""

from typing import Final

import msgspec
import xxhash
from pydantic import JsonValue

from sluice.adapters.sources.rest.paging.placing import with_parameter
from sluice.adapters.sources.rest.paging.stops import StopRules, stuck
from sluice.adapters.sources.rest.paging.stored import other_paging, place_of, stored
from sluice.adapters.sources.rest.reading import Reading
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.model.paging import PageNumber

_CLAMPED: Final = (
    "the page has the records of the one before: the supplier gives its last page for every number behind it. Say where it "
    "tells the end: source.cursor.pages, total or has_more; or declare size and short_page_ends"
)


class _Place(msgspec.Struct, frozen=True, tag_field="kind", tag="page", forbid_unknown_fields=True):
    """A page that is to be asked for."""

    number: int
    seen: int = 0
    """The records of the pages before."""
    digest: str = ""
    """That of the records of the last page."""
    last: int | None = None
    """The number of the last page, as far as the supplier tells."""


class PageNumberPager:
    """Counts pages."""

    def __init__(self, declared: PageNumber, endpoint: Endpoint) -> None:
        self._declared = declared
        self._rules = StopRules(declared, endpoint)

    def request(self, first: Request, cursor: JsonValue) -> Request:
        """Return the first request with the number."""
        return with_parameter(first, self._declared.into, self._declared.parameter, self._place(cursor).number)

    def after(self, cursor: JsonValue, reading: Reading) -> JsonValue:
        """Return the next number, unless the page has no record, or a stop rule says that it is the last."""
        place = self._place(cursor)
        more = self._rules.says_more(reading)
        if not reading.records:
            if more:
                raise self._rules.contradiction(reading, "the page has no record")
            return None
        digest = digest_of(reading)
        if digest == place.digest:
            raise stuck(reading, ignored(self._declared.parameter) if place.number == self._declared.first + 1 else _CLAMPED)
        seen = place.seen + len(reading.records)
        last = self._last(reading)
        if more is False or (more is None and self._is_over(place.number, seen, reading)):
            return None
        return stored(_Place(place.number + 1, seen, digest, last))

    def guess(self, cursor: JsonValue) -> JsonValue:
        """Return the next number, unless the supplier has told that there is none."""
        place = self._place(cursor)
        if place.last is not None and place.number >= place.last:
            return None
        return stored(_Place(place.number + 1, last=place.last))

    def _place(self, cursor: JsonValue) -> _Place:
        return place_of(cursor, _Place(self._declared.first))

    def _is_over(self, number: int, seen: int, reading: Reading) -> bool:
        pages, total = self._rules.number(reading, "pages"), self._rules.number(reading, "total")
        if pages is not None and number - self._declared.first + 1 >= pages:
            return True
        return (total is not None and seen >= total) or self._rules.is_short(reading)

    def _last(self, reading: Reading) -> int | None:
        pages, total = self._rules.number(reading, "pages"), self._rules.number(reading, "total")
        if pages is None and total is not None and self._declared.size is not None:
            pages = -(-total // self._declared.size)
        return None if pages is None else self._declared.first + pages - 1


class SinglePager:
    """Asks once."""

    def request(self, first: Request, cursor: JsonValue) -> Request:
        """Return the first request: whatever goes on from somewhere was not stored here."""
        if cursor is not None:
            raise other_paging("none")
        return first

    def after(self, cursor: JsonValue, reading: Reading) -> JsonValue:
        """Return None."""

    def guess(self, cursor: JsonValue) -> JsonValue:
        """Return None."""


def digest_of(reading: Reading) -> str:
    """Return a digest of the records."""
    return xxhash.xxh3_64_hexdigest(b"\0".join(reading.records))


def ignored(parameter: str) -> str:
    """Return what is wrong with a supplier who gives the same page twice."""
    return f"the page has the records of the one before: the supplier ignores {parameter!r} (source.cursor.parameter)"
