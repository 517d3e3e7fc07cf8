"""HttpClient against real servers: where requests go, what they show of credentials, and how bodies come."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sluice.adapters.sources.transport import wire
from sluice.adapters.sources.transport.client import HttpClient
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.proof import proof_of_connection
from sluice.adapters.sources.transport.request import Request
from sluice.errors import ConnectionInvalid, SluiceError, SpecInvalid, StrayAddress, SupplierRefused, SupplierUnavailable
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import ConnectionInfo
from tests.support.modern_supplier import modern, self_signed
from tests.support.restraints import lone_restraint
from tests.support.scripted_supplier import RESET, ScriptedSupplier, answer, scripted

POLICY = StagePolicy(retry=RetryPolicy(attempts=2, base=timedelta(milliseconds=1), cap=timedelta(milliseconds=1)))
FIRST = Request("/list", {"page": "1"})
SECRETS = {"login": "ada", "password": "canary-11", "extra": {"headers": {"X-Api-Key": "canary-12", "Accept": "text/json"}}}
DATE = "Thu, 01 Jan 2015 02:00:00 GMT"


def client_of(info: ConnectionInfo, allow_hosts: Sequence[str] = ()) -> HttpClient:
    """Return a client of the connection."""
    endpoint = Endpoint.of(info)
    return HttpClient(endpoint, POLICY, lone_restraint(POLICY), proof_of_connection(info, endpoint), allow_hosts)


def moved(to: str, status: str = "302 Found") -> bytes:
    """An answer that leads elsewhere."""
    return answer(b"see there", status, Location=to)


def test_many_pages_take_one_connection() -> None:
    """It is kept from page to page, and across redirects and refusals as well."""
    script = [answer({}), moved("/there"), answer({}), answer({}, "404 Not Found"), answer({})]
    with scripted(*script) as server, client_of(server.connection()) as client:
        for _ in range(2):
            client.send(FIRST)
        with pytest.raises(SupplierRefused):
            client.send(FIRST)
        client.send(FIRST)
        assert (len(server.asked), server.connections) == (5, 1)


@pytest.mark.parametrize("status", ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect"])
def test_a_redirect_on_the_host_is_followed(status: str) -> None:
    """With all that proves who asks."""
    with scripted(moved("../new?x=1#part", status), answer({"a": 1})) as server:
        with client_of(server.connection(**SECRETS)) as client:
            found = client.send(FIRST)
        assert server.asked == ["/list?page=1", "/new?x=1"]
        assert found.shown == f"http://127.0.0.1:{server.port}/new?x=1"
        assert server.headers[1]["x-api-key"] == "canary-12"
        assert server.headers[1]["authorization"] == server.headers[0]["authorization"]


@pytest.mark.parametrize(
    ("status", "sent"),
    [
        ("307 Temporary Redirect", ("POST", b'{"a": 1}')),
        ("308 Permanent Redirect", ("POST", b'{"a": 1}')),
        ("303 See Other", ("GET", b"")),
    ],
)
def test_what_becomes_of_a_post(status: str, sent: tuple[str, bytes]) -> None:
    """307 and 308 have it repeated as it is; 303 has the answer fetched."""
    with scripted(moved("/new", status), answer({})) as server, client_of(server.connection()) as client:
        client.send(Request("/list", method="POST", body={"a": 1}))
        assert (server.methods[1], server.bodies[1]) == sent
        assert server.bodies[0] == b'{"a": 1}'
        assert server.headers[0]["content-type"] == "application/json"


@pytest.mark.parametrize("status", ["301 Moved Permanently", "302 Found"])
def test_a_post_that_may_not_be_repeated(status: str) -> None:
    """301 and 302 do not say whether it is a POST or a GET that is meant: the mend is named."""
    with scripted(moved("/new", status)) as server, client_of(server.connection()) as client:
        with pytest.raises(SupplierRefused, match=rf"^POST http.*answered {status}, after which a POST is not repeated.*shop"):
            client.send(Request("/list", method="POST", body={}))
        assert len(server.asked) == 1


def test_redirects_have_an_end() -> None:
    """After five the supplier is told to go in circles."""
    with scripted(*[moved("/list")] * 9) as server, client_of(server.connection()) as client:
        with pytest.raises(SupplierRefused, match="redirects more than 5 times"):
            client.send(FIRST)
        assert len(server.asked) == 6


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://evil.example/x", r"leads to evil\.example, which is not the host of connection shop: .* source\.allow_hosts"),
        ("//evil.example/x", r"leads to evil\.example, which"),
        ("http://127.0.0.1:1/x", r"leads to 127\.0\.0\.1:1, which"),
        ("http://127.0.0.1.evil.example/", r"leads to 127\.0\.0\.1\.evil\.example, which"),
        ("http://{own}@evil.example/", "with a login in it"),
        ("http://me:canary@{own}/x", "an address of .* with a login in it"),
        ("http://{own}\\@evil.example/", "leads to"),
        ("ftp://{own}/x", "is no address of HTTP"),
        ("file:///etc/passwd", "is no address of HTTP"),
        ("javascript:alert(1)", "is no address of HTTP"),
        ("http://[bad", "leads to %5bbad, which"),
        ("http://{own}:99999/", "an unreadable address"),
    ],
)
@pytest.mark.parametrize("way", ["redirect", "link"])
def test_a_stray_address_is_not_asked(way: str, address: str, said: str) -> None:
    """Neither behind a redirect nor in a next link; the error names the host and the key, and shows no secret."""
    with scripted(answer({}), answer({})) as server, client_of(server.connection(**SECRETS)) as client:
        address = address.replace("{own}", f"127.0.0.1:{server.port}")
        if way == "redirect":
            server.answers.insert(0, moved(address))
        with pytest.raises(StrayAddress, match=said) as caught:
            client.send(FIRST if way == "redirect" else Request("/list", url=address))
        assert len(server.asked) == (1 if way == "redirect" else 0)
    assert "canary" not in f"{caught.value!r} {caught.value.facts}"


def test_from_https_to_http_nothing_leads() -> None:
    """Not even to the same host, or one that is allowed."""
    info = ConnectionInfo("shop", "http", "https://shop.example", None, None, None, None, {})
    with client_of(info, ["other.example"]) as client:
        for address in ("http://shop.example/x", "http://other.example/x", "http://shop.example:443/"):
            with pytest.raises(StrayAddress, match="from https to http"):
                client.send(Request("/list", url=address))


def test_an_address_that_nobody_can_be_asked_at() -> None:
    """One that is too long is refused like any that a supplier refuses, and none of it fills the log."""
    with scripted() as server, client_of(server.connection()) as client:
        with pytest.raises(SupplierRefused, match="cannot be asked at all: URL too long") as caught:
            client.send(Request("/" + "x" * 70_000))
        assert len(caught.value.message) < 300
        assert server.asked == []


def test_links_are_read_from_where_they_stand() -> None:
    """Absolute or relative to the request, with the secrets of the connection, which are the host's own."""
    with scripted(*[answer({})] * 4) as server, client_of(server.connection(**SECRETS)) as client:
        for link in ("?page=2", "next", "/v2/list?q=a%2Fb%20c", f"http://127.0.0.1:{server.port}/whole"):
            client.send(Request("/v1/list", {"page": "1"}, url=link))
        assert server.asked == ["/v1/list?page=2", "/v1/next", "/v2/list?q=a%2Fb%20c", "/whole"]
        assert {headers["x-api-key"] for headers in server.headers} == {"canary-12"}


