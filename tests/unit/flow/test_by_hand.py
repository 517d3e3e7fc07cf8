"""What a worker does once a person has taken his shard or his run from him, and what becomes of the run."""

from collections.abc import Callable, Iterator

import pytest

from sluice.errors import Fenced, SluiceError, StoppedByHand, SupplierUnavailable
from sluice.flow.fetcher import fetch
from sluice.flow.inline import run_inline
from sluice.flow.redo import transform
from sluice.model.lifecycle import RunStatus, ShardStatus
from sluice.model.run import Mode, Origin, RunRequest
from sluice.model.shard import Shard
from sluice.ports import Page, PageRequest, Services
from tests.support.nouns import an_actor
from tests.unit.fakes.source import ListedSource, RegionalSource, numbered_pages
from tests.unit.flow.workshop import JUNE, MAY, NORTH, RUN, SOUTH, Workshop, page, planned, small_chunks, sync_spec

Act = Callable[[Services], object]
ADA = an_actor()


def stop(services: Services) -> object:
    """Stop the northern shard."""
    return services.by_hand.stop_shard(services.runs.recent(None, (), 1)[0].id, NORTH, ADA)


def skip(services: Services) -> object:
    """Skip it."""
    return services.by_hand.skip_shard(services.runs.recent(None, (), 1)[0].id, NORTH, ADA)


def reset(services: Services) -> object:
    """Begin it again."""
    return services.by_hand.reset_shard(services.runs.recent(None, (), 1)[0].id, NORTH, ADA)


def cancel(services: Services) -> object:
    """Cancel the run."""
    return services.by_hand.cancel_run(services.runs.recent(None, (), 1)[0].id, ADA)


class Watched(ListedSource):
    """A supplier of four pages; once the first is stored, a person acts, and there may be no further page."""

    def __init__(self, workshop: Workshop, act: Act, error: SluiceError | None = None) -> None:
        super().__init__(numbered_pages(4))
        self._workshop = workshop
        self._act: Act | None = act
        self._error = error

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages."""
        for number, answer in enumerate(super().pages(request)):
            if number == 2 and self._act is not None:
                act, self._act = self._act, None
                act(self._workshop.services)
                if self._error is not None:
                    raise self._error
            yield answer


def fetched(act: Act, error: SluiceError | None = None) -> tuple[Workshop, Callable[[], Shard]]:
    """Return a workshop, and what fetches its northern shard while a person acts."""
    workshop = planned(policy=small_chunks())
    workshop.supplier = Watched(workshop, act, error)
    return workshop, lambda: fetch(workshop.services, RUN, NORTH)


@pytest.mark.parametrize("error", [None, SupplierUnavailable("503")])
def test_a_worker_whose_shard_is_stopped_says_so(error: SluiceError | None) -> None:
    """As an error of that shard alone, so that he goes on with others; and so does whoever tries it again."""
    workshop, work = fetched(stop, error)
    for _ in range(2):
        with pytest.raises(StoppedByHand, match=r"stopped by ada \(cli\): it hangs"):
            work()
    assert workshop.shard().status is ShardStatus.FAILED
    assert len(workshop.chunks()) == workshop.shard().chunks >= 1
    assert fetch(workshop.services, RUN, SOUTH).exhausted


def test_a_worker_whose_shard_is_skipped_is_done_with_it() -> None:
    """He returns it as it is."""
    workshop, work = fetched(skip)
    assert work() == workshop.shard()
    assert workshop.shard().status is ShardStatus.SKIPPED


def test_a_worker_whose_shard_is_reset_begins_again() -> None:
    """At once, from the first page; of what he had fetched before nothing counts."""
    workshop, work = fetched(reset)
    done = work()
    assert (done.epoch, done.pages, done.exhausted) == (1, 4, True)
    assert workshop.chunks() == [[page.body] for page in numbered_pages(4)]


def test_a_worker_whose_run_is_cancelled_stops() -> None:
    """Quietly, and no retry of his does anything."""
    workshop, work = fetched(cancel)
    for _ in range(2):
        with pytest.raises(Fenced):
            work()
    assert (workshop.memory.runs[RUN].status, workshop.memory.leases) == (RunStatus.CANCELLED, {})


def mapped(act: Act) -> Workshop:
    """Return a workshop whose northern shard is fetched; a person acts while the team's function maps it."""
    workshop = planned(policy=small_chunks(), spec=sync_spec())
    workshop.supply(page(1, ("a", MAY)), page(2, ("b", JUNE), is_last=True))
    fetch(workshop.services, RUN, NORTH)
    done: list[object] = []
    codec_pages = workshop.codec.pages

    def acting(chunk: bytes) -> Iterator[bytes]:
        if not done:
            done.append(act(workshop.services))
        yield from codec_pages(chunk)

    workshop.codec.pages = acting  # type: ignore[method-assign]
    workshop.equip()
    return workshop


def test_a_shard_that_is_reset_while_it_is_mapped_is_fetched_and_mapped_again() -> None:
    """By whoever maps it."""
    workshop = mapped(reset)
    done = transform(workshop.services, RUN, NORTH)
    assert (done.status, done.epoch, done.records) == (ShardStatus.SUCCEEDED, 1, 2)


def test_a_shard_that_is_stopped_or_skipped_while_it_is_mapped() -> None:
    """The one is an error of the shard, the other none."""
    with pytest.raises(StoppedByHand):
        transform(mapped(stop).services, RUN, NORTH)
    assert transform(mapped(skip).services, RUN, NORTH).status is ShardStatus.SKIPPED


class AtTheSecondPage(RegionalSource):
    """Two regions; a person acts while the north is asked for its second page."""

    def __init__(self, workshop: Workshop, act: Act) -> None:
        super().__init__(
            north=(page(1, ("a", MAY)), page(2, ("b", JUNE), is_last=True)), south=(page(1, ("c", MAY), is_last=True),)
        )
        self._workshop = workshop
        self._act: Act | None = act

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages."""
        for number, answer in enumerate(super().pages(request)):
            if number == 1 and self._act is not None:
                act, self._act = self._act, None
                act(self._workshop.services)
            yield answer


@pytest.mark.parametrize(
    ("act", "status", "published"),
    [
        (stop, RunStatus.PARTIAL, ["c"]),
        (skip, RunStatus.SUCCEEDED, ["c"]),
        (reset, RunStatus.SUCCEEDED, ["a", "b", "c"]),
        (cancel, RunStatus.CANCELLED, []),
    ],
)
def test_what_becomes_of_a_run(act: Act, status: RunStatus, published: list[str]) -> None:
    """The others are published; of a cancelled run nothing is, and its process ends as the run has."""
    policy = {"first_load": "auto-approve", "auto_approve": {"created": "100%"}}
    workshop = Workshop(spec=sync_spec(review=policy), policy=small_chunks())
    target = workshop.equip()
    workshop.supplier = AtTheSecondPage(workshop, act)
    run = run_inline(workshop.services, RunRequest(sync="hotels", mode=Mode.FULL, origin=Origin()))
    assert (run.status, sorted(target.rows)) == (status, published)
    assert [entry.by for entry in workshop.memory.audit if entry.by == ADA] == [ADA]
