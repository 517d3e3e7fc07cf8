"""Secrets: whatever a text makes of them, they do not come out of it."""

import html
import json
from base64 import b64encode
from urllib.parse import quote, quote_plus, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.transport.secrecy import Secrets

SECRET = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="*"), min_size=4, max_size=30).filter(
    lambda text: bool(text.strip())
)


@given(SECRET, st.text(max_size=5), st.text(max_size=5))
def test_no_spelling_comes_through(secret: str, before: str, behind: str) -> None:
    """As it is, quoted, escaped once or twice, in base64, or as Python shows it."""
    secrets = Secrets(secret)
    once = json.dumps(secret)[1:-1]
    for way in (
        secret,
        quote(secret, safe=""),
        quote(quote(secret)),
        unquote(quote_plus(secret)),
        once,
        json.dumps(once)[1:-1],
        html.escape(secret),
        repr(secret)[1:-1],
        repr(secret.encode())[2:-1],
        b64encode(secret.encode()).decode(),
    ):
        assert way.rstrip("=") not in secrets.hide(f"{before}{way}{behind}")


def test_short_names_are_hidden_as_words() -> None:
    """A login such as `api` takes nothing away from words that it is a part of; a long one is hidden anywhere."""
    secrets = Secrets(names=("api",))
    assert secrets.hide('https://api.example/apis?q=%20api&u="api" rapid') == 'https://***.example/apis?q=%20***&u="***" rapid'
    assert Secrets(names=("client-7f3a",)).hide("xclient-7f3ax") == "x***x"


def test_what_passes_is_forgotten_in_the_end() -> None:
    """Tokens and signatures are hidden until many others have come after them; what lasts stays."""
    secrets = Secrets("for-ever-1")
    for number in range(30):
        secrets.add_passing(f"token-{number:04}")
    assert secrets.hide("for-ever-1 token-0029 token-0010 token-0009") == "*** *** *** token-0009"


@pytest.mark.parametrize(
    ("text", "are_in"),
    [("x=s3cr3t-word", True), ("x=s3cr3t%2Dword", False), ("eur", False), ("other-header", False), ("a-login-name", False)],
)
def test_which_secrets_a_cursor_may_not_have(text: str, are_in: bool) -> None:
    """Those that are surely secret, and too long to stand there by chance."""
    secrets = Secrets("s3cr3t-word", "eur", others=("other-header",), names=("a-login-name",))
    assert secrets.are_in(text) is are_in


def test_no_repr_shows_any() -> None:
    """Neither its own nor that of what it is made of."""
    assert "s3cr3t" not in repr(Secrets("s3cr3t-word"))
