"""Cursors and addresses that answers carry: which one is followed, and what ends a shard."""

from typing import Any

import pytest

from sluice.adapters.sources.rest.paging.links import next_links
from sluice.adapters.sources.rest.paging.pager import pager_of
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.errors import AnswerUnusable, CursorStuck
from sluice.ports import ConnectionInfo
from tests.unit.adapters.sources.rest.paging.listing import FIRST, pager, reading, source_spec

BODY = {"kind": "body", "path": "meta.next", "parameter": "cursor"}
HEADER = {"kind": "header", "header": "X-Next", "parameter": "cursor"}
NEXT_URL = {"kind": "next_url", "path": "meta.next"}
LINK = {"kind": "link"}
HERE = "http://shop.test/v1/things?limit=2&cursor=a"


def body(following: Any = None, items: Any = ("x",), **more: Any) -> dict[str, Any]:
    """An answer."""
    return {"items": items if items is None else list(items), "meta": {"next": following, **more}}


@pytest.mark.parametrize(
    ("declared", "asked", "answer", "headers", "following"),
    [
        (BODY, None, body("b"), {}, "b"),
        (BODY, "a", body(2**70), {}, 2**70),
        (BODY, "a", body(""), {}, None),
        (BODY, "a", body(), {}, None),
        (BODY, "a", {"items": []}, {}, None),
        (BODY, "a", body("b", []), {}, "b"),
        (BODY, "a", body("a", []), {}, None),
        (BODY, "a", body("a", None), {}, None),
        (BODY | {"has_more": "meta.more"}, "a", body("b", more=False), {}, None),
        (BODY | {"has_more": "meta.more"}, "a", body("b", more="false"), {}, None),
        (BODY | {"has_more": "meta.more"}, "a", body("b", more=0), {}, None),
        (BODY | {"has_more": "meta.more"}, "a", body("b", [], more=True), {}, "b"),
        (BODY | {"has_more": "meta.more"}, "a", body("b", more=None), {}, "b"),
        (BODY | {"short_page_ends": True, "size": 2}, "a", body("b"), {}, None),
        (BODY | {"short_page_ends": True, "size": 2}, "a", body("b", "xy"), {}, "b"),
        (BODY | {"short_page_ends": True, "size": 2, "has_more": "meta.more"}, "a", body("b", more=True), {}, "b"),
        (HEADER, "a", body(), {"X-Next": " b "}, "b"),
        (HEADER, "a", body(), {"X-Next": ""}, None),
        (HEADER, "a", body(), {}, None),
        (HEADER, "a", body(items=[]), {"X-Next": "a"}, None),
        (NEXT_URL, None, body("http://shop.test/v1/things?page=2#here"), {}, {"url": "http://shop.test/v1/things?page=2"}),
        (NEXT_URL, None, body("?page=2"), {}, {"url": "http://shop.test/v1/things?page=2"}),
        (NEXT_URL, None, body("/v2/things"), {}, {"url": "http://shop.test/v2/things"}),
        (NEXT_URL, None, body("other"), {}, {"url": "http://shop.test/v1/other"}),
        (NEXT_URL, None, body(), {}, None),
        (NEXT_URL, {"url": HERE}, body(HERE, []), {}, None),
        (
            LINK,
            None,
            body(),
            {"Link": '<?page=2>; rel="next", <?page=9>; rel=last'},
            {"url": "http://shop.test/v1/things?page=2"},
        ),
        (LINK, None, body(), {"Link": '<?page=9>; rel="last"'}, None),
        (LINK, None, body(), {}, None),
        (
            HEADER | {"parameter": None},
            None,
            body(),
            {"X-Next": "/v1/things?token=b"},
            {"url": "http://shop.test/v1/things?token=b"},
        ),
    ],
)
def test_where_it_goes_on(
    declared: dict[str, Any], asked: Any, answer: dict[str, Any], headers: dict[str, str], following: Any
) -> None:
    """What is absent, null or empty ends the shard, and so does an empty page that leads to itself."""
    assert pager(declared).after(asked, reading(declared, answer, HERE, **headers)) == following


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (body(more=True), CursorStuck, "says that more follows, but there is no new cursor"),
        (body("a", [], more=True), CursorStuck, "says that more follows, but there is no new cursor"),
        (body("b", more="perhaps"), AnswerUnusable, r"source\.cursor\.has_more `meta\.more` stands .*true or false"),
    ],
)
def test_a_flag_that_cannot_be_right(answer: dict[str, Any], error: type[Exception], message: str) -> None:
    """A supplier who says that more follows, but not how to get it, is told apart from one that is done."""
    declared = BODY | {"has_more": "meta.more"}
    with pytest.raises(error, match=message):
        pager(declared).after("a", reading(declared, answer))


