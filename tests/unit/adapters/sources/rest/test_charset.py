"""Bodies in any charset: UTF-8 comes out, and nothing is lost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.rest.charset import as_utf8

TEXT = '{"name": "Hôtel Süd ñ"}'


@pytest.mark.parametrize(
    ("charset", "content_type"),
    [
        ("utf-8", "application/json"),
        ("utf-8-sig", "application/json"),
        ("utf-16", "application/json"),
        ("utf-16-le", "application/json; charset=utf-16le"),
        ("utf-16-be", "application/json"),
        ("utf-32", "application/json"),
        ("latin-1", "application/json; charset=ISO-8859-1"),
        ("cp1252", 'application/json;charset="windows-1252"'),
        ("utf-8", "application/json; charset=iso-8859-1"),
        ("utf-8-sig", "application/json; charset=latin-1"),
    ],
)
def test_the_same_text_whatever_it_came_in(charset: str, content_type: str) -> None:
    """What the bytes are counts before what is declared by habit; a byte order mark is left out."""
    assert as_utf8(TEXT.encode(charset), content_type).decode() == TEXT


@pytest.mark.parametrize(
    "content_type", ["", "application/json", "x; charset=utf-8", "x; charset=rot13", "x; charset=punycode", "x; charset=no"]
)
def test_bytes_of_no_known_charset_stay(content_type: str) -> None:
    """Damage is left to whoever splits the page into records."""
    body = TEXT.encode("latin-1")
    assert as_utf8(body, content_type) is body


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists),
    st.sampled_from(["utf-8", "utf-16", "utf-32", "utf-8-sig"]),
)
def test_any_json_in_any_charset_of_unicode(value: object, charset: str) -> None:
    """A document is the same document afterwards."""
    encoded = json.dumps([value], ensure_ascii=False).encode(charset)
    assert json.loads(as_utf8(encoded, "").decode()) == [value]


@given(st.binary(), st.text())
def test_any_bytes_and_any_header(body: bytes, content_type: str) -> None:
    """Nothing a server sends raises; bytes that are UTF-8 stay as they are, but for a byte order mark."""
    became = as_utf8(body, content_type)
    if json.detect_encoding(body).startswith("utf-8"):
        try:
            body.decode()
        except UnicodeDecodeError:
            return
        assert became == body.removeprefix(b"\xef\xbb\xbf")
