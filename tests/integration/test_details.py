"""Records that are listed first and fetched one by one, from a real HTTP server."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from sluice import log_events
from sluice.adapters.sources.rest.details import Details
from sluice.adapters.sources.rest.source import RestSource
from sluice.adapters.sources.transport.client import Answer
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.errors import (
    AnswerFailed,
    AnswerNotJson,
    AnswerTooLarge,
    AnswerUnusable,
    RecordsMissing,
    SluiceError,
    SpecInvalid,
    SupplierRefused,
    SupplierUnavailable,
)
from sluice.mapping.pages import PageSplitter
from sluice.model.source import DetailSpec
from sluice.model.source import RestSource as RestSpec
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import ConnectionInfo, Page, PageRequest
from tests.support.catalogue import PAGE, Catalogue, catalogue
from tests.support.restraints import lone_source
from tests.support.scripted_supplier import answer, scripted

POLICY = StagePolicy(retry=RetryPolicy(attempts=3, base=timedelta(milliseconds=1)))
KEYS = [f"h{number}" for number in range(10)]


@pytest.fixture
def shop() -> Iterator[Catalogue]:
    """A supplier with ten records."""
    with catalogue({key: {"id": key, "price": 1.10} for key in KEYS}) as server:
        yield server


def source(shop: Catalogue, policy: StagePolicy = POLICY, error: str | None = None, **detail: Any) -> RestSource:
    """The source of its records."""
    declared = {
        "kind": "rest",
        "connection": "shop",
        "path": "/list",
        "records": "items",
        "error": error,
        "cursor": {"path": "next", "parameter": "cursor"},
        "detail": {"path": "/records/{{ record.id }}"} | detail,
    }
    return lone_source(RestSpec.model_validate(declared), shop.connection, policy)


def pages(source: RestSource, cursor: Any = None) -> list[Page]:
    """Read all pages behind a cursor."""
    wanted = PageRequest(shard={"city": "Paris"}, cursor=cursor, watermark=None, window_start=None, window_end=None)
    return list(source.pages(wanted))


def keys(found: list[Page]) -> list[str]:
    """The ids of all records, in order."""
    return [json.loads(bytes(record))["id"] for page in found for record in PageSplitter("").split(page.body).records]


def test_pages_are_those_of_the_list(shop: Catalogue) -> None:
    """Each page of the list becomes one of details, in its order, with its cursor, and each record is asked for once."""
    found = pages(source(shop))
    assert [(page.records, page.cursor) for page in found] == [(4, 4), (4, 8), (2, None)]
    assert keys(found) == KEYS
    assert sorted(shop.details_asked()) == KEYS
    assert keys(pages(source(shop), cursor=8)) == KEYS[8:]


def test_details_are_kept_byte_for_byte(shop: Catalogue) -> None:
    """Numbers, spaces and escapes stay as they were received; with a place, it is what stands there."""
    raw = b'{"price":  1.10000000000000000001, "id": "h0", "\\u00e9": 9007199254740993}'
    shop.listed = shop.listed[:1]
    shop.records = {"h0": b"\n " + raw + b" \n"}
    assert [page.body for page in pages(source(shop))] == [b"[" + raw + b"]"]
    shop.records = {"h0": b'{"data": {"more": 1, "hotel" : ' + raw + b"}}"}
    assert [page.body for page in pages(source(shop, record="data.hotel"))] == [b"[" + raw + b"]"]


def test_so_many_at_a_time_and_no_more(shop: Catalogue) -> None:
    """As many requests as the spec allows are under way together: each waits until the others are there."""
    together = threading.Barrier(3)

    def wait_for_others(path: str) -> None:
        if path in ("/records/h0", "/records/h1", "/records/h2"):
            together.wait(30)

    shop.trouble = wait_for_others
    assert keys(pages(source(shop, at_once=3))) == KEYS
    assert shop.most_busy <= 3


@pytest.mark.parametrize("status", [404, 410])
def test_a_record_that_is_gone_is_left_out(shop: Catalogue, status: int) -> None:
    """Between list and detail it vanished: the others come, and the log counts it."""
    shop.trouble = lambda path: (status, b"{}") if path == "/records/h5" else None
    with capture_logs() as logs:
        found = pages(source(shop))
    assert keys(found) == [key for key in KEYS if key != "h5"]
    assert [page.records for page in found] == [4, 3, 2]
    gone = [entry for entry in logs if entry["event"] == log_events.RECORDS_GONE]
    assert [(entry["gone"], entry["listed"]) for entry in gone] == [(1, 4)]


def test_what_passes_is_tried_again(shop: Catalogue) -> None:
    """A detail that fails for a moment costs one more request, and no other record."""
    failures = {"/records/h1": 2, "/records/h6": 1}

    def fail(path: str) -> tuple[int, bytes] | None:
        with shop.lock:
            failures[path] = failures.get(path, 0) - 1
            return (503, b"") if failures[path] >= 0 else None

    shop.trouble = fail
    assert keys(pages(source(shop))) == KEYS
    assert len(shop.details_asked()) == len(KEYS) + 3


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (403, b"no", SupplierRefused),
        (500, b"", SupplierUnavailable),
        (200, b"<html>", AnswerNotJson),
        (200, b'{"id": "h5"', AnswerNotJson),
        (200, b"", AnswerNotJson),
        (200, b'"h5"', AnswerNotJson),
        (200, b'{"id": "h5"} {"id": "h6"}', AnswerNotJson),
        (200, b'{"fault": "busy"}', AnswerFailed),
        (200, b'{"data": null}', RecordsMissing),
        (200, b"{}", RecordsMissing),
    ],
)
def test_what_fails_otherwise_fails_the_page(shop: Catalogue, status: int, body: bytes, error: type[SluiceError]) -> None:
    """The pages before it are delivered, the error names the request, and nothing of the page is taken."""
    shop.trouble = lambda path: (status, body) if path == "/records/h5" else None
    shop.records = {key: {"data": {"id": key}} for key in KEYS}
    wanted = PageRequest(shard={}, cursor=None, watermark=None, window_start=None, window_end=None)
    delivered = source(shop, error="fault", record="data").pages(wanted)
    assert next(delivered).cursor == PAGE
    with pytest.raises(error, match=r"GET http://.*/records/h5: ") as caught:
        next(delivered)
    assert type(caught.value) is error
    assert "/records/h9" not in shop.asked


def test_a_record_that_does_not_say_where_it_is_stops_no_other(shop: Catalogue) -> None:
    """Listed without what the path needs, or damaged, it becomes a record that the mapping rejects, saying why."""
    shop.listed[1:4] = [{"name": "nameless"}, {"id": None}, {"id": {"x": 1}}]
    found = pages(source(shop))[0]
    assert found.records == 4
    records = [json.loads(bytes(record)) for record in PageSplitter("").split(found.body).records]
    assert records[0]["id"] == "h0"
    assert [record.partition(":")[0] for record in records[1:]] == ["source.detail.path"] * 3
    assert "nameless" in records[1]
    assert "is no text or number, or empty" in records[2]


def test_a_damaged_record_of_the_list_stands_as_it_is(shop: Catalogue) -> None:
    """What is no JSON leads nowhere; it is rejected with its own bytes."""
    body = b'{"items": [{"id": "h0"}, {"id": NaN}, {"id": "\xff"}], "next": null}'
    shop.trouble = lambda path: (200, body) if path == "/list" else None
    split = PageSplitter("").split(pages(source(shop))[0].body)
    assert [bytes(record) for record in split.records][1:] == [b'{"id": NaN}', b'{"id": "\xff"}']
    assert split.damaged == {1, 2}


@pytest.mark.parametrize(
    ("listed", "path", "key"),
    [
        ("h1", "/records/{{ record }}", "h1"),
        (7, "/records/h{{ record }}", "h7"),
        ({"items": "h2"}, "/records/{{ record.items }}", "h2"),
        ({"self": {"keys": [{"name": "h3"}]}}, "/records/{{ record.self.keys[0].name }}", "h3"),
        ({"a b": "h4"}, '/records/{{ record["a b"] }}', "h4"),
        ({"open": True}, "/records/h5{% if not record.open %}-closed{% endif %}", "h5"),
        ({"id": "a/../h6?x"}, "/records/{{ record.id }}", "odd"),
    ],
)
def test_what_templates_see_of_a_record(shop: Catalogue, listed: Any, path: str, key: str) -> None:
    """A value alone, members whatever they are called, members of members; none leads to another path."""
    shop.listed = [listed]
    shop.records |= {"a/../h6?x": {"id": "odd"}}
    assert keys(pages(source(shop, path=path))) == [key]


def test_queries_see_record_and_shard(shop: Catalogue) -> None:
    """Parameters are templates over both; what renders to nothing is left out, and JSON's words are spelled as JSON does."""
    targets: list[str] = []
    shop.listed = [{"id": "h1", "flag": True, "none": None, "price": 1.10}]
    original = shop.answer

    def note(path: str, query: dict[str, list[str]]) -> tuple[int, bytes]:
        targets.append(f"{path} {query}")
        return original(path, query)

    shop.answer = note  # type: ignore[method-assign]  # to look at the query as well
    query = {"city": "{{ shard.city }}", "flag": "{{ record.flag }}", "none": "{{ record.none }}", "p": "{{ record.price }}"}
    pages(source(shop, query=query))
    assert targets[1] == "/records/h1 {'city': ['Paris'], 'flag': ['true'], 'p': ['1.1']}"


