"""Fetching: what is stored, in which order, and what is left of it when something goes wrong."""

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs

from sluice.errors import (
    ArtifactsUnavailable,
    CursorStuck,
    Fenced,
    Permanent,
    RateLimited,
    SluiceError,
    StateUnavailable,
    SupplierRefused,
    SupplierResting,
    SupplierUnavailable,
)
from sluice.flow.fetcher import fetch
from sluice.flow.sharder import plan_shards
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.lifecycle import RunEvent, RunStatus, ShardStatus, Step
from sluice.model.run import Failure
from sluice.model.shard import Shard
from sluice.ports import Page, PageRequest
from tests.unit.fakes.artifact_store import MemoryArtifactStore
from tests.unit.fakes.shard_store import MemoryShardStore
from tests.unit.fakes.source import numbered_pages
from tests.unit.flow.workshop import MAY, NORTH, RUN, SOUTH, Workshop, bodies, planned, small_chunks, sync_spec


def test_fetches_a_shard_to_its_end() -> None:
    """All pages are stored in chunks of the policy's size, in order, and the shard is exhausted but still running."""
    workshop = planned(policy=small_chunks(pages=2))
    pages = numbered_pages(5)
    source = workshop.supply(*pages)
    shard = fetch(workshop.services, RUN, NORTH)
    assert workshop.chunks() == [bodies(pages[:2]), bodies(pages[2:4]), bodies(pages[4:])]
    assert shard == workshop.shard()
    assert (shard.status, shard.exhausted, shard.cursor) == (ShardStatus.RUNNING, True, None)
    assert (shard.chunks, shard.pages, shard.records, shard.attempt) == (3, 5, 10, 1)
    assert source.requests == [PageRequest({"region": "north"}, None, None, None, None)]
    pointers = workshop.services.pointers.of(RUN, ArtifactKind.RAW, NORTH)
    assert [pointer.records for pointer in pointers] == [4, 4, 2]
    assert {pointer.expires_at for pointer in pointers} == {workshop.memory.clock.now() + workshop.policy.artifact_ttl}
    assert (workshop.memory.runs[RUN].status, workshop.memory.runs[RUN].step) == (RunStatus.RUNNING, Step.FETCH)


def test_an_empty_answer_is_a_result() -> None:
    """A supplier that has nothing leaves one chunk with its one page; one without even a page leaves an empty chunk."""
    for pages in ([Page(b"[]", 0, None)], []):
        workshop = planned()
        workshop.supply(*pages)
        shard = fetch(workshop.services, RUN, NORTH)
        assert (shard.exhausted, shard.chunks, shard.pages, shard.records) == (True, 1, len(pages), 0)
        assert workshop.chunks() == [bodies(pages)]


def test_window_and_watermark_reach_the_source() -> None:
    """The request carries what the run and the shard were planned with."""
    query = {"region": "{{ shard.region }}", "from": "{{ window.start }}", "since": "{{ watermark }}"}
    workshop = Workshop(spec=sync_spec(source=sync_spec().source.model_dump() | {"query": query}))
    source = workshop.supply(*numbered_pages(1))
    window = {"start": "2024-01-01T00:00:00Z", "end": "2024-01-02T00:00:00Z"}
    run = workshop.admit(window=window)
    plan_shards(workshop.services, RUN)
    workshop.memory.shards[RUN, NORTH] = workshop.shard().model_copy(update={"watermark": MAY})
    fetch(workshop.services, RUN, NORTH)
    assert run.window is not None
    assert source.requests == [PageRequest({"region": "north"}, None, MAY, run.window.start, run.window.end)]


@pytest.mark.parametrize("status", [ShardStatus.RUNNING, ShardStatus.SUCCEEDED, ShardStatus.SKIPPED])
def test_nothing_is_fetched_twice(status: ShardStatus) -> None:
    """A shard that is exhausted, done or skipped is left alone."""
    workshop = planned()
    source = workshop.supply(*numbered_pages(1))
    fetch(workshop.services, RUN, NORTH)
    workshop.memory.shards[RUN, NORTH] = workshop.shard().model_copy(update={"status": status})
    objects = dict(workshop.artifacts.objects)
    assert fetch(workshop.services, RUN, NORTH).status is status
    assert len(source.requests) == 1
    assert workshop.artifacts.objects == objects


