"""Requests: templates of a spec in, the request for a shard's first page out."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.rest.requests import Requests
from sluice.adapters.sources.transport.request import is_header_value
from sluice.errors import SpecInvalid
from sluice.model.source import RestSource
from sluice.ports import PageRequest


def source(**changes: Any) -> RestSource:
    """A source as a spec declares it."""
    declared = {"kind": "rest", "connection": "shop", "path": "/hotels", "cursor": {"kind": "none"}}
    return RestSource.model_validate(declared | changes)


def wanted(**changes: Any) -> PageRequest:
    """A request for the pages of one shard."""
    fields: dict[str, Any] = {
        "shard": {"region": "north"},
        "cursor": None,
        "watermark": "2024-05-01",
        "window_start": datetime(2024, 1, 1, tzinfo=UTC),
        "window_end": datetime(2024, 1, 2, tzinfo=UTC),
        "until": "2024-06-01",
    }
    return PageRequest(**(fields | changes))


def test_every_place_has_every_value() -> None:
    """Path, query, headers and body see shard, window, watermark and the upper bound alike."""
    text = "{{ shard.region }} {{ window.start }} {{ window.end }} {{ watermark }} {{ until }}"
    becomes = "north 2024-01-01T00:00:00Z 2024-01-02T00:00:00Z 2024-05-01 2024-06-01"
    declared = source(
        method="POST",
        path="/{{ until }}/{{ shard.region }}",
        query={"q": text},
        headers={"X-What": text},
        body={"filter": {"all": [text, 7]}},
    )
    request = Requests(declared).first(wanted())
    assert request.path == "/2024-06-01/north"
    assert (request.method, dict(request.query), dict(request.headers)) == ("POST", {"q": becomes}, {"X-What": becomes})
    assert request.body == {"filter": {"all": [becomes, 7]}}


def test_what_comes_out_empty_is_left_out() -> None:
    """A parameter, a header or a member of the body that renders to nothing is not sent; other values stay as they are."""
    since = "{{ watermark }}"
    body = {"since": since, "n": 0, "no": False, "null": None, "in": {"since": since}, "list": [since, 1.5], "for": "all"}
    declared = source(method="POST", query={"since": since, "all": "1"}, headers={"X-Since": since}, body=body)
    request = Requests(declared).first(wanted(watermark=None))
    assert (dict(request.query), dict(request.headers)) == ({"all": "1"}, {})
    assert request.body == {"n": 0, "no": False, "null": None, "in": {}, "list": ["", 1.5], "for": "all"}


@given(st.text())
def test_no_value_leads_elsewhere(value: str) -> None:
    """Whatever a shard's value is, the path keeps its parts and a header its line, or the value is refused."""
    declared = source(path="/v1/{{ shard.region }}/hotels", headers={"X-Region": "{{ shard.region }}"})
    try:
        request = Requests(declared).first(wanted(shard={"region": value}))
    except SpecInvalid:
        assert value in (".", "..") or not is_header_value(value)
        return
    assert request.path.count("/") == 3
    assert unquote(request.path) == f"/v1/{value}/hotels"
    assert request.headers.get("X-Region", "") == value


@pytest.mark.parametrize("value", ["a\r\nHost: evil", "a\nb", "a\0b", "Köln → Paris", "\x7f", "a\x85b"])
def test_a_header_is_one_line_of_latin_1(value: str) -> None:
    """Control characters, line breaks and what Latin-1 does not have are refused by the header's name."""
    requests = Requests(source(headers={"X-Region": "{{ shard.region }}"}))
    with pytest.raises(SpecInvalid, match=r"source\.headers\.X-Region: becomes .* one line of Latin-1"):
        requests.first(wanted(shard={"region": value}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"headers": {"Host": "x"}}, r"source\.headers\.Host: is set by who sends"),
        ({"headers": {"Content-Length": "1"}}, r"source\.headers\.Content-Length: is set by"),
        ({"headers": {"X Y": "1"}}, r"source\.headers\.X Y: is no name of a header"),
        ({"headers": {"X": "{{ a"}}, r"source\.headers\.X: is no valid template"),
        ({"method": "POST", "body": {"a": [{"b": "{{ a"}]}}, r"source\.body\.a\[0\]\.b: is no valid template"),
    ],
)
def test_templates_that_cannot_be_used(changes: dict[str, Any], message: str) -> None:
    """What is wrong with a header's name or a template is said with its place."""
    with pytest.raises(SpecInvalid, match=message):
        Requests(source(**changes))


def test_a_value_that_is_not_known_is_refused_with_those_that_are() -> None:
    """A name nobody gives a value to stops the shard, in the body as elsewhere."""
    requests = Requests(source(method="POST", body={"a": "{{ shard.land }}"}))
    known = r"known: shard\.region, window\.start, window\.end, watermark, until"
    with pytest.raises(SpecInvalid, match=rf"source\.body\.a: cannot be rendered.*{known}"):
        requests.first(wanted())
