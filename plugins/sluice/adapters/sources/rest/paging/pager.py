"""The declaration of a source in; what pages through its answers out."""

from typing import Protocol

from pydantic import JsonValue

from sluice.adapters.sources.rest.paging.cursors import CursorPager
from sluice.adapters.sources.rest.paging.keysets import KeysetPager
from sluice.adapters.sources.rest.paging.links import LinkPager
from sluice.adapters.sources.rest.paging.offsets import OffsetPager
from sluice.adapters.sources.rest.paging.page_numbers import PageNumberPager, SinglePager
from sluice.adapters.sources.rest.reading import Reading
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.model.source import RestSource


class Pager(Protocol):
    """A way of paging. It remembers nothing: all there is to know stands in the cursor, which is what a shard keeps."""

    def request(self, first: Request, cursor: JsonValue) -> Request:
        """Return the request for the page behind a cursor, `first` being that for the first one (its cursor is None).

        Raises `AnswerUnusable` for a cursor that another way of paging has stored.
        """

    def after(self, cursor: JsonValue, reading: Reading) -> JsonValue:
        """Return the cursor behind the page that was read; None: nothing follows. Raises a kind of `AnswerUnusable`."""

    def guess(self, cursor: JsonValue) -> JsonValue:
        """Return the cursor that most likely follows this one; None if only the answer can tell."""


def pager_of(source: RestSource, endpoint: Endpoint) -> Pager:
    """Return what the spec declares."""
    paging = source.cursor
    pager: Pager
    match paging.kind:
        case "body":
            pager = CursorPager(paging, endpoint)
        case "header" if paging.parameter is not None:
            pager = CursorPager(paging, endpoint)
        case "next_url" | "link" | "header":
            pager = LinkPager(paging, source.auth, endpoint)
        case "page":
            pager = PageNumberPager(paging, endpoint)
        case "offset":
            pager = OffsetPager(paging, endpoint)
        case "keyset":
            pager = KeysetPager(paging, endpoint)
        case "none":
            pager = SinglePager()
    return pager