def test_what_is_told() -> None:
    """Each page, artifact and checkpoint is one event with its facts, under the run's and the shard's names."""
    workshop = planned()
    workshop.supply(*numbered_pages(2))
    with capture_logs() as logs:
        fetch(workshop.services, RUN, NORTH)
    (pointer,) = workshop.services.pointers.of(RUN, ArtifactKind.RAW, NORTH)
    info, debug = {"log_level": "info"}, {"log_level": "debug"}
    key = pointer.key
    assert logs == [
        {"event": "sluice.shard_claimed", "attempt": 1, "pages": 0, "records": 0, **info},
        {"event": "sluice.page_fetched", "page": 1, "records": 2, "bytes": 11, **debug},
        {"event": "sluice.page_fetched", "page": 2, "records": 2, "bytes": 11, **debug},
        {"event": "sluice.artifact_stored", "artifact": key, "kind": "raw", "bytes": pointer.bytes, "records": 4, **info},
        {
            "event": "sluice.chunk_checkpointed",
            "artifact": key,
            "chunk": 0,
            "pages": 2,
            "records": 4,
            "exhausted": True,
            **info,
        },
        {"event": "sluice.shard_fetched", "chunks": 1, "pages": 2, "records": 4, "seconds": 0.0, **info},
    ]


def test_events_carry_their_context_also_in_the_thread() -> None:
    """What the source logs while it prefetches is bound to the same run and shard; nothing stays bound afterwards."""
    seen: list[dict[str, Any]] = []

    class Watching:
        def pages(self, _: PageRequest) -> Iterator[Page]:
            seen.append(get_contextvars())
            yield Page(b"[]", 0, None)

    fetch(planned(supplier=Watching()).services, RUN, NORTH)
    assert seen == [{"sync": "hotels", "stage": "hotel-content", "run": RUN, "shard": "north", "step": "fetch"}]
    assert get_contextvars() == {}


@given(
    count=st.integers(1, 8), fault=st.integers(0, 7), size=st.integers(1, 4), kind=st.sampled_from([RateLimited, CursorStuck])
)
def test_an_error_costs_no_page(count: int, fault: int, size: int, kind: type[SluiceError]) -> None:
    """Wherever the source fails, all pages before are checkpointed, and the next attempt asks for none of them again."""
    workshop = planned(policy=small_chunks(pages=size))
    pages = numbered_pages(count)
    fault = min(fault, count - 1)
    source = workshop.supply(*pages[:fault], kind("trouble"), *pages[fault:])
    with pytest.raises(kind):
        fetch(workshop.services, RUN, NORTH)
    shard = workshop.shard()
    assert (shard.pages, shard.records, shard.exhausted) == (fault, 2 * fault, False)
    assert shard.cursor == (pages[fault - 1].cursor if fault else None)
    again = fetch(workshop.services, RUN, NORTH)
    assert [page for chunk in workshop.chunks() for page in chunk] == bodies(pages)
    assert source.delivered == pages
    assert (again.pages, again.records, again.exhausted, again.attempt) == (count, 2 * count, True, 2)


def test_a_permanent_error_fails_the_shard() -> None:
    """What only a person can mend is noted with the shard, its cursor standing behind the last good page."""
    workshop = planned()
    workshop.supply(*numbered_pages(3)[:2], SupplierRefused("GET /hotels: 404"))
    with capture_logs() as logs, pytest.raises(SupplierRefused):
        fetch(workshop.services, RUN, NORTH)
    shard = workshop.shard()
    assert (shard.status, shard.cursor, shard.chunks) == (ShardStatus.FAILED, 2, 1)
    assert shard.failure == Failure(error="SupplierRefused", message="GET /hotels: 404")
    told = {"event": "sluice.shard_failed", "error": "SupplierRefused", "message": "GET /hotels: 404", "log_level": "warning"}
    assert logs[-1] == told


def test_a_shard_that_failed_for_now_can_be_claimed_again() -> None:
    """A retryable error is kept by name as well; the next claim goes on from the cursor and forgets it."""
    workshop = planned()
    workshop.supply(SupplierUnavailable("GET /hotels: 500"), *numbered_pages(1))
    with pytest.raises(SupplierUnavailable):
        fetch(workshop.services, RUN, NORTH)
    assert workshop.shard().status is ShardStatus.FAILED
    assert workshop.shard().failure == Failure(error="SupplierUnavailable", message="GET /hotels: 500")
    assert fetch(workshop.services, RUN, NORTH).exhausted
    assert workshop.shard().failure is None


