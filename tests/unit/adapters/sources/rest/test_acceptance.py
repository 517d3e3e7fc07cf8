"""Answers under status 200: those that say that they failed, and those that only look like it."""

import json
from typing import Any

import pytest

from sluice.adapters.sources.rest.acceptance import Acceptance
from sluice.adapters.sources.transport.client import Answer
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.errors import AnswerFailed
from sluice.ports import ConnectionInfo

ENDPOINT = Endpoint.of(ConnectionInfo("shop", "http", "shop.example", None, "user", "s3cr3t-word", "https", {}))


def accepted(body: bytes | Any, error: str | None = "status.error") -> Answer:
    """Look at an answer."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = Answer(payload, "application/json", "https://shop.example/hotels", {"content-type": "application/json"})
    return Acceptance(error, ENDPOINT).accept(answer)


@pytest.mark.parametrize("said", [True, 17, "quota", ["a"], {"code": 1}, " ", "0", -1, 0.5])
def test_an_error_where_the_spec_says(said: Any) -> None:
    """Anything there is a failure that may pass, told in the supplier's words."""
    with pytest.raises(
        AnswerFailed, match=r"GET https://shop\.example/hotels: .*that it failed \(source\.error `status\.error`\)"
    ):
        accepted({"status": {"error": said}, "hotels": [1]})


@pytest.mark.parametrize(
    "body",
    [{"status": {"error": nothing}} for nothing in (None, False, "", [], {}, 0)]
    + [{}, {"status": None}, {"status": {}}, {"status": "fine"}, [1], b"<html>", b'{"status": {"error": "x"', b""],
)
def test_no_error_there(body: Any) -> None:
    """Nothing there is no failure; what is no such answer at all is left to whoever reads it."""
    assert accepted(body).body == (body if isinstance(body, bytes) else json.dumps(body).encode())


def test_an_error_that_python_does_not_read() -> None:
    """A number of thousands of digits is something, and no crash."""
    with pytest.raises(AnswerFailed):
        accepted(b'{"status": {"error": ' + b"7" * 5_000 + b"}}")


def test_nobody_looks_where_the_spec_says_nothing() -> None:
    """Without the key an error body is an answer like others."""
    assert accepted({"status": {"error": "x"}}, None).body == b'{"status": {"error": "x"}}'


def test_the_suppliers_words_are_short_and_hold_no_secret() -> None:
    """What is quoted is cut, on one line and without the connection's secrets."""
    with pytest.raises(AnswerFailed) as caught:
        accepted({"status": {"error": "s3cr3t-word\n" + "x" * 500_000}})
    assert "s3cr3t-word" not in str(caught.value)
    assert len(str(caught.value)) < 500
