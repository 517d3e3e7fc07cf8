"""RestSource against real HTTP servers that answer well and badly."""

import gzip
import json
import threading
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import zstandard
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import (
    AnswerNotJson,
    AnswerTooLarge,
    AnswerUnusable,
    CursorStuck,
    RateLimited,
    RecordsMissing,
    SluiceError,
    SpecInvalid,
    StrayAddress,
    SupplierRefused,
    SupplierUnavailable,
)
from sluice.model.source import RestSource as RestSpec
from sluice.model.stage import RetryPolicy, StagePolicy, Timeouts
from sluice.ports import Page, PageRequest
from tests.support.restraints import lone_source
from tests.support.scripted_supplier import RESET, ScriptedSupplier, answer, scripted

CANARY = 'canary-7f3a&"<é'


def source_spec(**changes: Any) -> RestSpec:
    """A source as a spec declares it."""
    declared = {
        "kind": "rest",
        "connection": "shop",
        "path": "/v1/hotels",
        "query": {"region": "{{ shard.region }}", "since": "{{ watermark }}"},
        "records": "data.hotels",
        "cursor": {"path": "paging.next", "parameter": "cursor"},
    }
    return RestSpec.model_validate(declared | changes)


def stage_policy(attempts: int = 3, **changes: Any) -> StagePolicy:
    """A policy that hardly waits."""
    retry = RetryPolicy(attempts=attempts, base=timedelta(milliseconds=1), cap=timedelta(milliseconds=2))
    return StagePolicy(**({"retry": retry} | changes))


def asking(cursor: Any = None, **changes: Any) -> PageRequest:
    """A request for the pages of one shard."""
    fields = {"shard": {"region": "north"}, "watermark": None, "window_start": None, "window_end": None}
    return PageRequest(cursor=cursor, **(fields | changes))


def page(hotels: Any, following: Any = None, **headers: str) -> bytes:
    """An answer with records and a cursor."""
    return answer({"data": {"hotels": hotels}, "paging": {"next": following}}, **headers)


def pages_of(
    server: ScriptedSupplier, *, cursor: Any = None, policy: StagePolicy | None = None, **connection: Any
) -> list[Page]:
    """Read all pages from a server."""
    source = lone_source(source_spec(), server.connection(**connection), policy or stage_policy())
    return list(source.pages(asking(cursor)))


def test_follows_the_cursor_to_its_end_over_one_connection() -> None:
    """Pages come in order, byte for byte, with counts and cursors, and the connection is kept."""
    first, last = page([{"id": 1}, {"id": 2}], "c/2 &x"), page([{"id": 3}])
    with scripted(first, last) as server:
        pages = pages_of(server)
        assert server.asked == ["/v1/hotels?region=north", "/v1/hotels?region=north&cursor=c%2F2%20%26x"]
        assert server.connections == 1
    assert [(p.body, p.records, p.cursor) for p in pages] == [
        (first.partition(b"\r\n\r\n")[2], 2, "c/2 &x"),
        (last.partition(b"\r\n\r\n")[2], 1, None),
    ]


def test_goes_on_from_a_cursor_that_is_a_number() -> None:
    """A stored integer cursor is sent as it is, however large."""
    with scripted(page([], 2**70), page([])) as server:
        pages = pages_of(server, cursor=17)
        assert server.asked == ["/v1/hotels?region=north&cursor=17", f"/v1/hotels?region=north&cursor={2**70}"]
    assert [p.cursor for p in pages] == [2**70, None]


def test_renders_window_and_watermark() -> None:
    """Templates see the window as ISO instants in UTC and the watermark as text; path values cannot leave their part."""
    declared = source_spec(
        path="/v1/{{ shard.region }}/hotels",
        query={"from": "{{ window.start }}", "to": "{{ window.end }}", "since": "{{ watermark }}", "sort": "asc"},
    )
    request = asking(
        shard={"region": "a/../b"},
        watermark="2024-05-01T00:00:00+02:00",
        window_start=datetime(2024, 1, 1, tzinfo=UTC),
        window_end=datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    )
    with scripted(page([])) as server:
        list(lone_source(declared, server.connection(), stage_policy()).pages(request))
        midnight = "00%3A00%3A00"
        target = (
            f"/v1/a%2F..%2Fb/hotels?from=2024-01-01T{midnight}Z&to=2024-01-02T03%3A04%3A05.000006Z"
            f"&since=2024-05-01T{midnight}%2B02%3A00&sort=asc"
        )
        assert server.asked == [target]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "zstd", "identity"])