@pytest.mark.parametrize("error", [SupplierUnavailable("GET /hotels: 500"), SupplierResting("left alone"), RateLimited("429")])
def test_a_supplier_in_trouble_makes_no_dead_letter(error: SluiceError) -> None:
    """What its objects are is unknown, and not bad: the shard fails alone, keeps what it has, and asks again from there."""
    workshop = planned()
    source = workshop.supply(*numbered_pages(3)[:2], error, *numbered_pages(3)[2:])
    with pytest.raises(type(error)):
        fetch(workshop.services, RUN, NORTH)
    assert (workshop.shard().status, workshop.shard().cursor) == (ShardStatus.FAILED, 2)
    assert workshop.shard(SOUTH).status is ShardStatus.PENDING
    assert fetch(workshop.services, RUN, NORTH).exhausted
    assert source.requests[-1].cursor == 2
    assert workshop.memory.dead_letters == []


def test_an_ended_run_is_reopened() -> None:
    """Clearing a failed shard's task comes straight to fetching: the run goes on, and so does the shard."""
    workshop = planned()
    workshop.supply(SupplierRefused(), *numbered_pages(1))
    with pytest.raises(Permanent):
        fetch(workshop.services, RUN, NORTH)
    workshop.services.runs.end(workshop.memory.runs[RUN], RunEvent.FAIL)
    assert fetch(workshop.services, RUN, NORTH).exhausted
    assert workshop.memory.runs[RUN].status is RunStatus.RUNNING


def test_shards_do_not_fence_each_other() -> None:
    """The second shard of a run enters nothing: tokens that others hold stay good."""
    workshop = planned()
    workshop.supply(*numbered_pages(1))
    fetch(workshop.services, RUN, NORTH)
    token = workshop.memory.runs[RUN].token
    fetch(workshop.services, RUN, workshop.services.shards.of(RUN)[1].key)
    assert workshop.memory.runs[RUN].token == token


class Usurped(MemoryShardStore):
    """Somebody claims the shard just before its second checkpoint."""

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop.memory)
        self._checkpoints = 0

    def checkpoint(self, shard: Shard, pointer: Pointer, lease_ttl: timedelta) -> Shard:
        self._checkpoints += 1
        if self._checkpoints == 2:
            self.claim(RUN, NORTH)
        return super().checkpoint(shard, pointer, lease_ttl)


def test_a_worker_that_lost_its_shard_stops() -> None:
    """`Fenced` passes untouched: nothing is flushed or failed, and what the successor will read is as it was."""
    workshop = planned(policy=small_chunks())
    workshop.shards = Usurped(workshop)
    workshop.supply(*numbered_pages(4))
    with pytest.raises(Fenced):
        fetch(workshop.services, RUN, NORTH)
    assert (workshop.shard().status, workshop.shard().chunks, workshop.shard().attempt) == (ShardStatus.RUNNING, 1, 2)
    assert len(workshop.chunks()) == 1


def test_a_lost_worker_cannot_damage_its_successors_chunks() -> None:
    """Other pages under the same number go under another key, so that a late put overwrites nothing that is committed."""
    workshop = planned(policy=small_chunks())
    workshop.shards = Usurped(workshop)
    workshop.supply(*numbered_pages(4))
    with pytest.raises(Fenced):
        fetch(workshop.services, RUN, NORTH)
    late = [key for key in workshop.artifacts.objects if "|1|" in key]
    workshop.shards = None
    changed = [Page(page.body.replace(b"page", b"edit"), page.records, page.cursor) for page in numbered_pages(4)]
    workshop.supply(*changed)
    fetch(workshop.services, RUN, NORTH)
    assert workshop.chunks()[1:] == [[page.body] for page in changed[1:]]
    committed = {pointer.key for pointer in workshop.services.pointers.of(RUN, ArtifactKind.RAW)}
    assert len(late) == 1
    assert late[0] not in committed


class Failing(MemoryArtifactStore):
    """Raises an error at the puts of raw chunks that are numbered."""

    def __init__(self, error: SluiceError, *numbers: int) -> None:
        super().__init__()
        self._error = error
        self._numbers = numbers
        self.puts = 0

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        if ref.kind is ArtifactKind.RAW:
            self.puts += 1
            if self.puts in self._numbers:
                raise self._error
        return super().put(ref, data, records, expires_at)


