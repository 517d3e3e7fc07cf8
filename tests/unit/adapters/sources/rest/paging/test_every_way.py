"""What every way of paging does: it brings each record, it ends, it goes on from where it stood."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import AnswerUnusable
from tests.unit.adapters.sources.rest.paging.listing import FIRST, Listing, latest, pager, read_through

SIZE = 4
WAYS: dict[str, dict[str, Any]] = {
    "body": {"kind": "body", "path": "next", "parameter": "offset"},
    "page": {"kind": "page"},
    "offset": {"kind": "offset", "size": SIZE},
    "offset without overlap": {"kind": "offset", "size": SIZE, "overlap": 0},
    "offset with more overlap": {"kind": "offset", "size": SIZE, "overlap": 3},
    "keyset": {"kind": "keyset", "size": SIZE, "field": "at", "parameter": "after"},
}
STOPS: list[dict[str, Any]] = [{}, {"has_more": "more"}, {"short_page_ends": True, "size": SIZE}]
COUNTS: list[dict[str, Any]] = [{"total": "total"}]


def test_all_stops_are_tried() -> None:
    """A way of paging with each of its stop rules can be declared."""
    for way in WAYS.values():
        for stop in STOPS:
            pager(way | stop)


@given(
    way=st.sampled_from(sorted(WAYS)),
    stop=st.sampled_from([*STOPS, *COUNTS]),
    count=st.integers(0, 23),
    repeated=st.integers(1, SIZE - 1),
    resumed=st.integers(0, 40),
    exclusive=st.booleans(),
)
def test_each_record_comes_wherever_it_is_resumed(
    *, way: str, stop: dict[str, Any], count: int, repeated: int, resumed: int, exclusive: bool
) -> None:
    """Whatever the stop rule, and whatever page it was killed behind: nothing is missing, and it ends."""
    declared = WAYS[way] | (stop if "total" not in stop or way == "page" or way.startswith("offset") else {})
    listing = Listing([{"id": n, "at": n // repeated} for n in range(count)], SIZE, is_exclusive=exclusive)
    whole = read_through(declared, listing)
    assert sorted(latest(whole)) == list(range(count))
    cut = whole[: min(resumed, len(whole) - 1)]
    rest = read_through(declared, listing, start=cut[-1][1] if cut else None)
    assert rest == whole[len(cut) :]


@given(count=st.integers(0, 23), holds=st.integers(1, SIZE), overlap=st.integers(0, SIZE - 1))
def test_a_supplier_that_gives_smaller_pages_than_asked_for(count: int, holds: int, overlap: int) -> None:
    """An offset goes on by what has come, not by what was asked for."""
    listing = Listing([{"id": n} for n in range(count)], holds)
    pages = read_through({"kind": "offset", "size": SIZE, "overlap": overlap}, listing)
    assert sorted(latest(pages)) == list(range(count))


@pytest.mark.parametrize("way", [*WAYS.values(), {"kind": "next_url", "path": "next"}, {"kind": "link"}, {"kind": "none"}])
def test_a_cursor_of_another_way_is_refused(way: dict[str, Any]) -> None:
    """What another way of paging has stored, since the spec was edited, is no place to go on from."""
    others: list[Any] = [{"kind": "none of these"}, ["x"], True, 1.5, {"url": 1}]
    others += [{"kind": other["kind"], "odd": 1} for other in WAYS.values()]
    for cursor in others:
        with pytest.raises(AnswerUnusable, match="another kind of paging"):
            pager(way).request(FIRST, cursor)


def test_a_text_is_no_place_but_for_cursors() -> None:
    """A plain text is what cursors in bodies and headers leave, and nobody else."""
    for way in ({"kind": "page"}, {"kind": "offset", "size": 2}, WAYS["keyset"], {"kind": "link"}, {"kind": "none"}):
        with pytest.raises(AnswerUnusable):
            pager(way).request(FIRST, "b")
    assert pager(WAYS["body"]).request(FIRST, "b").query == {WAYS["body"]["parameter"]: "b"}
