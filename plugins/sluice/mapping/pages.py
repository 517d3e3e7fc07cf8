"""One page as it came in; its records out, each as its raw bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Raw

from sluice.errors import AnswerNotJson, RecordsMissing
from sluice.mapping import tokens
from sluice.mapping.tokens import Unbalanced
from sluice.mapping.utf8 import is_utf8

_NUL: Final = rb"\u0000"
_NULL: Final = b"null"
_WHOLE: Final = msgspec.json.Decoder(Raw)


@dataclass(frozen=True)
class RecordPage:
    """The records of one page, and the places of those that are not what they should be."""

    records: Sequence[Raw]
    dubious: frozenset[int] = frozenset()
    """Perhaps with a NUL in some text: to be read with care."""
    body: bytes = field(default=b"", repr=False, compare=False)
    """The page, where it was taken apart without a look at its texts."""
    malformed: frozenset[int] = frozenset()
    """Not JSON, as far as has been looked."""

    @cached_property
    def damaged(self) -> frozenset[int]:
        """Not JSON, or not UTF-8: to be rejected. It takes a look at every byte."""
        return self.damaged_among(range(len(self.records)))

    def damaged_among(self, places: Sequence[int]) -> frozenset[int]:
        """Return which of some records are damaged, with a look at the texts of no others."""
        malformed = self.malformed.intersection(places)
        texts = self.body if len(places) == len(self.records) else b"\n".join([self.records[place] for place in places])
        if is_utf8(texts):
            return malformed
        return malformed.union(place for place in places if not is_utf8(bytes(self.records[place])))


class PageSplitter:
    """Splits pages at the path where the spec says the records stand."""

    def __init__(self, records: str) -> None:
        self._path = tuple(records.split(".")) if records else ()
        self._place = records or "its root"
        kind: Any = list[Raw] | None if self._path else list[Raw]
        for key in reversed(self._path):
            kind = msgspec.defstruct("Level", [("below", kind)], rename={"below": key})
        self._decoder = msgspec.json.Decoder(kind)

    def split(self, page: bytes) -> RecordPage:
        """Return the records of a page; null in the place of the list is none.

        Raises `AnswerNotJson` if the page cannot be taken apart, `RecordsMissing` if there is no list where it should be.
        """
        try:
            found = self._decoder.decode(page)
        except (msgspec.MsgspecError, RecursionError):
            return self._split_damaged(page)
        for _ in self._path:
            found = found.below
        found = [] if found is None else found
        return RecordPage(found, _with_nul(page, found), page)

    def _split_damaged(self, page: bytes) -> RecordPage:
        try:
            start = self._list_start(page)
            found = [] if start is None else [Raw(page[begin:end]) for _, begin, end in tokens.items(page, start)]
        except Unbalanced:
            raise AnswerNotJson("the page is cut short or is not JSON") from None
        malformed = _places(found, lambda record: not _is_json(record))
        return RecordPage(found, _with_nul(page, found), malformed=malformed)

    def _list_start(self, page: bytes) -> int | None:
        """Return where the list of records begins, having seen that the page is whole; None if null stands there."""
        if _is_json(page):
            raise RecordsMissing(f"the page has no list at {self._place}")
        if tokens.opens(page) not in (b"{", b"["):
            raise AnswerNotJson("the page is not JSON" if page.strip() else "the page is empty")
        if page[tokens.end(page) :].strip():
            raise AnswerNotJson("something follows behind the end of the page")
        start, stop = 0, len(page)
        for key in self._path:
            inner = tokens.members(page, start).get(key) if tokens.opens(page, start) == b"{" else None
            if inner is None:
                raise RecordsMissing(f"the page has no list at {self._place}")
            start, stop = inner
        if self._path and page[start:stop] == _NULL:
            return None
        if tokens.opens(page, start) != b"[":
            raise RecordsMissing(f"the page has no list at {self._place}")
        return start


def page_of(records: Sequence[bytes], place: str) -> bytes:
    """Return a page that has these records, byte for byte, where the spec says they stand."""
    page = b"[" + b",".join(records) + b"]"
    for key in reversed(place.split(".") if place else []):
        page = b"{" + msgspec.json.encode(key) + b": " + page + b"}"
    return page


def _with_nul(page: bytes, records: Sequence[Raw]) -> frozenset[int]:
    # To look for one sign takes no time; few pages have it.
    return _places(records, lambda record: _NUL in record) if b"\\" in page and _NUL in page else frozenset()


def _places(records: Sequence[Raw], is_meant: Callable[[bytes], bool]) -> frozenset[int]:
    return frozenset(index for index, record in enumerate(records) if is_meant(bytes(record)))


def _is_json(record: bytes) -> bool:
    try:
        _WHOLE.decode(record)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return is_utf8(record)