def test_no_pointer_without_its_artifact() -> None:
    """A store that is away stops the attempt at once, with neither pointer nor cursor ahead of the bytes."""
    artifacts = Failing(ArtifactsUnavailable(), 2)
    workshop = planned(policy=small_chunks(), artifacts=artifacts)
    workshop.supply(*numbered_pages(3))
    with pytest.raises(ArtifactsUnavailable):
        fetch(workshop.services, RUN, NORTH)
    assert artifacts.puts == 2
    assert (workshop.shard().cursor, workshop.shard().chunks, len(workshop.chunks())) == (1, 1, 1)
    assert fetch(workshop.services, RUN, NORTH).pages == 3
    assert [page for chunk in workshop.chunks() for page in chunk] == bodies(numbered_pages(3))


def test_a_flush_that_fails_is_what_counts() -> None:
    """If the good pages cannot be saved, the shard is not failed by what came after them: the next attempt meets it again."""
    workshop = planned(artifacts=Failing(StateUnavailable(), 1))
    workshop.supply(*numbered_pages(3)[:2], SupplierRefused())
    with pytest.raises(StateUnavailable):
        fetch(workshop.services, RUN, NORTH)
    assert (workshop.shard().status, workshop.shard().chunks) == (ShardStatus.RUNNING, 0)


class Meeting(MemoryArtifactStore):
    """Stores the first raw chunk only when the supplier has been asked for the page after it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for_next = threading.Event()
        self.stored = threading.Event()
        self.met = False

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        if ref.kind is ArtifactKind.RAW:
            self.met = self.met or self.asked_for_next.wait(20)
            self.stored.set()
        return super().put(ref, data, records, expires_at)


class Slow:
    """Answers for the second page only when the first chunk is being stored."""

    def __init__(self, artifacts: Meeting) -> None:
        self._artifacts = artifacts

    def pages(self, _: PageRequest) -> Iterator[Page]:
        yield Page(b"first page.", 1, 1)
        self._artifacts.asked_for_next.set()
        assert self._artifacts.stored.wait(20)
        yield Page(b"second page", 1, None)


def test_the_next_page_is_under_way_while_one_is_stored() -> None:
    """The request for the second page begins before the first chunk is stored, and is answered after."""
    artifacts = Meeting()
    workshop = planned(policy=small_chunks(), artifacts=artifacts, supplier=Slow(artifacts))
    assert fetch(workshop.services, RUN, NORTH).pages == 2
    assert artifacts.met


class Interrupted(Meeting):
    """Is stopped from the keyboard while the next page is under way."""

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        if ref.kind is ArtifactKind.RAW:
            assert self.asked_for_next.wait(20)
            raise KeyboardInterrupt
        return super().put(ref, data, records, expires_at)


class Silent:
    """Leaves the second request without an answer until it is released, or for long."""

    def __init__(self, artifacts: Meeting) -> None:
        self._artifacts = artifacts
        self.released = threading.Event()
        self.was_waited_for = False

    def pages(self, _: PageRequest) -> Iterator[Page]:
        yield Page(b"first page.", 1, 1)
        self._artifacts.asked_for_next.set()
        self.was_waited_for = not self.released.wait(5)
        yield Page(b"second page", 1, None)


def test_an_interrupt_does_not_wait_for_the_supplier() -> None:
    """Ctrl-C goes through at once, whatever the request under way still takes."""
    artifacts = Interrupted()
    supplier = Silent(artifacts)
    workshop = planned(policy=small_chunks(), artifacts=artifacts, supplier=supplier)
    with pytest.raises(KeyboardInterrupt):
        fetch(workshop.services, RUN, NORTH)
    assert not supplier.was_waited_for
    supplier.released.set()


def test_a_chunk_does_not_wait_for_a_slow_supplier() -> None:
    """Pages that are old enough are stored while the next request is still without an answer."""
    artifacts = Meeting()
    policy = small_chunks(pages=1000, age=timedelta(milliseconds=20))
    workshop = planned(policy=policy, artifacts=artifacts, supplier=Slow(artifacts))
    fetch(workshop.services, RUN, NORTH)
    assert workshop.chunks() == [[b"first page."], [b"second page"]]
