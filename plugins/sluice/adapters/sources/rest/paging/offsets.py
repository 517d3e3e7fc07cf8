"""Paging by offsets: the offset asked for and the answer in; the next one out, further back where the list has shifted.

An offset counts records of a list that may lose some while it is read: then all others move up, and those at the border would
be missed. So a page is asked for with the last records of the page before in front. If none of the records that came last is
in it, the list has moved up by more than that, or those records have gone: paging goes back, twice as far with each step,
until it meets a record it knows, or the list's beginning. What it reads twice is harmless, as objects have keys.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import xxhash
from msgspec.structs import replace
from pydantic import JsonValue

from sluice.adapters.sources.rest.paging.page_numbers import digest_of, ignored
from sluice.adapters.sources.rest.paging.placing import with_parameter
from sluice.adapters.sources.rest.paging.stops import StopRules, stuck
from sluice.adapters.sources.rest.paging.stored import place_of, stored
from sluice.adapters.sources.rest.reading import Reading
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.model.paging import Offset

_REMEMBERED: Final = 32
"""How many of the last records are known again."""

_REPEATED: Final = 1
"""How often a page may come again: a list may shift by just what a page brings beside its overlap."""

_MOST_STEPS_BACK: Final = 100
"""More of them without coming further than before, and the list changes faster than it can be read."""


class _Place(msgspec.Struct, frozen=True, tag_field="kind", tag="offset", forbid_unknown_fields=True):
    """A page that is to be asked for."""

    offset: int = 0
    overlap: int = 0
    """How many records of the page before come first, if nothing has shifted."""
    tail: tuple[str, ...] = ()
    """The hashes of the records that came last."""
    digest: str = ""
    """That of the records of the last page."""
    repeated: int = 0
    """How often that page has come again in a row."""
    furthest: int = 0
    """How far paging has come."""
    back: int = 0
    """How many steps it has gone back in a row."""
    vain: int = 0
    """How many steps it has gone back without having come further."""
    total: int | None = None
    """How many records there are, as far as the supplier tells."""


_FIRST: Final = _Place()


class OffsetPager:
    """Counts records."""

    def __init__(self, declared: Offset, endpoint: Endpoint) -> None:
        self._declared = declared
        self._rules = StopRules(declared, endpoint)

    def request(self, first: Request, cursor: JsonValue) -> Request:
        """Return the first request with the offset."""
        return with_parameter(first, self._declared.into, self._declared.parameter, place_of(cursor, _FIRST).offset)

    def after(self, cursor: JsonValue, reading: Reading) -> JsonValue:
        """Return the next offset, unless the page has no new record, or a stop rule says that it is the last."""
        place = place_of(cursor, _FIRST)
        hashes = [xxhash.xxh3_64_hexdigest(bytes(record)) for record in reading.records]
        if place.offset and place.overlap and set(place.tail).isdisjoint(hashes):
            return stored(self._further_back(place, reading))
        if self._is_over(place, hashes, reading):
            return None
        return stored(self._further(place, hashes, reading))

    def guess(self, cursor: JsonValue) -> JsonValue:
        """Return the offset behind a full page, unless the supplier has told that there is none."""
        place = place_of(cursor, _FIRST)
        offset = place.offset + self._declared.size - self._declared.overlap
        if place.back or (place.total is not None and place.offset + self._declared.size >= place.total):
            return None
        return stored(_Place(offset, total=place.total))

    def _is_over(self, place: _Place, hashes: Sequence[str], reading: Reading) -> bool:
        more = self._rules.says_more(reading)
        if set(hashes) <= set(place.tail) and len(hashes) <= place.overlap:
            if more:
                raise self._rules.contradiction(reading, "the page has no new record")
            return True
        if more is not None:
            return not more
        total = self._rules.number(reading, "total")
        return (total is not None and place.offset + len(hashes) >= total) or self._rules.is_short(reading)

    def _further(self, place: _Place, hashes: Sequence[str], reading: Reading) -> _Place:
        digest = digest_of(reading)
        repeated = place.repeated + 1 if digest == place.digest and not place.back else 0
        if repeated > (_REPEATED if self._declared.overlap else 0):
            raise stuck(reading, ignored(self._declared.parameter))
        reached = place.offset + len(hashes)
        overlap = min(self._declared.overlap, len(hashes) - 1)
        return _Place(
            reached - overlap,
            overlap,
            (*place.tail, *hashes)[-_REMEMBERED:],
            digest,
            repeated,
            max(reached, place.furthest),
            vain=0 if reached > place.furthest else place.vain,
            total=self._rules.number(reading, "total"),
        )

    def _further_back(self, place: _Place, reading: Reading) -> _Place:
        if place.vain >= _MOST_STEPS_BACK:
            raise stuck(
                reading,
                "none of the records that came last is found again, though paging went back for them "
                f"{_MOST_STEPS_BACK} times: the list changes faster than it is read, or has no fixed order. Ask for it in the "
                "order of something that stays, or page by keyset or cursor",
            )
        offset = max(0, place.offset - self._declared.size * 2**place.back)
        return replace(place, offset=offset, back=place.back + 1, vain=place.vain + 1)
