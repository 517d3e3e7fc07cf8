"""What limits of a stage the fetcher keeps to: when a chunk closes, how hard it is compressed, how long it may stand still."""

import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
import structlog

from sluice.errors import (
    NoProgress,
)
from sluice.flow.fetcher import fetch
from sluice.model.lifecycle import ShardStatus
from sluice.model.stage import StagePolicy
from sluice.ports import Page, PageRequest
from tests.unit.fakes.chunk_codec import PlainChunkCodec
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.source import numbered_pages
from tests.unit.flow.workshop import NORTH, RUN, planned, small_chunks


def test_two_stages_close_chunks_at_the_size_of_each() -> None:
    """`chunk_bytes`: the same pages make one chunk here and four there."""
    sizes = {}
    for size in (22, 1000):
        workshop = planned(policy=StagePolicy(chunk_bytes=size))
        workshop.supply(*numbered_pages(7))
        fetch(workshop.services, RUN, NORTH)
        sizes[size] = [len(chunk) for chunk in workshop.chunks()]
    assert sizes == {22: [2, 2, 2, 1], 1000: [7]}


class Levels(PlainChunkCodec):
    """Notes how hard it was asked to compress."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def pack(self, pages: Sequence[bytes], level: int) -> bytes:
        self.asked.append(level)
        return super().pack(pages, level)


def test_two_stages_compress_as_hard_as_each_declares() -> None:
    """`compression` is the level of every raw chunk."""
    for level in (1, 19):
        codec = Levels()
        workshop = planned(policy=small_chunks().model_copy(update={"compression": level}), codec=codec)
        workshop.supply(*numbered_pages(3))
        fetch(workshop.services, RUN, NORTH)
        assert codec.asked == [level] * 3


@pytest.mark.parametrize(("age", "chunks"), [(timedelta(seconds=10), [3, 3, 1]), (timedelta(seconds=5), [2, 2, 2, 1])])
def test_two_stages_close_chunks_at_the_age_of_each(age: timedelta, chunks: list[int]) -> None:
    """`chunk_age`: small pages that come slowly are checkpointed then, counted from the chunk's first page."""
    workshop = planned(policy=small_chunks(pages=1000, age=age))
    workshop.supply(*numbered_pages(7))

    def move_on(_logger: object, _method: str, event: dict[str, Any]) -> dict[str, Any]:
        if event["event"] == "sluice.page_fetched":
            workshop.memory.clock.move(timedelta(seconds=4))
        raise structlog.DropEvent

    before = structlog.get_config()["processors"]
    structlog.configure(processors=[move_on])
    try:
        fetch(workshop.services, RUN, NORTH)
    finally:
        structlog.configure(processors=before)
    assert [len(chunk) for chunk in workshop.chunks()] == chunks


class Stuck:
    """Never answers the second request, and time passes."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.released = threading.Event()

    def pages(self, _: PageRequest) -> Iterator[Page]:
        yield Page(b"first page.", 1, 1)
        while not self.released.wait(0.01):
            self._clock.move(timedelta(minutes=16))
        yield Page(b"second page", 1, None)


def test_a_shard_that_comes_no_further_fails() -> None:
    """It neither waits for the supplier nor keeps its lease; what had come is checkpointed, and its next try goes on there."""
    policy = small_chunks().model_copy(update={"heartbeat": timedelta(milliseconds=5)})
    workshop = planned(policy=policy)
    workshop.supplier = supplier = Stuck(workshop.memory.clock)
    with pytest.raises(NoProgress):
        fetch(workshop.services, RUN, NORTH)
    supplier.released.set()
    shard = workshop.shard()
    assert (shard.status, shard.cursor, shard.chunks) == (ShardStatus.FAILED, 1, 1)
    assert shard.failure is not None
    assert shard.failure.error == "NoProgress"