def test_headers_of_the_source_go_with_each_detail() -> None:
    """A tenant or a language is not forgotten behind the list."""
    with scripted(answer({"items": ["h1"]}), answer({"id": "h1"})) as server:
        declared = {
            "kind": "rest",
            "connection": "shop",
            "path": "/list",
            "records": "items",
            "headers": {"X-City": "{{ shard.city }}"},
            "cursor": {"kind": "none"},
            "detail": {"path": "/records/{{ record }}"},
        }
        pages(lone_source(RestSpec.model_validate(declared), server.connection(), POLICY))
        assert [headers["x-city"] for headers in server.headers] == ["Paris", "Paris"]


@given(st.binary(max_size=40) | st.recursive(st.none() | st.text(), st.lists).map(lambda value: json.dumps(value).encode()))
def test_any_answer_is_a_record_or_named(body: bytes) -> None:
    """Whatever a detail is, what is stored is a part of it that leaves the page whole, or the error has a name."""
    endpoint = Endpoint.of(ConnectionInfo("shop", "http", "shop.example", None, None, None, None, {}))
    for place in ("", "a", "a.b"):
        details = Details(DetailSpec(path="/{{ record }}", record=place), "", endpoint, 1000)
        for raw in (body, b'{"a": ' + body + b"}", b'{"a": {"b": ' + body + b"}}"):
            try:
                found = details._record_in(Answer(raw, "", ""))
            except AnswerUnusable:
                continue
            split = PageSplitter("").split(b"[" + found + b", {}]")
            assert [bytes(record) for record in split.records] == [found, b"{}"]


def test_a_page_is_bounded_as_an_answer_is(shop: Catalogue) -> None:
    """Details that are too large together are refused, naming what to change."""
    shop.records = {key: {"id": key, "filler": "x" * 400} for key in KEYS}
    policy = POLICY.model_copy(update={"max_body": 1000})
    with pytest.raises(AnswerTooLarge, match=r"larger than 1000 bytes together.*max_body of the stage"):
        pages(source(shop, policy))


def test_templates_that_cannot_be_used(shop: Catalogue) -> None:
    """What is wrong with them is said with their place, before anything is asked for."""
    with pytest.raises(SpecInvalid, match=r"source\.detail\.query\.q: is no valid template"):
        source(shop, query={"q": "{{ record"})
    assert shop.asked == []