def test_undoes_content_encodings(encoding: str) -> None:
    """A page's body is what was encoded, whichever accepted encoding it came in."""
    body = json.dumps({"data": {"hotels": [1, 2]}, "filler": "x" * 5000}).encode()
    raw = zlib.compressobj(wbits=-15)
    encoded = {
        "gzip": gzip.compress(body[:100]) + gzip.compress(body[100:]),
        "deflate": zlib.compress(body),
        "raw deflate": raw.compress(body) + raw.flush(),
        "zstd": zstandard.compress(body[:100]) + zstandard.compress(body[100:]),
        "identity": body,
    }[encoding]
    with scripted(answer(encoded, Content_Encoding=encoding.removeprefix("raw "))) as server:
        assert [p.body for p in pages_of(server)] == [body]
        assert server.headers[0]["accept-encoding"] == "gzip, deflate, zstd"


def test_an_empty_page_is_a_page() -> None:
    """A supplier that has nothing yields one page of no records; absent, null and empty cursors end alike."""
    for body in (
        {"data": {"hotels": []}},
        {"data": {"hotels": []}, "paging": None},
        {"data": {"hotels": []}, "paging": {"next": ""}},
    ):
        with scripted(answer(body)) as server:
            assert [(p.records, p.cursor) for p in pages_of(server)] == [(0, None)]


def test_a_list_at_the_root_is_one_page() -> None:
    """Where the answer is the list itself, one page may be all; a cursor beside it has no place."""
    with scripted(answer([1, 2, 3])) as server:
        declared = source_spec(records="", cursor={"kind": "none"})
        source = lone_source(declared, server.connection(), stage_policy())
        assert [(p.records, p.cursor) for p in source.pages(asking())] == [(3, None)]
        with pytest.raises(SpecInvalid, match=r"source\.cursor\.path: the answer is itself the list"):
            lone_source(source_spec(records=""), server.connection(), stage_policy())


def test_one_damaged_record_does_not_stop_a_page() -> None:
    """A page whose brackets match is delivered, though a record in it is no JSON: the mapping rejects that one."""
    body = b'{"data": {"hotels": [{"id": 1}, {"id": NaN}, {"id": 3}]}, "paging": {"next": "b"}}'
    with scripted(answer(body), page([])) as server:
        assert [(p.records, p.cursor) for p in pages_of(server)] == [(3, "b"), (0, None)]


@pytest.mark.parametrize(
    "trouble",
    [
        answer({"oops": 1}, "500 Internal Server Error"),
        answer(b"", "503 Service Unavailable"),
        answer({}, "408 Request Timeout"),
        answer({}, "429 Too Many Requests", Retry_After="0"),
        answer({}, "429 Too Many Requests", Retry_After="Thu, 01 Jan 2015 00:00:00 GMT"),
        answer({}, "503 Service Unavailable", Retry_After="0"),
        answer(b'{"data": {"hotels": [', Content_Length="5000"),
        answer(gzip.compress(b'{"data": {"hotels": []}}')[:-9], Content_Encoding="gzip"),
        answer(zstandard.compress(b'{"data": {"hotels": []}}')[:-3], Content_Encoding="zstd"),
        answer(b'5\r\n{"dat\r\n', Content_Length="", Transfer_Encoding="chunked"),
        b"HTTP/1.1 garbage\r\n\r\n",
        RESET,
    ],
    ids=[
        "500",
        "503",
        "408",
        "429",
        "429 date",
        "503 pause",
        "short body",
        "short gzip",
        "short zstd",
        "short chunks",
        "no http",
        "reset",
    ],
)
def test_what_passes_is_tried_again(trouble: bytes) -> None:
    """An answer that may be better next time costs a retry, told in the log, and nothing else."""
    with scripted(trouble, page([1])) as server, capture_logs() as logs:
        assert [p.records for p in pages_of(server)] == [1]
        assert len(server.asked) == 2
    retried = [entry for entry in logs if entry["event"] == log_events.CALL_RETRIED]
    assert [entry["attempt"] for entry in retried] == [1]
    assert "/v1/hotels?region=north" in retried[0]["message"]


def test_retries_are_bounded() -> None:
    """After the policy's attempts the last error comes through, saying what the supplier answered."""
    with scripted(*[answer({"error": "maintenance"}, "500 Internal Server Error")] * 5) as server:
        with pytest.raises(SupplierUnavailable, match=r'500 Internal Server Error: \{"error": "maintenance"\}') as caught:
            pages_of(server, policy=stage_policy(attempts=4))
        assert len(server.asked) == 4
        assert caught.value.facts["status"] == 500


