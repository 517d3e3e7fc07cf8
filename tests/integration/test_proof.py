"""Proving who asks: each way against a real HTTP server, and what a connection lacks for it."""

import hashlib
from base64 import b64encode
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sluice.errors import CodeFailed, ConnectionInvalid, SluiceError, SpecInvalid, StrayAddress, SupplierRefused
from sluice.model.source import RestSource as RestSpec
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import ConnectionInfo, PageRequest
from tests.support.restraints import lone_proofs, lone_source
from tests.support.scripted_supplier import answer, scripted

REQUEST = PageRequest(shard={}, cursor=None, watermark=None, window_start=None, window_end=None)
POLICY = StagePolicy(retry=RetryPolicy(base=timedelta(milliseconds=1)))
NOON = 1_769_860_800
"""The seconds of the fake clock."""


def source_spec(auth: Any, **changes: Any) -> RestSpec:
    """A source that proves who asks that way."""
    declared = {"kind": "rest", "connection": "shop", "path": "/hotels", "cursor": {"kind": "none"}, "auth": auth}
    return RestSpec.model_validate(declared | changes)


def sent(auth: Any, include: Path = Path(), spec: Any = None, **connection: Any) -> tuple[str, dict[str, str]]:
    """Return where a request went, and its headers."""
    with scripted(answer([])) as server:
        info = server.connection(**({"login": "key", "password": "word"} | connection))
        list(lone_source(source_spec(auth, **(spec or {})), info, POLICY, lone_proofs(include)).pages(REQUEST))
        return server.asked[0], server.headers[0]


def basic(login: str, password: str) -> str:
    """The header of RFC 7617."""
    return f"Basic {b64encode(f'{login}:{password}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("auth", "authorization"),
    [
        (None, basic("key", "word")),
        ({"kind": "none"}, None),
        ({"kind": "basic"}, basic("key", "word")),
        ({"kind": "bearer"}, "Bearer word"),
    ],
)
def test_the_authorization_header(auth: Any, authorization: str | None) -> None:
    """Login and password travel as declared; nothing declared means that they do if there are any."""
    assert sent(auth)[1].get("authorization") == authorization


def test_a_connection_without_credentials_shows_none() -> None:
    """Where there is no login and no password, and nothing is declared, nothing is sent."""
    assert "authorization" not in sent(None, login=None, password=None)[1]


def test_an_authorization_of_the_extra_counts_first_unless_a_way_is_declared() -> None:
    """A header given in the extra is not replaced by login and password that nobody asked to send."""
    extra = {"headers": {"authorization": "Own x"}}
    assert sent(None, extra=extra)[1]["authorization"] == "Own x"
    assert sent({"kind": "bearer"}, extra=extra)[1]["authorization"] == "Bearer word"


def test_an_api_key_goes_where_the_spec_says() -> None:
    """As a header, or as a query parameter beside those of the spec."""
    assert sent({"kind": "api_key", "header": "X-Api-Key"})[1]["x-api-key"] == "word"
    target, headers = sent({"kind": "api_key", "query": "key"}, spec={"query": {"a": "1"}}, password="w&o=r d")
    assert target == "/hotels?a=1&key=w%26o%3Dr%20d"
    assert "authorization" not in headers


def test_an_api_key_in_the_query_is_neither_lost_nor_doubled_behind_next_links() -> None:
    """Next links without it get it, and those that repeat it, even a wrong one, carry it once."""
    auth = {"kind": "api_key", "query": "key"}
    links = ("/hotels?page=2", "/hotels?key=word&page=3", "/hotels?page=4&key=old")
    pages = [answer({"hotels": [number], "next": link}) for number, link in enumerate(links)]
    with scripted(*pages, answer({"hotels": [9], "next": None})) as server:
        spec = source_spec(auth, records="hotels", cursor={"kind": "next_url", "path": "next"})
        found = list(lone_source(spec, server.connection(password="word"), POLICY).pages(REQUEST))
        assert server.asked == [
            f"/hotels?{query}" for query in ("key=word", "page=2&key=word", "page=3&key=word", "page=4&key=word")
        ]
    assert not [page.cursor for page in found if "word" in str(page.cursor)]


