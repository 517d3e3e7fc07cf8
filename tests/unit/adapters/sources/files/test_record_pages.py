"""record_pages: a page takes whatever stood in a file, and each record keeps to its own place in it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.files.record_pages import page_of
from sluice.mapping.pages import PageSplitter

DAMAGED = [
    b'{"a": 1',
    b"1, 2",
    b"]",
    b'"',
    b"a b",
    b"",
    b'{"a": 1}]',
    b'[{"b": 2}',
    b"\xff{",
    b'{"a" 1}',
    b"tru",
    b"[1 2]",
    b",",
]


@given(
    records=st.lists(
        st.sampled_from([b'{"a":1}', b"NaN", rb'{"a":"\ud800"}', b'{"a":"\xff"}', b"[1,\n2]", *DAMAGED]), max_size=6
    )
)
def test_as_many_records_come_out_as_went_in(records: list[bytes]) -> None:
    """However damaged, a record takes one place; those that keep to it stay byte for byte."""
    found = [bytes(raw) for raw in PageSplitter("").split(page_of(records)).records]
    assert len(found) == len(records)
    for before, after in zip(records, found, strict=True):
        assert after == before or isinstance(json.loads(after), str)


@pytest.mark.parametrize("damaged", [b'{"a": 1', b"1, 2", b'{"a": 1}]', b"\xffx["])
def test_what_would_break_the_page_becomes_a_text(damaged: bytes) -> None:
    """It can be read in the page, and is no record."""
    page: list[Any] = json.loads(page_of([b'{"a": 0}', damaged, b'{"a": 2}']))
    assert page == [{"a": 0}, damaged.decode("utf-8", "backslashreplace"), {"a": 2}]