@pytest.mark.parametrize(
    ("header", "targets"),
    [
        ('<a>; rel="next"', ["a"]),
        ("<a>;rel=next", ["a"]),
        ('<a>; title="x, <b>; rel=next"; REL = "prev Next"', ["a"]),
        ('<a,b;c>; rel="next"', ["a,b;c"]),
        ("< a >; rel=next; flag; x=", ["a"]),
        ('<a>; rel="prev", <b>; rel="next", <c>; rel=next', ["b", "c"]),
        ('<a>; rel="next"; anchor="/other"', []),
        ('<a>; rel="nextish"', []),
        ("<a>; rel=prev; rel=next", []),
        ('<a>; title="\\"; rel=next', ["a"]),
        ("next", []),
        ("", []),
        ("<" * 3000 + ";" * 3000, []),
        ("<a>" + "; " * 20000 + '"', []),
    ],
)
def test_link_headers(header: str, targets: list[str]) -> None:
    """The targets of the relation `next`, whatever stands between, in the way of RFC 8288."""
    assert list(next_links(header)) == targets


@pytest.mark.parametrize("number", [0, 17, 2**70])
def test_a_number_is_no_address(number: int) -> None:
    """It is a cursor, so another kind of paging is named; read as an address it would lead somewhere beside the list."""
    with pytest.raises(AnswerUnusable, match=rf"`meta\.next` stands the number {number}, which is no address: .*kind: body"):
        pager(NEXT_URL).after(None, reading(NEXT_URL, body(number)))


def test_a_supplier_behind_a_proxy_is_asked_as_before() -> None:
    """A next link to the declared host by http, where it is asked by https, is followed by https."""
    endpoint = Endpoint.of(ConnectionInfo("shop", "http", "https://shop.test", None, None, None, None, {}))
    paging = pager_of(source_spec(NEXT_URL), endpoint)
    answer = reading(NEXT_URL, body("http://shop.test/v1/things?page=2"), "https://shop.test/v1/things")
    assert paging.after(None, answer) == {"url": "https://shop.test/v1/things?page=2"}


def test_a_key_in_the_address_is_not_kept() -> None:
    """A supplier that repeats the API key in its links does not bring it into the shard's row; the rest stays as spelt."""
    auth = {"auth": {"kind": "api_key", "query": "api key"}}
    answer = reading(NEXT_URL, body("/things?api%20key=canary&q=%7Ea+b&api+key=canary&page=2"))
    assert pager(NEXT_URL, **auth).after(None, answer) == {"url": "http://shop.test/things?q=%7Ea+b&page=2"}


def test_requests() -> None:
    """A cursor is a parameter, of the query or the body, where a number stays one; an address takes the place of all."""
    post = {"method": "POST", "body": {"page": {"size": 5}}}
    first = Request("/things", method="POST", body={"page": {"size": 5}})
    paging = pager(BODY | {"into": "body", "parameter": "page.after"}, **post)
    assert paging.request(first, None) == first
    assert paging.request(first, 17).body == {"page": {"size": 5, "after": 17}}
    assert paging.request(first, "17").body == {"page": {"size": 5, "after": "17"}}
    assert pager(BODY).request(Request("/things", query={"q": "x"}), 17).query == {"q": "x", "cursor": "17"}
    assert pager(LINK).request(FIRST, {"url": HERE}).url == HERE


@pytest.mark.parametrize("declared", [HEADER, LINK])
def test_what_is_too_long_to_keep(declared: dict[str, Any]) -> None:
    """A cursor of megabytes is no cursor."""
    headers = {"X-Next": "x" * 5000, "Link": f"<{'x' * 50_000}>; rel=next"}
    with pytest.raises(AnswerUnusable, match="longer than"):
        pager(declared).after(None, reading(declared, body(), HERE, **headers))
