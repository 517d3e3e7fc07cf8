"""Progress is told now and then, and stands in nobody's way."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import StateUnavailable
from sluice.flow.fetcher import fetch
from sluice.flow.progress import ToldProgress
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import ShardStatus
from sluice.model.progress import TOLD_EVERY, Progress
from sluice.ports import Page
from tests.unit.fakes.progress_store import MemoryProgressStore
from tests.unit.flow.workshop import NORTH, RUN, Workshop, page

PAGE = Page(b"twelve bytes", 3, "next")


class CountedStore:
    """Keeps all that it is told."""

    def __init__(self) -> None:
        self.told: list[Progress] = []

    def tell(self, progress: Progress) -> None:
        """Keep it."""
        self.told.append(progress)

    def of(self, _: RunId) -> dict[ShardKey, Progress]:
        """Tell nothing."""
        return {}


class LostStore(CountedStore):
    """Cannot be reached."""

    def tell(self, progress: Progress) -> None:
        """Fail."""
        super().tell(progress)
        raise StateUnavailable


def claimed() -> Workshop:
    """A workshop with a shard that is being fetched."""
    workshop = Workshop()
    workshop.begin()
    workshop.services.shards.claim(RUN, NORTH)
    return workshop


@given(st.lists(st.integers(0, 40).map(lambda eighths: eighths / 8), max_size=60))  # exact as floats, however many are added
def test_it_is_told_at_most_every_two_seconds(gaps: list[float]) -> None:
    """However fast pages come, and the last word is never older than that when a page comes."""
    workshop, store = claimed(), CountedStore()
    progress = ToldProgress(replace(workshop.services, progress=store), workshop.shard())
    for number, gap in enumerate(gaps, start=1):
        workshop.memory.clock.move(timedelta(seconds=gap))
        progress.received(PAGE, workshop.shard())
        if gap >= TOLD_EVERY.total_seconds():
            assert store.told[-1].pages == number
    assert len(store.told) <= sum(gaps) / TOLD_EVERY.total_seconds() + 1e-6
    assert [told.pages for told in store.told] == sorted({told.pages for told in store.told})


def test_it_adds_up_the_open_chunk_alone() -> None:
    """After a checkpoint it begins at nothing, under the next chunk's number."""
    workshop, store = claimed(), CountedStore()
    progress = ToldProgress(replace(workshop.services, progress=store), workshop.shard())
    shard = workshop.shard()
    for chunks in (0, 0, 1):
        workshop.memory.clock.move(TOLD_EVERY)
        progress.received(PAGE, shard.model_copy(update={"chunks": chunks}))
    assert [(told.chunk, told.pages, told.records, told.bytes) for told in store.told] == [
        (0, 1, 3, 12),
        (0, 2, 6, 24),
        (1, 1, 3, 12),
    ]


def test_what_cannot_be_told_is_dropped_counted_and_logged_once() -> None:
    """A shard is fetched to its end though nobody can be told how far it is."""
    workshop, store = Workshop(), LostStore()
    workshop.begin()

    class Slow:
        def pages(self, _: object) -> object:
            for number in (1, 2, 3):
                workshop.memory.clock.move(TOLD_EVERY)
                yield page(number, (f"h{number}", "2024-05-01T00:00:00Z"), is_last=number == 3)

    workshop.supplier = Slow()
    with capture_logs() as logs:
        shard = fetch(replace(workshop.services, progress=store), RUN, NORTH)
    assert (shard.exhausted, shard.status, shard.pages) == (True, ShardStatus.RUNNING, 3)
    assert len(store.told) > 1
    assert workshop.metrics.of("progress_dropped") == len(store.told)
    dropped = [log for log in logs if log["event"] == log_events.PROGRESS_DROPPED]
    assert [(log["error"], log["log_level"]) for log in dropped] == [("StateUnavailable", "warning")]


def test_whoever_lost_the_shard_tells_nothing() -> None:
    """A woken worker changes not even what is shown."""
    workshop = claimed()
    store = MemoryProgressStore(workshop.memory)
    old = workshop.shard()
    workshop.services.shards.claim(RUN, NORTH)
    store.tell(Progress(run=RUN, shard=NORTH, token=old.token, chunk=0, pages=9))
    assert store.of(RUN) == {}
