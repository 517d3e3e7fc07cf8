"""Values of shards: read from records as they stand there, or refused with the record."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import ShardsUnusable
from sluice.mapping.shard_values import ShardValueReader


def values(page: bytes | Any, place: str = "id", records: str = "") -> list[str]:
    """Return what a page lists."""
    body = page if isinstance(page, bytes) else json.dumps(page).encode()
    return list(ShardValueReader(records, place).values(body))


def test_texts_and_numbers_are_taken_as_they_stand() -> None:
    """A number is its digits, beyond 64 bits and behind the point; nothing is rounded, nothing is trimmed."""
    page = b'{"data": {"cities": [{"id": "oslo "}, {"id": 12345678901234567890123}, {"id": 1.50}, {"id": -0}, {"id": 1e3}]}}'
    assert values(page, records="data.cities") == ["oslo ", "12345678901234567890123", "1.50", "-0", "1e3"]


def test_a_value_may_stand_below_others() -> None:
    """Dots lead down."""
    assert values([{"a": {"b": "x"}}], place="a.b") == ["x"]


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=200)))
def test_any_text_comes_out_as_it_went_in(texts: list[str]) -> None:
    """Whatever the alphabet."""
    assert values([{"id": text} for text in texts]) == texts


UNUSABLE = {
    "nothing": [{"name": "x"}],
    "null": [{"id": None}],
    "truth": [{"id": True}],
    "an object": [{"id": {}}],
    "a list": [{"id": ["a"]}],
    "empty": [{"id": ""}],
    "too long": [{"id": "x" * 201}],
    "a NUL": [{"id": "a\0b"}],
    "a lone surrogate": [{"id": "\ud800"}],
    "no object": ["oslo"],
    "no number of JSON": b'[{"id": NaN}]',
    "not UTF-8": b'[{"id": "\xff"}]',
    "no list": {"id": "oslo"},
    "no JSON": b"<html>",
}


@pytest.mark.parametrize("page", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_what_is_no_value_is_refused(page: Any) -> None:
    """One record without a value spoils the list: its objects would be missed, and taken for gone."""
    with pytest.raises(ShardsUnusable, match=r"^shards\.source: "):
        values(page)


def test_the_record_is_quoted() -> None:
    """Whoever reads it sees where the value was looked for, and in what."""
    with pytest.raises(ShardsUnusable) as caught:
        values([{"id": "a"}, {"code": "b"}])
    assert caught.value.message == (
        'shards.source: a record has neither a text nor a number at `id` (shards.value): {"code": "b"}'
    )
