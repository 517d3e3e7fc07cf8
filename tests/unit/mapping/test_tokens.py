"""Taking JSON apart that is damaged inside."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.mapping import tokens
from sluice.mapping.tokens import Unbalanced

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(items=st.lists(DOCUMENTS), indent=st.sampled_from([None, 1]), tail=st.sampled_from(["", " ", "}", ",1"]))
@settings(deadline=None)
def test_items_of_a_list(items: list[Any], indent: int | None, tail: str) -> None:
    """The spans of a list's items are their texts, NaN and infinities included, and its end is found before what follows."""
    text = json.dumps(items, indent=indent)
    data = (text + tail).encode()
    spans = [data[start:stop] for _, start, stop in tokens.items(data)]
    assert [json.dumps(json.loads(span)) for span in spans] == [json.dumps(item) for item in items]
    assert tokens.end(data) == len(text.encode())


@given(members=st.dictionaries(st.text(), DOCUMENTS))
@settings(deadline=None)
def test_members_of_an_object(members: dict[str, Any]) -> None:
    """The members of an object are found by their keys; what cannot be a key, for a lone surrogate, is left out."""
    data = json.dumps({**members, "\ud800": 1}).encode()
    found = {key: data[start:stop] for key, (start, stop) in tokens.members(data).items()}
    assert {key: json.dumps(json.loads(text)) for key, text in found.items()} == {
        key: json.dumps(value) for key, value in members.items()
    }


def test_the_last_of_two_members_counts() -> None:
    """As for every decoder."""
    assert tokens.members(b'{"a": 1, "a": 2}') == {"a": (14, 15)}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"1",
        b"]",
        b"[",
        b"[1",
        b"[1,]",
        b"[,1]",
        b"[1,,2]",
        b"[:]",
        b'["',
        b'["a]',
        b"[}",
        b"[1}",
        b"[[}]",
        b'{"a"}',
        b'{"a":}',
        b'{"a":1,}',
        b'{"a" 1}',
        b'{"a":1]',
    ],
)
def test_what_cannot_be_taken_apart(text: bytes) -> None:
    """Open ends and missing items are noticed."""
    with pytest.raises(Unbalanced):
        list(tokens.items(text))


def test_depth_costs_no_recursion() -> None:
    """A hundred thousand levels are walked, not climbed."""
    text = b"[" + b"[" * 100_000 + b"]" * 100_000 + b",1]"
    assert [text[start:stop] for _, start, stop in tokens.items(text)][1:] == [b"1"]
