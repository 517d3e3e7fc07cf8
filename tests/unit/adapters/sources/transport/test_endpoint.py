"""Connections of suppliers: their addresses, and that nothing secret gets into a message."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.ports import ConnectionInfo


def endpoint(**changes: Any) -> Endpoint:
    """The endpoint of a connection."""
    fields = {"host": "api.example.com", "port": None, "login": None, "password": None, "schema": None, "extra": {}}
    return Endpoint.of(ConnectionInfo("shop", "http", **(fields | changes)))


@pytest.mark.parametrize(
    ("changes", "base"),
    [
        ({}, "http://api.example.com"),
        ({"schema": "https"}, "https://api.example.com"),
        ({"schema": "HTTPS", "port": 8443}, "https://api.example.com:8443"),
        ({"host": "https://api.example.com:8443/v2/", "schema": "http", "port": 1}, "https://api.example.com:8443/v2"),
        ({"host": "[::1]", "port": 80}, "http://[::1]:80"),
    ],
)
def test_addresses(changes: dict[str, Any], base: str) -> None:
    """Scheme, host, port and a common path come from the connection; what the host itself says counts first."""
    assert endpoint(**changes).url("/x", {"a": "1 2", "b": "&"}) == f"{base}/x?a=1%202&b=%26"
    assert endpoint(**changes).url("/x", {}) == f"{base}/x"


@given(
    password=st.text(st.characters(codec="latin-1", categories=("L", "N", "P", "S")), min_size=6, max_size=30), around=st.text()
)
def test_a_password_is_never_shown(password: str, around: str) -> None:
    """Whatever surrounds it, a snippet of a text from outside does not hold the password."""
    secretive = endpoint(login="user", password=password, extra={"headers": {"X-Key": f"Bearer {password}"}})
    assert password not in secretive.snippet(f"{around}{password}{around}")
    assert password not in secretive.shown(f"http://x/{password}?q={password}")
    assert password not in repr(secretive)


@given(st.binary(max_size=2000))
def test_snippets_are_short_and_printable(text: bytes) -> None:
    """Any bytes become at most one short line that a terminal may show."""
    snippet = endpoint().snippet(text)
    assert len(snippet) <= 201
    assert snippet.isprintable()


def test_parameters_that_sound_secret_are_hidden() -> None:
    """Addresses keep what helps and lose keys and tokens; long values are cut."""
    shown = endpoint().shown("http://x/y?region=north&api_key=1&access_token=2&cursor=" + "c" * 200)
    assert shown == "http://x/y?region=north&api_key=***&access_token=***&cursor=" + "c" * 80