def test_a_signature_is_made_of_key_secret_and_time() -> None:
    """SHA-256 of the three in a row, in hexadecimal, under the headers that the spec names."""
    expected = hashlib.sha256(f"keyword{NOON}".encode()).hexdigest()
    headers = sent({"kind": "signed"})[1]
    assert (headers["api-key"], headers["x-signature"]) == ("key", expected)
    headers = sent({"kind": "signed", "key_header": "X-K", "signature_header": "X-S"})[1]
    assert (headers["x-k"], headers["x-s"]) == ("key", expected)


def test_each_try_is_signed_anew() -> None:
    """A retry proves who asks at its own time."""
    proofs = lone_proofs()
    with scripted(answer({}, "500 Server Error"), answer([])) as server:
        info = server.connection(login="key", password="word")
        source = lone_source(source_spec({"kind": "signed"}), info, POLICY, replace(proofs, clock=_Ticking()))
        list(source.pages(REQUEST))
        assert server.headers[0]["x-signature"] != server.headers[1]["x-signature"]


class _Ticking:
    """A clock that moves with every look."""

    def __init__(self) -> None:
        self._clock = lone_proofs().clock

    def now(self) -> datetime:
        self._clock.wait(timedelta(seconds=1))
        return self._clock.now()

    def elapsed(self) -> float:
        return self._clock.elapsed()

    def wait(self, span: timedelta) -> None:
        self._clock.wait(span)


SIGNER = """
import hmac

def sign(request, key, secret, at):
    text = f"{request.method} {request.url} {request.content.decode()} {at:%Y}"
    return {"X-Key": key, "X-Hmac": hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()}

def broken(request, key, secret, at):
    raise ValueError(f"cannot sign with {secret}")

def folded(request, key, secret, at):
    return {"X-Key": "a\\r\\nHost: evil"}
"""


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """A folder with signers of a team's own."""
    (tmp_path / "own_signers_7f3a.py").write_text(SIGNER, encoding="utf-8")
    return tmp_path


def test_a_signer_of_the_teams_own(include: Path) -> None:
    """A function sees the request and gives its headers."""
    auth = {"kind": "signed", "by": "own_signers_7f3a.sign"}
    spec = {"method": "POST", "body": {"a": 1}}
    headers = sent(auth, include, spec)[1]
    assert headers["x-key"] == "key"
    assert len(headers["x-hmac"]) == 64


@pytest.mark.parametrize(
    ("by", "error", "message"),
    [
        (
            "own_signers_7f3a.broken",
            CodeFailed,
            r"source\.auth\.by: own_signers_7f3a\.broken failed at .*_7f3a\.py:9: ValueError: cannot sign with \*\*\*",
        ),
        ("own_signers_7f3a.folded", CodeFailed, r"own_signers_7f3a\.folded has to return a mapping"),
        ("own_signers_7f3a.absent", SpecInvalid, r"source\.auth\.by: own_signers_7f3a .* has no absent"),
        ("no_such_module_7f3a.sign", SpecInvalid, r"source\.auth\.by: no_such_module_7f3a cannot be imported"),
    ],
)
def test_a_signer_that_cannot_be_used(include: Path, by: str, error: type[SluiceError], message: str) -> None:
    """What is wrong is said with the place in the spec and in the code, without the secret; one that fails stops its shard."""
    with pytest.raises(error, match=message) as caught:
        sent({"kind": "signed", "by": by}, include, password="s3cr3t-word")
    assert (
        "s3cr3t-word"
        not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__ and caught.value.__suppress_context__}"
    )


