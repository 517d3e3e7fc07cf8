"""What two versions make of one chunk, laid side by side: alike, differing, or rejected by one of them."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sluice.mapping.side_by_side import GONE, SideBySide, side_by_side
from sluice.model.spec import SyncSpec
from tests.unit.mapping.workbench import map_records, sync_spec

FIRST = sync_spec({"id": "text", "rooms": {"type": "integer", "path": "one"}})
SECOND = sync_spec({"id": "text", "rooms": {"type": "integer", "path": "other"}})
VALUES = st.none() | st.integers(-(2**31), 2**31 - 1)
DIFFERENT = st.sampled_from(["x", 2**40, 1.5, True])


def laid(first: SyncSpec, second: SyncSpec, *records: dict[str, Any]) -> SideBySide:
    """Map some records by both, and lay them side by side."""
    texts = [json.dumps(record) for record in records]
    return side_by_side((first, second), (map_records(first, *texts), map_records(second, *texts)))


@given(pairs=st.lists(st.tuples(VALUES | DIFFERENT, VALUES | DIFFERENT), max_size=20))
def test_it_says_what_a_loop_would_say(pairs: list[tuple[Any, Any]]) -> None:
    """Record by record, in the order of the chunk, whatever is rejected between them."""
    found = laid(FIRST, SECOND, *({"id": f"{at}", "one": one, "other": other} for at, (one, other) in enumerate(pairs)))
    told = [tuple(value is None or (type(value) is int and abs(value) < 2**32) for value in pair) for pair in pairs]
    good = [(f"{at}", pair) for at, pair in enumerate(pairs) if told[at] == (True, True)]
    spelled = {key: tuple(None if value is None else str(value) for value in pair) for key, pair in good}
    assert found.made_by_both == len(good)
    assert {one.key: one.fields["rooms"] for one in found.differing} == {
        key: pair for key, pair in spelled.items() if pair[0] != pair[1]
    }
    assert found.rejected_by_both == told.count((False, False))
    assert [len(rejects) for rejects in found.rejected_by_one] == [told.count((False, True)), told.count((True, False))]


def test_of_other_fields_those_in_common_are_compared() -> None:
    """A field that one of the two does not have makes no object differ."""
    more = sync_spec({"id": "text", "note": "text", "rooms": {"type": "integer", "path": "one"}})
    found = laid(FIRST, more, {"id": "a", "one": 1, "note": "new"}, {"id": "b", "one": 2})
    assert (found.made_by_both, found.differing) == (2, ())


def test_equal_values_in_other_words_are_alike() -> None:
    """What Postgres would hold for the same is the same: the hash of the row says so."""
    one = sync_spec({"id": "text", "more": {"type": "json", "path": "one"}})
    other = sync_spec({"id": "text", "more": {"type": "json", "path": "other"}})
    found = laid(one, other, {"id": "a", "one": {"x": 1, "y": 2}, "other": {"y": 2, "x": 1}})
    assert (found.made_by_both, found.differing) == (1, ())


def test_who_is_gone_by_one_alone_differs() -> None:
    """It has no other fields to compare."""
    fields = {"id": "text", "gone": {"type": "boolean", "path": "one"}}
    changed = {"id": "text", "gone": {"type": "boolean", "path": "other"}}
    specs = [sync_spec(declared, object={"key": ["id"], "deleted": "gone"}) for declared in (fields, changed)]
    found = laid(specs[0], specs[1], {"id": "a", "one": True, "other": False}, {"id": "b", "one": True, "other": True})
    (differing,) = found.differing
    assert (differing.key, differing.fields) == ("a", {GONE: ("true", "false")})
    assert found.made_by_both == 2