def test_a_pause_asked_for_is_made() -> None:
    """Retry-After: 1 makes the next try wait at least a second, whatever the policy's shorter cap."""
    with scripted(answer({}, "429 Too Many Requests", Retry_After="1"), page([1])) as server, capture_logs() as logs:
        assert len(pages_of(server)) == 1
    assert [entry["seconds"] >= 1 for entry in logs if entry["event"] == log_events.CALL_RETRIED] == [True]


def test_a_pause_too_long_to_wait_for_gives_the_worker_up() -> None:
    """A supplier that asks for an hour is not asked again, and the error says so."""
    with scripted(answer({}, "429 Too Many Requests", Retry_After="3600")) as server:
        with pytest.raises(RateLimited, match="pause of 3600 s") as caught:
            pages_of(server)
        assert len(server.asked) == 1
    assert caught.value.retry_after == 3600


def test_a_date_to_wait_for_is_read_by_the_suppliers_own_clock() -> None:
    """A Retry-After date counts from the answer's Date header, however wrong the worker's clock is."""
    dates = {"Date": "Thu, 01 Jan 2015 00:00:00 GMT", "Retry_After": "Thu, 01 Jan 2015 02:00:00 GMT"}
    with scripted(answer({}, "503 Service Unavailable", **dates)) as server, pytest.raises(RateLimited) as caught:
        pages_of(server)
    assert caught.value.retry_after == 7200


def test_a_supplier_that_does_not_answer_is_given_up() -> None:
    """No byte within the read timeout is `SupplierUnavailable`, and says how long was waited."""
    policy = stage_policy(attempts=1, timeouts=Timeouts(read=timedelta(milliseconds=200)))
    released = threading.Event()
    with scripted(hang=released) as server:
        with pytest.raises(SupplierUnavailable, match=r"nothing was received for 0\.2 s"):
            pages_of(server, policy=policy)
        released.set()


def test_a_supplier_that_is_not_there() -> None:
    """A closed port is `SupplierUnavailable`."""
    with scripted() as server:
        info = server.connection()
    with pytest.raises(SupplierUnavailable, match="cannot be connected to"):
        list(lone_source(source_spec(), info, stage_policy(attempts=1)).pages(asking()))


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (
            answer({"e": "x" * 900}, "404 Not Found"),
            SupplierRefused,
            r"404 Not Found: .{190,210}…\. Check what source of the spec",
        ),
        (answer(b"no", "401 Unauthorized"), SupplierRefused, "login, password and headers of connection shop"),
        (
            answer(b"", "302 Found", Location="https://evil.example/x?t=1"),
            StrayAddress,
            r"leads to evil\.example, which is not the host of connection shop: name it in source\.allow_hosts",
        ),
        (
            answer(b"<!DOCTYPE html><p>Hi\n\x00\x1b[31m", Content_Type="text/html"),
            AnswerNotJson,
            r"byte 0.*text/html.*<p>Hi \[",
        ),
        (answer(b'{"data": {"hotels": [{"id": 1}, {"i'), AnswerNotJson, "ends after 35 bytes"),
        (answer(b""), AnswerNotJson, "the answer is empty"),
        (answer(b"", "204 No Content"), AnswerNotJson, "the answer is empty"),
        (answer(b'{"a": ' + b"[" * 200_000), AnswerNotJson, "nested too deeply"),
        (answer(b"x", Content_Encoding="br"), AnswerNotJson, "encoded as 'br'; accepted: gzip, deflate, zstd"),
        (answer(b"no gzip", Content_Encoding="gzip"), AnswerNotJson, "cannot be decompressed"),
        (answer({"error": "quota", "data": None}), RecordsMissing, r"at `data\.hotels` \(source\.records.*quota"),
        (answer({"data": {"hotels": {"1": {}}}}), RecordsMissing, "no list of records"),
        (answer([1]), RecordsMissing, "no list of records"),
        (answer(b'"text"'), RecordsMissing, "no list of records"),
        (answer({"data": {"hotels": []}, "paging": [1]}), AnswerUnusable, r"source\.cursor\.path `paging\.next` leads through"),
        (page([], {"a": 1}), AnswerUnusable, "a cursor is a text or an integer"),
        (page([], True), AnswerUnusable, "a cursor is a text or an integer"),
        (page([], 1.5), AnswerUnusable, "a cursor is a text or an integer"),
        (page([], "a\0b"), AnswerUnusable, "a cursor is a text or an integer"),
        (page([], "x" * 5000), AnswerUnusable, "a cursor is a text or an integer"),
        (
            answer(b'{"data": {"hotels": []}, "paging": {"next": "\\ud800"}}'),
            AnswerUnusable,
            "a cursor is a text or an integer",
        ),
    ],
)
def test_bad_answers_are_named(bad: bytes, error: type[SluiceError], message: str) -> None:
    """An answer that will not get better raises at once what it is, where, and what was expected."""
    with scripted(bad) as server:
        with pytest.raises(error, match=message) as caught:
            pages_of(server)
        assert len(server.asked) == 1
    assert type(caught.value) is error
    assert f"GET http://127.0.0.1:{server.port}/v1/hotels?region=north: " in caught.value.message


