"""Ways of paging against a real HTTP server: pages at the same time, links, limits."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import count, repeat
from typing import Any
from urllib.parse import unquote

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import CursorExpired, CursorStuck, PaginationLimit, StrayAddress, SupplierRefused
from sluice.guard.breaker import is_failure
from sluice.model.source import RestSource as RestSpec
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import Page, PageRequest, Source
from tests.support.answering_supplier import AnsweringSupplier, Reply, answering
from tests.support.restraints import lone_source

POLICY = StagePolicy(retry=RetryPolicy(attempts=3, base=timedelta(milliseconds=1), cap=timedelta(milliseconds=2)))


def source(supplier: AnsweringSupplier, cursor: Mapping[str, Any], **changes: Any) -> Source:
    """The supplier as a source that pages so."""
    declared = {"kind": "rest", "connection": "shop", "path": "/v1/things", "records": "items", "cursor": cursor} | changes
    return lone_source(RestSpec.model_validate(declared), supplier.connection, POLICY)


def asking(cursor: Any = None) -> PageRequest:
    """A request for all pages behind a cursor."""
    return PageRequest(shard={}, cursor=cursor, watermark=None, window_start=None, window_end=None)


def pages_of(supplier: AnsweringSupplier, cursor: Mapping[str, Any], **changes: Any) -> list[Page]:
    """All pages of a supplier."""
    return list(source(supplier, cursor, **changes).pages(asking()))


def numbered(last: int, **more: Any) -> Any:
    """Answer with one thing on each page up to the last, and with nothing behind it."""

    def respond(_: str, query: dict[str, str]) -> Reply:
        number = int(query["page"])
        return Reply({"items": [{"id": number}] if number <= last else [], **more})

    return respond


def test_pages_are_asked_for_at_the_same_time_and_come_in_order() -> None:
    """Behind the first, three are under way at once; they come in order, and the last is asked for last."""
    together = threading.Barrier(3)

    def respond(path: str, query: dict[str, str]) -> Reply:
        if query["page"] in "234":
            together.wait(20)
        return numbered(7, pages=7)(path, query)

    with answering(respond) as supplier:
        pages = pages_of(supplier, {"kind": "page", "pages": "pages", "at_once": 3})
        assert sorted(supplier.asked) == [f"/v1/things?page={number}" for number in (*range(1, 8), 7)]
    assert [page.body for page in pages] == [b'{"items": [{"id": %d}], "pages": 7}' % number for number in range(1, 8)]
    assert pages[-1].cursor is None


def test_a_fault_comes_at_its_own_page() -> None:
    """Whatever is under way beside it, the good pages before it come first, and the shard goes on from there."""

    def respond(path: str, query: dict[str, str]) -> Reply:
        return Reply({"error": "no"}, 403) if query["page"] == "4" else numbered(7)(path, query)

    with answering(respond) as supplier:
        came: list[Page] = []
        pages = source(supplier, {"kind": "page", "at_once": 4}).pages(asking())
        while len(came) < 3:
            came.append(next(pages))
        with pytest.raises(SupplierRefused, match="403"):
            next(pages)
        supplier.respond = numbered(7)
        rest = list(source(supplier, {"kind": "page", "at_once": 4}).pages(asking(came[-1].cursor)))
    assert [page.records for page in rest] == [1, 1, 1, 1, 0]


def test_what_moves_to_an_end_that_was_asked_for_ahead() -> None:
    """D moves from page 2 to the end while page 3, the last, has come already: it is not lost between the two."""
    records = [{"id": name, "at": 1} for name in "ABCDEF"]
    end_came = threading.Event()

    def respond(_: str, query: dict[str, str]) -> Reply:
        offset = int(query["offset"])
        if offset == 2:
            assert end_came.wait(20)
            records.append(records.pop(3) | {"at": 2})
        found = Reply({"items": records[offset : offset + 3]})
        if offset == 4:
            end_came.set()
        return found

    with answering(respond) as supplier:
        pages = pages_of(supplier, {"kind": "offset", "size": 3, "at_once": 3})
    assert b'{"id": "D", "at": 2}' in b"".join(page.body for page in pages)
    assert all(b'"id": "%c"' % name in b"".join(page.body for page in pages) for name in b"ABCDEF")


def test_what_lies_behind_the_end_does_no_harm() -> None:
    """Pages asked for ahead, behind the last one, may be refused: nobody wanted them."""

    def respond(path: str, query: dict[str, str]) -> Reply:
        return Reply({"detail": "Invalid page."}, 404) if int(query["page"]) > 4 else numbered(3)(path, query)

    with answering(respond) as supplier:
        assert [page.records for page in pages_of(supplier, {"kind": "page", "at_once": 8})] == [1, 1, 1, 0]


def test_offsets_ahead_are_given_up_where_pages_are_smaller() -> None:
    """A supplier that gives less than asked for is asked again from where it stopped, so that nothing is left out."""

    def respond(_: str, query: dict[str, str]) -> Reply:
        offset = int(query["offset"])
        return Reply({"items": [{"id": number} for number in range(20)][offset : offset + 3]})

    with answering(respond) as supplier:
        pages = pages_of(supplier, {"kind": "offset", "size": 5, "at_once": 4, "size_parameter": "limit"})
        assert all("limit=5" in asked for asked in supplier.asked)
    assert {number for page in pages for number in range(20) if b'"id": %d}' % number in page.body} == set(range(20))


def test_a_reader_who_stops_leaves_nothing_behind() -> None:
    """Who wants no more pages closes what is under way: no thread of it is left."""
    with answering(numbered(9)) as supplier:
        pages = source(supplier, {"kind": "page", "at_once": 4}).pages(asking())
        assert [next(pages).records, next(pages).records] == [1, 1]
        pages.close()  # type: ignore[attr-defined]  # a generator
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sluice-pages")]


@pytest.mark.parametrize("kind", ["next_url", "link", "header"])
def test_links_are_followed_wherever_they_stand(kind: str) -> None:
    """Relative or whole, in the body or a header, a next address is followed as it is."""
    addresses = {"1": "?page=2&q=a%20b", "2": "{base}/v1/things?page=3", "3": None}

    def respond(_: str, query: dict[str, str]) -> Reply:
        page = query.get("page", "1")
        following = addresses[page]
        whole = None if following is None else following.format(base=supplier.address)
        headers = {"link": {"Link": f'<{whole}>; rel="next"'}, "header": {"X-Next": str(whole)}}.get(kind, {})
        return Reply({"items": [{"id": page}], "next": whole}, headers=headers if whole else {})

    with answering(respond) as supplier:
        cursor = {"next_url": {"path": "next"}, "link": {}, "header": {"header": "X-Next"}}[kind]
        pages = pages_of(supplier, {"kind": kind, **cursor}, query={"q": "a b"})
        assert supplier.asked == ["/v1/things?q=a%20b", "/v1/things?page=2&q=a%20b", "/v1/things?page=3"]
        again = source(supplier, {"kind": kind, **cursor}).pages(asking(pages[1].cursor))
        assert [page.body for page in again] == [pages[2].body]


def test_a_relative_link_starts_from_where_a_redirect_led() -> None:
    """An answer that came from another path of the host has its links seen from there."""

    def respond(path: str, query: dict[str, str]) -> Reply:
        if path == "/v1/things":
            return Reply({}, 302, {"Location": "/v2/eu/things"})
        return Reply({"items": [1], "next": None if "page" in query else "./more?page=2"})

    with answering(respond) as supplier:
        pages_of(supplier, {"kind": "next_url", "path": "next"})
        assert supplier.asked == ["/v1/things", "/v2/eu/things", "/v2/eu/more?page=2"]


def test_a_link_to_another_host_is_not_followed() -> None:
    """The page that has it comes; then the error names the host, and the key that would allow it."""

    def respond(_: str, __: dict[str, str]) -> Reply:
        return Reply({"items": [1], "next": "http://evil.example/things?page=2"})

    with answering(respond) as supplier:
        pages = source(supplier, {"kind": "next_url", "path": "next"}).pages(asking())
        assert next(pages).records == 1
        with pytest.raises(StrayAddress, match=r"evil\.example.*source\.allow_hosts"):
            next(pages)


def test_a_link_that_leads_to_itself() -> None:
    """A next address that was followed before is named before its page is delivered."""
    with (
        answering(lambda _, __: Reply({"items": [1], "next": "?page=2"})) as supplier,
        pytest.raises(CursorStuck, match=r"source\.cursor\.path `next`\) is the one that was asked for"),
    ):
        pages_of(supplier, {"kind": "next_url", "path": "next"})


SEALED: dict[str, tuple[dict[str, Any], str]] = {
    "body": ({"path": "next", "parameter": "cursor"}, r"source\.cursor\.parameter `cursor`"),
    "header": ({"kind": "header", "header": "X-Next", "parameter": "cursor"}, r"source\.cursor\.parameter `cursor`"),
    "next_url": ({"kind": "next_url", "path": "url"}, r"source\.cursor\.kind: next_url"),
    "link": ({"kind": "link"}, r"source\.cursor\.kind: link"),
}


def sealed(items: Iterator[list[int]]) -> Callable[[str, dict[str, str]], Reply]:
    """Answer with one page after the other, each with a cursor that has never been before."""
    numbers = count()

    def respond(_: str, __: dict[str, str]) -> Reply:
        token = f"sealed-{next(numbers)}"
        url = f"?cursor={token}"
        return Reply(
            {"items": next(items), "next": token, "url": url}, headers={"X-Next": token, "Link": f'<{url}>; rel="next"'}
        )

    return respond


@pytest.mark.parametrize("way", sorted(SEALED))
def test_cursors_that_are_always_new_hide_no_supplier_that_ignores_them(way: str) -> None:
    """A page that comes a fourth time is named instead of delivered, though its cursor was never there before."""
    cursor, message = SEALED[way]
    with answering(sealed(repeat([1, 2]))) as supplier:
        pages = source(supplier, cursor).pages(asking())
        assert [next(pages).records for _ in range(3)] == [2, 2, 2]
        with pytest.raises(CursorStuck, match=message):
            next(pages)


def test_pages_that_come_again_now_and_then_or_are_empty_are_no_circle() -> None:
    """A list that moves may bring a page again, and filters may leave many pages without a record."""
    came = [[1], [1], [1], [2], [1], [], [], [], [], [], [3]]
    with answering(sealed(iter(came))) as supplier:
        pages = source(supplier, {"path": "next", "parameter": "cursor"}).pages(asking())
        assert [next(pages).records for _ in came] == [len(items) for items in came]


@pytest.mark.parametrize(
    ("status", "body"), [(400, {"error": "offset must be at most 10000"}), (429, {"error": "pagination limit"})]
)
def test_a_limit_of_pagination_is_no_reason_to_wait(status: int, body: Any) -> None:
    """However it is told, it is asked for once and named, with what to do; the breaker takes the supplier for well."""

    def respond(_: str, query: dict[str, str]) -> Reply:
        offset = int(query["offset"])
        return Reply({"items": list(range(offset, offset + 2))}) if offset < 4 else Reply(body, status)

    with answering(respond) as supplier, capture_logs() as logs:
        pages = source(supplier, {"kind": "offset", "size": 2, "overlap": 0}).pages(asking())
        assert [next(pages).records, next(pages).records] == [2, 2]
        with pytest.raises(PaginationLimit, match="cut the sync into smaller shards") as caught:
            next(pages)
        assert len(supplier.asked) == 3
    assert not is_failure(caught.value)
    assert [entry for entry in logs if entry["event"] == log_events.CALL_RETRIED] == []


def test_the_first_page_has_no_limit_of_pagination() -> None:
    """A 429 at offset 0 is a wish to pause, whatever its words: it is tried again."""
    replies = [Reply({"error": "pagination limit"}, 429, {"Retry-After": "0"}), Reply({"items": []})]
    with answering(lambda _, __: replies.pop(0)) as supplier:
        assert [page.records for page in pages_of(supplier, {"kind": "offset", "size": 2})] == [0]


def test_an_expired_cursor_is_named() -> None:
    """410 behind the first page is about the cursor; on the first page it is about the address."""

    def respond(_: str, query: dict[str, str]) -> Reply:
        return Reply({}, 410) if "cursor" in query else Reply({"items": [1], "next": "b"})

    declared = {"kind": "body", "path": "next", "parameter": "cursor"}
    with answering(respond) as supplier:
        with pytest.raises(CursorExpired):
            pages_of(supplier, declared)
        supplier.respond = lambda _, __: Reply({}, 410)
        with pytest.raises(SupplierRefused) as caught:
            pages_of(supplier, declared)
    assert type(caught.value) is SupplierRefused


def test_a_keyset_begins_where_the_spec_says() -> None:
    """The first page is asked for from the watermark on, the next ones from the last value; `+` and all arrive as they are."""
    days = ["2024-05-01T00:00:00+02:00", "2024-05-02T00:00:00+02:00", "2024-05-03T00:00:00+02:00"]

    def respond(_: str, query: dict[str, str]) -> Reply:
        return Reply({"items": [{"at": day} for day in days if day >= query["since"]][:2]})

    with answering(respond) as supplier:
        cursor = {"kind": "keyset", "size": 2, "field": "at", "parameter": "since"}
        reading = source(supplier, cursor, query={"since": "{{ watermark }}"}, watermark="at")
        list(reading.pages(replace(asking(), watermark=days[0])))
        began = [asked.partition("since=")[2] for asked in supplier.asked]
    assert [unquote(value) for value in began] == days


def test_paging_by_the_body_of_a_post() -> None:
    """Cursor and size go into the places of the body that the spec names."""

    def respond(_: str, __: dict[str, str]) -> Reply:
        after = supplier.bodies[-1]["page"].get("after")
        return Reply({"items": [after], "next": None if after == 7 else 7})

    cursor = {"path": "next", "parameter": "page.after", "into": "body", "size": 50, "size_parameter": "page.size"}
    with answering(respond) as supplier:
        pages_of(supplier, {"kind": "body", **cursor}, method="POST", body={"q": "x"})
        assert supplier.bodies == [
            {"q": "x", "page": {"size": 50}},
            {"q": "x", "page": {"size": 50, "after": 7}},
        ]