@pytest.mark.parametrize("way", ["redirect", "link"])
def test_an_allowed_host_gets_no_credentials(way: str) -> None:
    """Neither login, nor keys, nor what the spec has as headers; what says nothing about who asks goes there."""
    with scripted(answer({"from": "elsewhere"})) as other, scripted(answer({}, Set_Cookie="id=canary")) as server:
        address = f"http://127.0.0.1:{other.port}/page"
        with client_of(server.connection(**SECRETS), [f"127.0.0.1:{other.port}"]) as client:
            client.send(FIRST)
            server.answers.append(moved(address))
            asked = Request("/list", headers={"X-Own": "canary-13"}, url=address if way == "link" else None)
            assert client.send(asked).body == b'{"from": "elsewhere"}'
        (headers,) = other.headers
    assert "canary" not in str(headers)
    assert not {"authorization", "cookie", "x-api-key", "x-own"} & set(headers)
    assert (headers["accept"], headers["user-agent"]) == ("text/json", "sluice")
    assert all("cookie" not in headers for headers in server.headers)


def stream_from(server: ScriptedSupplier, **headers: str) -> bytes:
    """Return the whole body of a stream."""
    with client_of(server.connection()) as client, client.stream(Request("/file", headers=headers)) as stream:
        return b"".join(stream.parts)