def test_a_cursor_that_does_not_move() -> None:
    """The same cursor again is `CursorStuck` before that page is delivered."""
    with scripted(page([1], "b"), page([2], "b")) as server:
        source = lone_source(source_spec(), server.connection(), stage_policy()).pages(asking())
        assert next(source).cursor == "b"
        with pytest.raises(
            CursorStuck, match=r"next cursor b \(source\.cursor\.path `paging\.next`\) is the one that was asked for"
        ):
            next(source)


def test_a_cursor_that_runs_in_a_circle() -> None:
    """A cursor followed before, also one the shard was resumed at, is `CursorStuck`."""
    with scripted(page([1], "c"), page([2], "b")) as server, pytest.raises(CursorStuck, match="has been followed before"):
        pages_of(server, cursor="b")


@pytest.mark.parametrize("way", ["announced", "sent", "gzip", "gzip bomb", "zstd", "zstd bomb"])
def test_bodies_are_bounded(way: str) -> None:
    """More bytes than the stage's max_body are refused, before and after decompression, without holding them."""
    body = json.dumps({"data": {"hotels": []}, "filler": "y" * 3000}).encode()
    bad = {
        "announced": answer(b"", Content_Length=str(10**15)),
        "sent": answer(body, Content_Length=""),
        "gzip": answer(gzip.compress(body), Content_Encoding="gzip"),
        "gzip bomb": answer(gzip.compress(bytes(50_000_000)), Content_Encoding="gzip"),
        "zstd": answer(zstandard.compress(body), Content_Encoding="zstd"),
        "zstd bomb": answer(zstandard.compress(bytes(50_000_000)), Content_Encoding="zstd"),
    }[way]
    limit = 100_000 if way.endswith("bomb") else 2000
    with scripted(bad) as server, pytest.raises(AnswerTooLarge, match=f"larger than {limit} bytes.*max_body of the stage"):
        pages_of(server, policy=stage_policy(max_body=limit))


def test_a_body_of_just_the_bound_passes() -> None:
    """The bound itself is allowed, packed or not."""
    body = json.dumps({"data": {"hotels": [1]}}).encode()
    packed = answer(gzip.compress(body, compresslevel=9), Content_Encoding="gzip")
    with scripted(answer(body), packed) as server:
        for _ in range(2):
            assert [p.body for p in pages_of(server, policy=stage_policy(max_body=max(len(body), 60)))] == [body]


def test_credentials_are_sent_and_never_shown() -> None:
    """Login and headers reach the supplier; whatever he repeats of them is hidden in errors, logs and reprs."""
    echo = f"no {CANARY} {json.dumps(CANARY)} token-4711".encode()
    secrets = {"login": "user", "password": CANARY, "extra": {"headers": {"X-Api-Key": "token-4711", "Accept": "text/json"}}}
    for trouble in (
        answer(echo, "403 Forbidden"),
        answer(echo, "500 Server Error"),
        answer(echo),
        page([], [CANARY, "token-4711"]),
        answer(echo, "302 Found", Location="http://token-4711.example/"),
    ):
        with scripted(trouble) as server, capture_logs() as logs:
            info = server.connection(**secrets)
            source = lone_source(source_spec(query={"api_key": "literal-99"}), info, stage_policy(attempts=1))
            with pytest.raises(SluiceError) as caught:
                list(source.pages(asking()))
        assert server.headers[0]["authorization"].startswith("Basic ")
        assert (server.headers[0]["x-api-key"], server.headers[0]["accept"]) == ("token-4711", "text/json")
        seen = f"{caught.value!r} {caught.value} {caught.value.facts} {logs} {source!r} {source._endpoint!r} {info!r}"
        basic = server.headers[0]["authorization"].removeprefix("Basic ")
        for secret in (CANARY, "canary", "token-4711", basic, "literal-99"):
            assert secret not in seen
