"""A list of records behind an API of pages, without a network: a way of paging in; what requests are answered with out."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from sluice.adapters.sources.rest.answers import AnswerReader
from sluice.adapters.sources.rest.paging.pager import Pager, pager_of
from sluice.adapters.sources.rest.reading import Reading
from sluice.adapters.sources.transport.client import Answer
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.model.source import RestSource
from sluice.ports import ConnectionInfo

Record = dict[str, Any]
FIRST = Request("/things")
ENDPOINT = Endpoint.of(ConnectionInfo("shop", "http", "http://shop.test", None, None, None, None, {}))


def source_spec(cursor: Mapping[str, Any], **changes: Any) -> RestSource:
    """A source that pages so."""
    declared = {"kind": "rest", "connection": "shop", "path": "/things", "records": "items", "cursor": cursor}
    return RestSource.model_validate(declared | changes)


def pager(cursor: Mapping[str, Any], **changes: Any) -> Pager:
    """What pages so."""
    return pager_of(source_spec(cursor, **changes), ENDPOINT)


def reading(cursor: Mapping[str, Any], body: Any, url: str = "http://shop.test/things", **headers: str) -> Reading:
    """An answer, read."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = Answer(content, "application/json", url, {name.lower(): value for name, value in headers.items()}, url=url)
    return AnswerReader(source_spec(cursor), ENDPOINT).read(answer)


class Listing:
    """Records in an order, which may change between requests; pages of `holds` records at most."""

    def __init__(self, records: Sequence[Record], holds: int, *, is_exclusive: bool = False) -> None:
        self.records = list(records)
        self.holds = holds
        self.is_exclusive = is_exclusive
        self.asked = 0

    def page(self, kind: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the body of an answer."""
        self.asked += 1
        start = self._start(kind, query)
        items = self.records[start : start + self.holds]
        following = start + self.holds if start + self.holds < len(self.records) else None
        pages = -(-len(self.records) // self.holds)
        return {"items": items, "next": following, "more": following is not None, "total": len(self.records), "pages": pages}

    def _start(self, kind: str, query: Mapping[str, str]) -> int:
        match kind:
            case "page":
                return (int(query["page"]) - 1) * self.holds
            case "keyset":
                value = query.get("after")
                before = [r for r in self.records if value is not None and self._is_before(r["at"], float(value))]
                return len(before)
            case _:
                return int(query.get("offset", 0))

    def _is_before(self, at: float, value: float) -> bool:
        return at <= value if self.is_exclusive else at < value


def read_through(
    cursor: Mapping[str, Any],
    listing: Listing,
    *,
    start: JsonValue = None,
    between: Callable[[int], None] = lambda _: None,
    most: int = 500,
) -> list[tuple[list[Record], JsonValue]]:
    """Return the pages with the cursors behind them, having changed something between them; each cursor went through JSON."""
    paging = pager(cursor)
    at = start
    found: list[tuple[list[Record], JsonValue]] = []
    while len(found) < most:
        request = paging.request(FIRST, at)
        body = listing.page(str(cursor["kind"]), request.query)
        following = paging.after(at, reading(cursor, body))
        found.append((body["items"], following))
        if following is None:
            return found
        at = json.loads(json.dumps(following))
        between(len(found))
    raise AssertionError(f"no end after {most} pages")


def latest(pages: Sequence[tuple[list[Record], JsonValue]]) -> dict[Any, Record]:
    """Return each record by its id, as it came last."""
    return {record["id"]: record for page, _ in pages for record in page}
