"""Page numbers and offsets: what is asked for, what ends a shard, what would never end."""

from typing import Any

import pytest

from sluice.adapters.sources.transport.request import Request
from sluice.errors import AnswerUnusable, CursorStuck
from tests.unit.adapters.sources.rest.paging.listing import FIRST, Listing, pager, read_through, reading

PAGE = {"kind": "page"}
OFFSET = {"kind": "offset", "size": 3}


def numbers(declared: dict[str, Any], records: int, holds: int = 3) -> tuple[int, int]:
    """Return how many pages were asked for, and how many records came."""
    listing = Listing([{"id": n} for n in range(records)], holds)
    pages = read_through(declared, listing)
    return listing.asked, sum(len(page) for page, _ in pages)


@pytest.mark.parametrize(
    ("declared", "records", "asked"),
    [
        (PAGE, 0, 1),
        (PAGE, 6, 3),
        (PAGE, 7, 4),
        (PAGE | {"has_more": "more"}, 6, 2),
        (PAGE | {"total": "total"}, 6, 2),
        (PAGE | {"pages": "pages"}, 6, 2),
        (PAGE | {"pages": "pages"}, 0, 1),
        (PAGE | {"short_page_ends": True, "size": 3}, 7, 3),
        (PAGE | {"short_page_ends": True, "size": 3}, 6, 3),
        (OFFSET | {"overlap": 0}, 7, 4),
        (OFFSET | {"overlap": 0, "total": "total"}, 6, 2),
        (OFFSET | {"has_more": "more"}, 7, 3),
        (OFFSET, 7, 4),
    ],
)
def test_how_many_pages_are_asked_for(declared: dict[str, Any], records: int, asked: int) -> None:
    """An empty page ends a list, and a stop rule saves asking for it."""
    pages, came = numbers(declared, records)
    assert (pages, came >= records) == (asked, True)


def test_the_first_page_is_asked_for_by_its_number() -> None:
    """Some suppliers page only if they are told a page, and some count from 0; a body takes a number as one."""
    assert pager(PAGE).request(FIRST, None).query == {"page": "1"}
    assert pager(PAGE | {"first": 0, "parameter": "p"}).request(FIRST, None).query == {"p": "0"}
    assert pager(OFFSET).request(FIRST, None).query == {"offset": "0"}
    post = {"method": "POST", "body": {}}
    paging = pager(OFFSET | {"into": "body", "parameter": "page.from", "overlap": 0}, **post)
    following = paging.after(None, reading(OFFSET, {"items": [1, 2, 3]}))
    assert paging.request(Request("/things", method="POST", body={}), following).body == {"page": {"from": 3}}


@pytest.mark.parametrize("declared", [PAGE, OFFSET, OFFSET | {"overlap": 0}])
def test_a_supplier_that_ignores_the_parameter(declared: dict[str, Any]) -> None:
    """The same full page would come for ever. Where pages overlap, a list may shift by just one: then it comes twice."""
    paging = pager(declared)
    answer = reading(declared, {"items": [1, 2, 3]})
    second = paging.after(None, answer)
    if declared == OFFSET:
        second = paging.after(second, answer)
    with pytest.raises(CursorStuck, match=rf"ignores '{declared['kind']}' \(source\.cursor\.parameter\)"):
        paging.after(second, answer)


def test_a_supplier_that_gives_its_last_page_for_ever() -> None:
    """Pages went on before, so that it is not the parameter: the message says how to tell the end."""
    paging = pager(PAGE)
    second = paging.after(None, reading(PAGE, {"items": [1, 2]}))
    third = paging.after(second, reading(PAGE, {"items": [3]}))
    with pytest.raises(CursorStuck, match=r"gives its last page for every number behind it.*pages, total or has_more"):
        paging.after(third, reading(PAGE, {"items": [3]}))


@pytest.mark.parametrize("items", [[], None])
@pytest.mark.parametrize("declared", [PAGE, OFFSET])
def test_more_behind_nothing(declared: dict[str, Any], items: list[Any] | None) -> None:
    """An empty page behind which more shall follow is named, and not followed for ever."""
    declared = declared | {"has_more": "more"}
    with pytest.raises(CursorStuck, match="says that more follows"):
        pager(declared).after(None, reading(declared, {"items": items, "more": True}))
    assert pager(declared).after(None, reading(declared, {"items": items, "more": False})) is None


@pytest.mark.parametrize("total", [-1, 1.5, "many", [], True, 10**30])
def test_a_total_that_is_no_number(total: Any) -> None:
    """What stands where the number of records is declared has to be one, as text or number."""
    declared = PAGE | {"total": "total"}
    with pytest.raises(AnswerUnusable, match=r"source\.cursor\.total `total` stands"):
        pager(declared).after(None, reading(declared, {"items": [1], "total": total}))
    assert pager(declared).after(None, reading(declared, {"items": [1], "total": "1"})) is None


def test_what_most_likely_follows() -> None:
    """Pages ahead are guessed, as far as the supplier does not say that there are none."""
    declared = PAGE | {"pages": "pages"}
    paging = pager(declared)
    second = paging.after(None, reading(declared, {"items": [1], "pages": 3}))
    third = paging.guess(second)
    assert paging.request(FIRST, third).query == {"page": "3"}
    assert paging.guess(third) is None
    declared = OFFSET | {"total": "total"}
    paging = pager(declared)
    second = paging.after(None, reading(declared, {"items": [1, 2, 3], "total": 7}))
    asked = [paging.request(FIRST, second).query["offset"]]
    while (second := paging.guess(second)) is not None:
        asked.append(paging.request(FIRST, second).query["offset"])
    assert asked == ["2", "4"]


@pytest.mark.parametrize("kind", ["body", "link", "keyset", "none"])
def test_nobody_knows_what_follows_a_cursor(kind: str) -> None:
    """Where only the answer can tell, nothing is asked ahead."""
    declared = {
        "body": {"kind": "body", "path": "next", "parameter": "c"},
        "keyset": {"kind": "keyset", "size": 2, "field": "id", "parameter": "after"},
    }.get(kind, {"kind": kind})
    assert pager(declared).guess(None) is None
