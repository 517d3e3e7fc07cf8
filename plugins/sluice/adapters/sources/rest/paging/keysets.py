"""Paging by the value of a field that answers are ordered by: the value asked with and the answer in; the next one out.

A supplier that takes the value as inclusive repeats the last record. One that takes it as exclusive does not, and leaves out
the other records of the same value that did not fit on the page. So where a page is followed by one that does not begin with
its last value, the value before that is asked with: it brings whatever was left out, and shows which kind of supplier it is.
An exclusive one is asked with the value before the last from then on. How many records were asked for proves nothing, as many
suppliers give fewer: a page is known to have been full if something follows it.
"""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec
import xxhash
from msgspec import UNSET, Raw
from msgspec.structs import replace
from pydantic import JsonValue

from sluice.adapters.sources.rest.levels import at, level, planted
from sluice.adapters.sources.rest.paging.cursors import LONGEST_CURSOR
from sluice.adapters.sources.rest.paging.page_numbers import digest_of
from sluice.adapters.sources.rest.paging.placing import with_parameter
from sluice.adapters.sources.rest.paging.stops import StopRules, stuck
from sluice.adapters.sources.rest.paging.stored import place_of, stored
from sluice.adapters.sources.rest.reading import Reading
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.errors import AnswerUnusable
from sluice.model.paging import Keyset

_VALUES: Final = b'"-0123456789'
"""What a text or a number begins with."""

_VALUES_KNOWN: Final = 2
"""Of the last page: its last value, and the one before it."""


_MOST_KNOWN: Final = 4_000
"""Records of a page that have one of these values: a hash of each stands in the shard's row."""


class _Place(msgspec.Struct, frozen=True, tag_field="kind", tag="keyset", forbid_unknown_fields=True):
    """A page that is to be asked for. Values are kept as the supplier spelt them in JSON."""

    high: str = ""
    """The value of the last record; empty: there was none."""
    low: str = ""
    """The last value before it; empty: there was none."""
    asks_low: bool = False
    """Whether the page is asked for with `low`."""
    is_checked: bool = False
    """Whether it is sure that no record of the value `high` was left out."""
    known: tuple[str, ...] = ()
    """The hashes of the last page's records that have one of the two values."""
    digest: str = ""
    """That of the records of the last page."""
    records: int = 0
    """Of the last page."""
    holds: int = 0
    """How many records make a full page: as many as declared, or as those had that something followed."""

    @property
    def value(self) -> str:
        return self.low if self.asks_low else self.high


