"""What every `Source` does, on the fake and on a JSON API over HTTP."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from sluice.errors import SupplierRefused
from sluice.model.source import RestSource as RestSpec
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import Page, PageRequest, Source
from tests.support.restraints import lone_source
from tests.support.scripted_supplier import answer, scripted
from tests.unit.fakes.source import ListedSource

Supply = Callable[[list[Page | SupplierRefused]], Source]

POLICY = StagePolicy(retry=RetryPolicy(attempts=1, base=timedelta(milliseconds=1)))
FIRST = Page(b'{"hotels": [1, 2], "next": "b"}', 2, "b")
SECOND = Page(b'{"hotels": [], "next": 3}', 0, 3)
LAST = Page(b'{"hotels": [4]}', 1, None)


def request_from(cursor: str | int | None) -> PageRequest:
    """Ask for the pages behind a cursor."""
    return PageRequest(shard={}, cursor=cursor, watermark=None, window_start=None, window_end=None)


@pytest.fixture(params=["fake", "rest"])
def supply(request: pytest.FixtureRequest) -> Iterator[Supply]:
    """Make a source that has some pages, or an error between them."""
    if request.param == "fake":
        yield ListedSource
        return
    declared = RestSpec.model_validate(
        {
            "kind": "rest",
            "connection": "shop",
            "path": "/hotels",
            "records": "hotels",
            "cursor": {"path": "next", "parameter": "cursor"},
        }
    )
    with scripted() as server:

        def make(answers: list[Page | SupplierRefused]) -> Source:
            server.answers = [answer(page.body) if isinstance(page, Page) else answer({}, "403 Forbidden") for page in answers]
            return lone_source(declared, server.connection(), POLICY)

        yield make


def test_pages_come_in_order_until_none_follows(supply: Supply) -> None:
    """Each page once, with its bytes, count and cursor; empty pages and both kinds of cursor included."""
    assert list(supply([FIRST, SECOND, LAST]).pages(request_from(None))) == [FIRST, SECOND, LAST]


def test_nothing_is_asked_for_before_it_is_wanted(supply: Supply) -> None:
    """Pages are asked for one by one, so an error behind a page does not keep the page."""
    pages = supply([FIRST, SupplierRefused()]).pages(request_from(None))
    assert next(pages) == FIRST
    with pytest.raises(SupplierRefused):
        next(pages)


def test_a_source_can_be_read_again(supply: Supply) -> None:
    """A second reading, as after a failed one, begins where it is asked to."""
    source = supply([SupplierRefused(), LAST])
    with pytest.raises(SupplierRefused):
        next(source.pages(request_from(None)))
    assert list(source.pages(request_from(None))) == [LAST]
