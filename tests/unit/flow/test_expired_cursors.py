"""Cursors that a supplier does not know any more: the shard begins again, once, or as long as it comes further."""

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import CursorExpired, SupplierUnavailable
from sluice.flow.fetcher import fetch
from sluice.model.lifecycle import ShardStatus
from tests.unit.fakes.source import numbered_pages
from tests.unit.flow.workshop import NORTH, RUN, Workshop, bodies, planned, small_chunks


def expired() -> CursorExpired:
    """What the supplier says."""
    return CursorExpired("GET /hotels: 410 Gone")


def came_to(workshop: Workshop) -> tuple[object, ...]:
    """What the shard has come to."""
    shard = workshop.shard()
    return shard.status, shard.epoch, shard.pages, shard.exhausted


def test_the_shard_begins_again_at_once() -> None:
    """What was fetched before counts no more; the pages of the new epoch are there once, in order."""
    workshop = planned(policy=small_chunks())
    pages = numbered_pages(4)
    source = workshop.supply(*pages[:2], expired(), *pages[2:])
    with capture_logs() as logs:
        fetch(workshop.services, RUN, NORTH)
    assert came_to(workshop) == (ShardStatus.RUNNING, 1, 4, True)
    assert [page for chunk in workshop.chunks() for page in chunk] == bodies(pages)
    assert [request.cursor for request in source.requests] == [None, None]
    told = {"epoch": 1, "pages": 2, "message": "GET /hotels: 410 Gone", "log_level": "warning"}
    assert [entry for entry in logs if entry["event"] == log_events.SHARD_BEGUN_AGAIN] == [
        {"event": log_events.SHARD_BEGUN_AGAIN, **told}
    ]


def test_a_resumed_shard_whose_cursor_is_too_old() -> None:
    """A shard that failed, and is gone on with a day later, begins again as well."""
    workshop = planned(policy=small_chunks())
    pages = numbered_pages(4)
    source = workshop.supply(*pages[:2], SupplierUnavailable(), expired(), *pages[2:])
    with pytest.raises(SupplierUnavailable):
        fetch(workshop.services, RUN, NORTH)
    fetch(workshop.services, RUN, NORTH)
    assert came_to(workshop) == (ShardStatus.RUNNING, 1, 4, True)
    assert [request.cursor for request in source.requests] == [None, 2, None]


def test_as_long_as_it_comes_further() -> None:
    """A cursor that expires again, further on, is worth another beginning."""
    workshop = planned(policy=small_chunks())
    pages = numbered_pages(4)
    workshop.supply(pages[0], expired(), pages[1], expired(), pages[2], expired(), pages[3])
    fetch(workshop.services, RUN, NORTH)
    assert came_to(workshop) == (ShardStatus.RUNNING, 3, 4, True)
    assert [page for chunk in workshop.chunks() for page in chunk] == bodies(pages)


def test_not_for_ever() -> None:
    """A cursor that expires again where it did before fails the shard, which keeps what it has for whoever looks."""
    workshop = planned(policy=small_chunks())
    pages = numbered_pages(4)
    source = workshop.supply(*pages[:2], expired(), expired(), *pages[2:])
    with pytest.raises(CursorExpired):
        fetch(workshop.services, RUN, NORTH)
    assert came_to(workshop) == (ShardStatus.FAILED, 1, 2, False)
    assert len(source.requests) == 2
    failure = workshop.shard().failure
    assert failure is not None
    assert failure.error == "CursorExpired"