class KeysetPager:
    """Goes on behind the last record's value."""

    def __init__(self, declared: Keyset, endpoint: Endpoint) -> None:
        self._declared = declared
        self._endpoint = endpoint
        self._rules = StopRules(declared, endpoint)
        self._path = tuple(declared.field.split("."))
        tree: dict[str, Any] = {}
        planted(tree, self._path, Raw)
        self._decoder = msgspec.json.Decoder(level(tree))

    def request(self, first: Request, cursor: JsonValue) -> Request:
        """Return the first request with the value."""
        value = self._place(cursor).value
        if not value:
            return first
        return with_parameter(first, self._declared.into, self._declared.parameter, self._sent(value))

    def after(self, cursor: JsonValue, reading: Reading) -> JsonValue:
        """Return the value to go on with, unless nothing new has come, or a stop rule says that the page is the last."""
        place = self._place(cursor)
        following = self._following(place, [xxhash.xxh3_64_hexdigest(bytes(record)) for record in reading.records], reading)
        return None if following is None else stored(following)

    def guess(self, cursor: JsonValue) -> JsonValue:
        """Return None."""

    def _place(self, cursor: JsonValue) -> _Place:
        return place_of(cursor, _Place(holds=self._declared.size))

    def _following(self, place: _Place, hashes: Sequence[str], reading: Reading) -> _Place | None:
        more = self._rules.says_more(reading)
        begins = self._value_of(reading.records[0]) if reading.records else ""
        is_full = len(hashes) >= place.holds
        is_new = not set(hashes) <= set(place.known)
        if is_new and place.high and not place.asks_low:
            place = replace(place, holds=place.records)
        if self._may_miss(place, begins, reading):
            return replace(place, asks_low=True)
        if is_full and (not is_new or (digest_of(reading) == place.digest and not place.asks_low)):
            if place.asks_low and begins == place.low:
                return replace(place, asks_low=False, is_checked=True)
            raise self._stuck(reading, place)
        if not is_new:
            if more:
                raise self._rules.contradiction(reading, "the page has no new record")
            return None
        if more is False or (more is None and self._rules.is_short(reading)):
            return None
        return self._gone_on(place, begins, hashes, reading)

    def _may_miss(self, place: _Place, begins: str, reading: Reading) -> bool:
        """Whether records of the last value may have been left out: none of them comes again, and it shows to ask for them."""
        if place.asks_low or place.is_checked or begins == place.high:
            return False
        return bool(place.low or (place.high and reading.records))

    def _gone_on(self, place: _Place, begins: str, hashes: Sequence[str], reading: Reading) -> _Place:
        values = list(self._values_from_the_end(reading))
        if len(values) > _MOST_KNOWN:
            raise self._too_many_ties(len(values), reading)
        high = values[0] if values else ""
        low = next((value for value in values if value != high), place.low if high == place.high else place.high)
        return _Place(
            high=high,
            low=low,
            asks_low=place.asks_low and begins != place.low,  # such a supplier is exclusive
            known=tuple(hashes[-len(values) :]),
            digest=digest_of(reading),
            records=len(hashes),
            holds=max(place.holds, len(hashes)),
        )

    def _values_from_the_end(self, reading: Reading) -> Iterator[str]:
        """Yield the values of the last records, from the end on, as long as there are no more than two different ones."""
        seen: set[str] = set()
        for record in reversed(reading.records):
            value = self._value_of(record)
            if not value and not seen:
                raise self._no_value(record, reading)
            seen.add(value)
            if not value or len(seen) > _VALUES_KNOWN:
                return
            yield value

    def _value_of(self, record: Raw) -> str:
        """Return the value of a record as it is spelt; empty if it has none that can be asked with."""
        try:
            found = at(self._decoder.decode(record), self._path)
        except (msgspec.MsgspecError, RecursionError):
            return ""
        if found is UNSET or found is None:
            return ""
        token = bytes(found)
        is_fit = token[:1] in _VALUES and len(token) <= LONGEST_CURSOR and rb"\u0000" not in token
        return token.decode("utf-8", "replace") if is_fit else ""

    def _sent(self, value: str) -> str | int | float:
        """Return a value as a parameter: a text as such, a number by its digits."""
        if value.startswith('"'):
            return str(json.loads(value))
        if self._declared.into == "query":
            return value
        number: int | float = json.loads(value)
        if Decimal(value) != Decimal(str(number)):
            raise AnswerUnusable(
                f"the value {value} at source.cursor.field `{self._declared.field}` has more digits than a body can say: "
                "send it in the query"
            )
        return number

    def _stuck(self, reading: Reading, place: _Place) -> Exception:
        shown = self._endpoint.snippet(place.value or "nothing")
        return stuck(
            reading,
            f"a full page behind the value {shown} of `{self._declared.field}` brings nothing new: either more records have "
            "that value than a page holds, then raise source.cursor.size, or the supplier ignores "
            f"{self._declared.parameter!r} (source.cursor.parameter)",
        )

    def _too_many_ties(self, number: int, reading: Reading) -> Exception:
        return stuck(
            reading,
            f"the last {number:,} records of the page have no more than two values of `{self._declared.field}`, and a cursor "
            f"knows {_MOST_KNOWN:,} at most: let source.cursor.field be one that fewer records share a value of, or lower "
            "source.cursor.size, if it is larger than that",
        )

    def _no_value(self, record: Raw, reading: Reading) -> AnswerUnusable:
        return AnswerUnusable(
            f"{reading.asked}: at source.cursor.field `{self._declared.field}` of the last record stands no text or number to "
            f"go on from; the record begins: {self._endpoint.snippet(bytes(record))}",
            url=reading.answer.shown,
        )
