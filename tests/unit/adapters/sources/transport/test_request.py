"""Requests as they are put together."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.transport.request import Request

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
QUERIES = st.dictionaries(NAMES, st.text(st.characters(codec="utf-8"), max_size=5), max_size=3)


@given(QUERIES, QUERIES, QUERIES)
def test_a_parameter_has_one_value(before: dict[str, str], first: dict[str, str], then: dict[str, str]) -> None:
    """Whether the address is the spec's or the supplier's: the last one given counts, and the others stay."""
    assert dict(Request("/x", query=before).with_query(**first).with_query(**then).query) == {**before, **first, **then}
    given_by_supplier = Request("/x", url="https://shop.example/x?keep=%7E1&keep=2").with_query(**first).with_query(**then)
    found = parse_qsl(urlsplit(given_by_supplier.url or "").query, keep_blank_values=True)
    others = [("keep", "~1"), ("keep", "2")] if "keep" not in {**first, **then} else []
    assert sorted(found) == sorted([*others, *{**first, **then}.items()])


def test_what_others_wrote_stays_as_it_was_spelled() -> None:
    """A signed or oddly quoted parameter of a next link is not spelled anew."""
    assert dict(Request("/x").with_query(self="1").query) == {"self": "1"}
    link = "https://shop.example/x?sig=a%2fb+c~&page=2#part"
    assert Request("/x", url=link).with_query(key="1 2").url == "https://shop.example/x?sig=a%2fb+c~&page=2&key=1%202#part"


def test_a_header_has_one_value() -> None:
    """In whatever case it is named."""
    request = Request("/x", headers={"X-A": "1", "x-b": "2"}).with_headers({"x-a": "3"})
    assert dict(request.headers) == {"x-b": "2", "x-a": "3"}


@pytest.mark.parametrize(
    ("request_", "content"),
    [
        (Request("/x"), None),
        (Request("/x", body={"a": "é", "n": 10**20}), ("application/json", b'{"a": "\\u00e9", "n": 100000000000000000000}')),
        (Request("/x", form={"a": "é &", "b": ""}), ("application/x-www-form-urlencoded", b"a=%C3%A9+%26&b=")),
    ],
)
def test_what_is_sent(request_: Request, content: tuple[str, bytes] | None) -> None:
    """JSON, a form, or nothing."""
    assert request_.content() == content


def test_its_repr_shows_no_proof() -> None:
    """Neither headers nor parameters, in which one may stand."""
    shown = repr(Request("/x", {"key": "s3cr3t"}, {"X-Key": "s3cr3t"}, form={"a": "s3cr3t"}, url="https://x/?key=s3cr3t"))
    assert "s3cr3t" not in shown
    assert "/x" in shown
