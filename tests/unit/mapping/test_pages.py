"""Splitting pages into records, sound or not."""

import json

import pytest

from sluice.errors import AnswerNotJson, RecordsMissing
from sluice.mapping.pages import PageSplitter, RecordPage


def texts(page: RecordPage) -> list[bytes]:
    """The records as bytes."""
    return [bytes(record) for record in page.records]


def test_records_keep_their_bytes() -> None:
    """Each record is the very bytes the supplier sent, white space and all."""
    page = PageSplitter("data.items").split(b'{"data": {"n": 2, "items": [{ "a" : 1.0 }, \n 2]}, "next": null}')
    assert (texts(page), page.damaged, page.dubious) == ([b'{ "a" : 1.0 }', b"2"], frozenset(), frozenset())


@pytest.mark.parametrize("path", ["", "items", "a.b.c"])
def test_damage_stays_with_its_record(path: str) -> None:
    """NaN, lone surrogates, bad numbers and bad escapes in single records leave the others as they are."""
    records = [b'{"a": 1}', b'{"a": NaN}', rb'{"a": "\ud800"}', b'{"a": 007}', rb'{"a": "\x"}', b'{"a" 1}', rb'{"a": "\u0000"}']
    body = b"[" + b", ".join(records) + b"]"
    for key in reversed(path.split(".") if path else []):
        body = b'{"x": [[]], "' + key.encode() + b'": ' + body + b"}"
    page = PageSplitter(path).split(body + b"\n")
    assert (texts(page), page.damaged, page.dubious) == (records, {1, 2, 3, 4, 5}, {6})


def test_bytes_that_are_not_utf8_stay_with_their_record() -> None:
    """A page in another encoding, or broken in one place, is split all the same."""
    page = PageSplitter("").split('[{"a": "é"}, '.encode() + '{"a": "é"}'.encode("latin-1") + b"]")
    assert (len(page.records), page.damaged) == (2, {1})


def test_damage_is_told_of_the_records_in_question() -> None:
    """A record by itself shows its own damage, whatever the others have."""
    page = PageSplitter("").split(b'["a", "\xff", "\xc5\xbe", NaN]')
    found = [page.damaged_among(places) for places in ([0, 2], [1, 2], [0, 3], [0, 1, 2, 3])]
    assert found == [set(), {1}, {3}, page.damaged]


@pytest.mark.parametrize(
    "body",
    [b"", b"  ", b"<html>", b"[", b'[{"a": 1}', b'[{"a": 1},', b'{"items": [{"a": 1}]', b"[] []", b"[NaN] x", b"not found"],
)
def test_what_is_no_json(body: bytes) -> None:
    """What is cut short or was never JSON is named so."""
    for path in ("", "items"):
        with pytest.raises(AnswerNotJson):
            PageSplitter(path).split(body)


def test_a_gap_in_the_list() -> None:
    """A page with a comma too many is no JSON either: which record is missing cannot be told."""
    with pytest.raises(AnswerNotJson):
        PageSplitter("").split(b"[1,]")


@pytest.mark.parametrize("body", [b"{}", b'{"items": {}}', b'{"error": "x"}', b'"x"', b"null", b'{"items": NaN}', b"[]"])
def test_what_has_no_list(body: bytes) -> None:
    """JSON without a list where the spec says is another mistake than no JSON."""
    with pytest.raises(RecordsMissing, match="no list at items"):
        PageSplitter("items").split(body)


@pytest.mark.parametrize("body", [b'{"items": null}', b'{"items":null , "next": "y"}', b'{"items": null, "at": NaN}'])
def test_null_is_no_record(body: bytes) -> None:
    """A supplier that has nothing may say so with null in the place of the list."""
    assert PageSplitter("items").split(body) == RecordPage([])


def test_deep_nesting_stays_with_its_record() -> None:
    """A record nested beyond what a decoder climbs is damaged, the next one is not."""
    deep = b"[" * 100_000 + b"]" * 100_000
    page = PageSplitter("").split(b"[" + deep + b"," + json.dumps({"a": 1}).encode() + b"]")
    assert (len(page.records), page.damaged) == (2, {0})