@pytest.mark.parametrize(
    ("auth", "connection", "lacks"),
    [
        ({"kind": "basic"}, {"login": None, "password": None}, "a login or a password"),
        ({"kind": "bearer"}, {"password": None}, "a password"),
        ({"kind": "api_key", "query": "k"}, {"password": None}, "a password"),
        ({"kind": "oauth2", "token": "/token"}, {"login": None, "password": None}, "a login and a password"),
        ({"kind": "signed"}, {"login": None}, "a login"),
    ],
)
def test_a_connection_that_lacks_something(auth: Any, connection: dict[str, Any], lacks: str) -> None:
    """What a way needs and the connection has not is named before anything is asked for."""
    info = ConnectionInfo(
        "shop",
        "http",
        **({"host": "x", "port": None, "login": "key", "password": "word", "schema": None, "extra": {}} | connection),
    )
    with pytest.raises(ConnectionInvalid, match=f"connection shop needs {lacks} for source.auth of kind {auth['kind']}"):
        lone_source(source_spec(auth), info, POLICY)


@pytest.mark.parametrize("auth", [{"kind": "bearer"}, {"kind": "api_key", "header": "X-Key"}])
def test_a_secret_that_no_header_can_carry(auth: Any) -> None:
    """A password of two lines breaks into no other header, and is not repeated."""
    with scripted() as server, pytest.raises(ConnectionInvalid, match="its password cannot be sent in a header") as caught:
        lone_source(source_spec(auth), server.connection(password="word\r\nHost: evil"), POLICY)
    assert "word\r" not in str(caught.value)


@pytest.mark.parametrize(
    "auth",
    [
        {"kind": "basic"},
        {"kind": "bearer"},
        {"kind": "api_key", "query": "k"},
        {"kind": "api_key", "header": "X-K"},
        {"kind": "signed"},
    ],
)
def test_nothing_secret_goes_to_another_host(auth: Any) -> None:
    """A redirect to a host that is allowed is followed without anything that proves who asks."""
    with scripted(answer([])) as other:
        there = f"127.0.0.1:{other.port}"
        with scripted(answer(b"", "302 Found", Location=f"http://{there}/h")) as server:
            info = server.connection(login="key-7f3a", password="word-7f3a", extra={"headers": {"X-Extra": "extra-7f3a"}})
            spec = source_spec(auth, allow_hosts=[there])
            list(lone_source(spec, info, POLICY).pages(REQUEST))
        assert "7f3a" not in f"{other.asked} {other.headers}"


def test_a_redirect_carries_no_key_to_another_host() -> None:
    """A supplier that repeats the query in the address it leads to is not followed to a host that may be asked otherwise."""
    with scripted(answer([])) as other:
        there = f"127.0.0.1:{other.port}"
        moved = answer(b"", "302 Found", Location=f"http://{there}/h?k=word-7f3a")
        spec = source_spec({"kind": "api_key", "query": "k"}, allow_hosts=[there])
        with scripted(moved) as server, pytest.raises(StrayAddress, match="with what proves who asks in the address") as caught:
            list(lone_source(spec, server.connection(password="word-7f3a"), POLICY).pages(REQUEST))
        assert (other.asked, "7f3a" in str(caught.value)) == ([], False)


def test_a_refusal_names_the_connection() -> None:
    """401 and 403 say where to look, once, without trying again."""
    for status in ("401 Unauthorized", "403 Forbidden"):
        with scripted(answer(b"who are you", status)) as server:
            with pytest.raises(SupplierRefused, match="Check login, password and headers of connection shop"):
                list(lone_source(source_spec({"kind": "bearer"}), server.connection(password="word"), POLICY).pages(REQUEST))
            assert len(server.asked) == 1


def test_the_key_of_a_query_is_shown_nowhere() -> None:
    """Whatever the parameter is called, addresses in messages hide its value."""
    with scripted(answer(b"", "404 Not Found")) as server, pytest.raises(SluiceError) as caught:
        list(
            lone_source(source_spec({"kind": "api_key", "query": "q"}), server.connection(password="w/o&rd"), POLICY).pages(
                REQUEST
            )
        )
    assert "/hotels?q=***: " in str(caught.value)
