"""Lists that lose, gain and move records while they are read by offset or keyset."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import AnswerUnusable, CursorStuck
from tests.unit.adapters.sources.rest.paging.listing import FIRST, Listing, Record, latest, pager, read_through, reading

SIZE = 4
OFFSET = {"kind": "offset", "size": SIZE}
KEYSET = {"kind": "keyset", "size": SIZE, "field": "at", "parameter": "after"}
FEWEST = 2
"""Of a lone record no overlap is left to see it move by."""

CHANGES = st.lists(
    st.lists(st.tuples(st.sampled_from(["delete", "touch", "add"]), st.integers(0, 30)), max_size=4), max_size=12
)


def changing(listing: Listing, changes: list[list[tuple[str, int]]]) -> Callable[[int], None]:
    """Return what deletes records, changes them or adds some between pages: what has changed stands last."""
    ticks, ids = count(1000), count(100)

    def between(page: int) -> None:
        for change, place in changes[page - 1] if page <= len(changes) else []:
            index = place % len(listing.records)
            if change == "add":
                listing.records.append({"id": next(ids), "at": next(ticks)})
            elif change == "touch" or len(listing.records) > FEWEST:
                gone = listing.records.pop(index)
                if change == "touch":
                    listing.records.append(gone | {"at": next(ticks)})

    return between


def things(number: int, ties: int = 1) -> list[Record]:
    """Records in the order of their last change."""
    return [{"id": n, "at": n // ties} for n in range(number)]


@given(number=st.integers(FEWEST, 25), overlap=st.integers(1, SIZE - 1), changes=CHANGES)
def test_offsets_miss_nothing(number: int, overlap: int, changes: list[list[tuple[str, int]]]) -> None:
    """Whatever goes or moves between pages, each record that is there in the end has come, in its newest version."""
    listing = Listing(things(number), SIZE)
    came = latest(read_through(OFFSET | {"overlap": overlap}, listing, between=changing(listing, changes)))
    assert {record["id"]: record for record in listing.records}.items() <= came.items()


@given(
    number=st.integers(FEWEST, 25),
    ties=st.integers(1, 2),
    holds=st.integers(3, SIZE),
    exclusive=st.booleans(),
    changes=CHANGES,
)
def test_keysets_miss_nothing(
    *, number: int, ties: int, holds: int, exclusive: bool, changes: list[list[tuple[str, int]]]
) -> None:
    """So does a keyset, whether the supplier takes the value as inclusive or exclusive, and however many records it gives."""
    listing = Listing(things(number, ties), holds, is_exclusive=exclusive)
    came = latest(read_through(KEYSET, listing, between=changing(listing, changes)))
    assert {record["id"]: record for record in listing.records}.items() <= came.items()


@pytest.mark.parametrize("way", [{"kind": "offset", "size": 2}, KEYSET | {"size": 2}])
@pytest.mark.parametrize("exclusive", [False, True])
def test_a_record_that_moves_to_the_end_takes_no_other_along(way: dict[str, Any], exclusive: bool) -> None:
    """A1 B2 | C3 D4: when B is changed behind page 1, C moves up to where that ended; it comes all the same, and so does B."""
    listing = Listing(
        [{"id": name, "at": at} for name, at in zip("ABCD", (1, 2, 3, 4), strict=True)], 2, is_exclusive=exclusive
    )

    def between(page: int) -> None:
        if page == 1:
            listing.records.append(listing.records.pop(1) | {"at": 9})

    came = latest(read_through(way, listing, between=between))
    assert {name: record["at"] for name, record in came.items()} == {"A": 1, "B": 9, "C": 3, "D": 4}


def test_without_overlap_an_offset_believes_what_it_is_told() -> None:
    """Who declares no overlap has a list that does not move; then each record comes just once."""
    pages = read_through(OFFSET | {"overlap": 0}, Listing(things(11), SIZE))
    assert [record["id"] for page, _ in pages for record in page] == list(range(11))


def test_a_list_that_loses_what_was_read_is_not_over() -> None:
    """An empty page behind records that have gone is no end: what has moved up comes."""
    listing = Listing(things(5), SIZE)

    def between(page: int) -> None:
        if page == 1:
            del listing.records[:4]

    assert 4 in latest(read_through(OFFSET, listing, between=between))


@pytest.mark.parametrize("number", range(1, 8))
def test_a_page_pushed_back_to_where_it_was_read_is_not_the_last(number: int) -> None:
    """Where records come in front, a page may hold nothing new: an end has no more than what was asked for again."""
    listing = Listing(things(8), 3)

    def between(page: int) -> None:
        if page == 1:
            listing.records[:0] = [{"id": 100 + place} for place in range(number)]

    came = latest(read_through(OFFSET | {"size": 100}, listing, between=between))
    assert set(range(8)) <= set(came)


def test_a_list_in_no_order_is_named() -> None:
    """Where nothing that was read is ever found again, paging goes back only so often."""
    listing = Listing(things(12), SIZE)
    ticks = count(100)

    def between(_: int) -> None:
        listing.records = [record | {"at": next(ticks)} for record in listing.records]

    with pytest.raises(CursorStuck, match="changes faster than it is read"):
        read_through(OFFSET, listing, between=between)
    assert listing.asked < 250


@pytest.mark.parametrize("exclusive", [False, True])
def test_more_ties_than_a_page_holds(exclusive: bool) -> None:
    """Size 2 and three records of one value: what would be missed, or never end, is named, and so is the mend."""
    listing = Listing([{"id": name, "at": 1} for name in "ABC"] + [{"id": "D", "at": 2}], 2, is_exclusive=exclusive)
    with pytest.raises(CursorStuck, match=r"raise source\.cursor\.size"):
        read_through(KEYSET | {"size": 2}, listing)


def test_ties_across_pages_that_are_smaller_than_asked_for() -> None:
    """Three records came of a hundred that were asked for: that the list goes on shows that there were no more than fit."""
    listing = Listing(things(7, ties=2), 3, is_exclusive=True)
    assert sorted(latest(read_through(KEYSET | {"size": 100}, listing))) == list(range(7))


def test_ties_that_no_page_holds_though_it_was_declared_to() -> None:
    """A supplier whose pages are smaller than declared is found out: ties that fill those are named as well."""
    ties = [{"id": 10 + n, "at": 5} for n in range(3)]
    listing = Listing([*things(3), *ties, {"id": 99, "at": 6}], 2)
    with pytest.raises(CursorStuck, match="brings nothing new"):
        read_through(KEYSET | {"size": 100}, listing)


def test_ties_that_a_cursor_would_have_to_know_by_the_thousand() -> None:
    """A shard's row keeps a hash of each record of the last two values of a page, so there is a limit to them."""
    declared = KEYSET | {"size": 10_000}
    fit = [{"id": n, "at": 1 + n // 2000} for n in range(4000)]
    cursor = pager(declared).after(None, reading(declared, {"items": [{"id": -1, "at": 0}, *fit]}))
    assert len(json.dumps(cursor)) < 100_000
    with pytest.raises(CursorStuck, match=r"last 4,001 records .*`at`.*source\.cursor\.field .*source\.cursor\.size"):
        pager(declared).after(None, reading(declared, {"items": [*fit, {"id": 4000, "at": 2}]}))


@pytest.mark.parametrize(
    ("value", "sent"), [("2024-05-01T00:00:00.1234567Z", "2024-05-01T00:00:00.1234567Z"), ('a"é', 'a"é'), (2**70, str(2**70))]
)
def test_a_value_is_sent_as_it_came(value: Any, sent: str) -> None:
    """A text goes as text, a number by its digits."""
    paging = pager(KEYSET)
    cursor = paging.after(None, reading(KEYSET, {"items": [{"at": value}]}))
    assert paging.request(FIRST, cursor).query == {"after": sent}


def test_digits_are_kept() -> None:
    """A decimal is no float on its way."""
    paging = pager(KEYSET)
    cursor = paging.after(None, reading(KEYSET, b'{"items": [{"at": 12.3000000000000000000001}]}'))
    assert paging.request(FIRST, cursor).query == {"after": "12.3000000000000000000001"}


@pytest.mark.parametrize("last", [b'{"at": null}', b"{}", b'{"at": {"x": 1}}', b'{"at": true}', b"7"])
def test_a_last_record_without_a_value_is_named(last: bytes) -> None:
    """Nobody can go on from nothing."""
    with pytest.raises(AnswerUnusable, match=r"source\.cursor\.field `at` of the last record"):
        pager(KEYSET).after(None, reading(KEYSET, b'{"items": [{"at": 1}, ' + last + b"]}"))