def test_streams_come_as_they_are() -> None:
    """Of any size, not decoded, with status and headers; a part of a file as well. Opening one is retried like any request."""
    body = bytes(300_000)
    partly = answer(b"rest", "206 Partial Content", Content_Range="bytes 6-9/10", ETag="x", Date=DATE)
    with scripted(RESET, answer(body), partly) as server, client_of(server.connection()) as client:
        with client.stream(Request("/file")) as stream:
            parts = list(stream.parts)
        assert b"".join(parts) == body
        assert max(map(len, parts)) <= 65536
        with client.stream(Request("/file", headers={"Range": "bytes=6-"})) as stream:
            assert (stream.status, stream.headers["etag"], stream.encoding) == (206, "x", "")
            assert stream.supplied_at == datetime(2015, 1, 1, 2, tzinfo=UTC)
            assert b"".join(stream.parts) == b"rest"
        assert (server.headers[1]["accept-encoding"], server.headers[2]["range"]) == ("identity", "bytes=6-")


def test_a_stream_that_breaks_says_so() -> None:
    """What was received by then was received; the rest is up to the reader."""
    with (
        scripted(answer(b"half", Content_Length="8")) as server,
        pytest.raises(SupplierUnavailable, match="/file: the connect"),
    ):
        stream_from(server)
    with scripted(answer(b"gone", "404 Not Found")) as server, pytest.raises(SupplierRefused, match="404 Not Found: gone"):
        stream_from(server)


@pytest.mark.parametrize("status", ["200 OK", "302 Found", "401 Unauthorized", "405 Method Not Allowed", "500 Server Error"])
def test_any_answer_tells_the_time(status: str) -> None:
    """One request for no body is enough, whatever comes; without a Date there is no time."""
    dated = answer(b"", status, Date=DATE, Location="http://evil.example/")
    with scripted(dated, answer(b"", status)) as server, client_of(server.connection()) as client:
        assert client.date(Request("/list", method="HEAD")) == datetime(2015, 1, 1, 2, tzinfo=UTC)
        assert client.date(Request("/list", method="HEAD")) is None
        assert (server.methods, len(server.asked)) == (["HEAD", "HEAD"], 2)


def test_who_does_not_answer_does_not_tell_the_time() -> None:
    """It is asked once, and what it does with the next request is another matter."""
    with scripted(RESET, answer({})) as server, client_of(server.connection()) as client:
        assert client.date(Request("/list", method="HEAD")) is None
        assert client.send(FIRST).body == b"{}"
        assert len(server.asked) == 2


def test_an_allowed_host_that_is_none() -> None:
    """It is refused by its key before anything is asked."""
    with scripted() as server, pytest.raises(SpecInvalid, match=r"source\.allow_hosts: 'shop\.example:http' is no host"):
        client_of(server.connection(), ["shop.example:http"])


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A certificate that this machine trusts for the time of a test."""
    place = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(place))
    wire._trust.cache_clear()
    yield place
    wire._trust.cache_clear()


def secure(port: int) -> ConnectionInfo:
    """The connection to a server that speaks TLS."""
    return ConnectionInfo("shop", "http", "https://127.0.0.1", port, None, None, None, {})


def test_http_2_is_spoken_where_it_is_offered(certificate: Path) -> None:
    """All requests of a thread share one connection, and none of those of several threads breaks one."""
    body = b'{"items": []}'
    with modern(body, certificate) as server, client_of(secure(server.port)) as client, ThreadPoolExecutor(4) as threads:
        assert client.send(FIRST).body == body
        bodies = list(threads.map(lambda page: client.send(Request("/list", {"page": str(page)})).body, range(20)))
        assert bodies == [body] * 20
        assert server.connections <= 5
        assert len(server.asked) == 21
        assert server.asked[0][":path"] == "/list?page=1"


def test_a_certificate_that_nobody_vouches_for(tmp_path: Path) -> None:
    """It is a matter of the connection, not of patience."""
    with modern(b"{}", self_signed(tmp_path)) as server, client_of(secure(server.port)) as client:
        with pytest.raises(ConnectionInvalid, match="of connection shop is not trusted here: self-signed certificate"):
            client.send(FIRST)
        assert server.asked == []


def test_a_host_that_is_not_known() -> None:
    """Names are looked up anew with the next try."""
    info = ConnectionInfo("shop", "http", "nowhere.invalid", None, None, None, None, {})
    with (
        client_of(info) as client,
        pytest.raises(SluiceError, match="name of the host of connection shop is not known") as caught,
    ):
        client.send(FIRST)
    assert type(caught.value) is SupplierUnavailable
