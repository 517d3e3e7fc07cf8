"""The order in which garbage goes, and what is not touched without knowing enough."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import ArtifactsUnavailable, TargetUnavailable
from sluice.flow.publisher import publish
from sluice.flow.reviewer import review
from sluice.flow.settlement import settle
from sluice.model.artifact import Pointer
from sluice.model.base import ShardKey
from sluice.model.spec import SyncSpec
from sluice.ports import Services
from sluice.upkeep.collection import collect
from tests.unit.fakes.artifact_store import MemoryArtifactStore
from tests.unit.fakes.garbage_store import MemoryGarbageStore
from tests.unit.flow.workshop import MAY, NORTH, RUN, SOUTH, Workshop, sync_spec

LONG = timedelta(days=400)


@pytest.fixture
def workshop() -> Workshop:
    """A run that has published nothing, since its supplier refused all, and ended long ago."""
    workshop = Workshop()
    workshop.equip()
    workshop.begin()
    workshop.bring_in(NORTH, ("h1", MAY))
    workshop.lose(SOUTH)
    settle(workshop.services, RUN)
    workshop.memory.clock.move(LONG)
    return workshop


def with_garbage(workshop: Workshop, **changes: Any) -> tuple[Services, MemoryGarbageStore]:
    """Return the services, and the store to look at."""
    store = MemoryGarbageStore(workshop.memory)
    return replace(workshop.services, garbage=store, **changes), store


def test_all_that_has_outlived_its_time_goes_and_is_told(workshop: Workshop) -> None:
    """First what nobody points to, then bytes, what pointed to them, and the run; a dry run says the same before."""
    services, store = with_garbage(workshop)
    before = dict(workshop.artifacts.objects)
    estimated = collect(services, dry_run=True)
    assert workshop.artifacts.objects == before
    with capture_logs() as logs:
        garbage = collect(services, dry_run=False)
    assert garbage == estimated
    assert (garbage.artifacts, garbage.bytes, garbage.runs) == (len(before), sum(map(len, before.values())), 1)
    assert (workshop.artifacts.objects, workshop.memory.pointers, workshop.memory.runs) == ({}, {}, {})
    assert store.steps[0] == "estimate 30 7"
    assert list(dict.fromkeys(store.steps[2:])) == [
        "orphans",
        "silent 7",
        "control 30",
        "session",
        "condemn",
        "remove",
        "runs 7",
    ]
    assert [log["artifacts"] for log in logs if log["event"] == log_events.GARBAGE_COLLECTED] == [len(before)]


def test_the_second_time_nothing_is_left(workshop: Workshop) -> None:
    """Collecting again removes nothing."""
    services, _ = with_garbage(workshop)
    collect(services, dry_run=False)
    again = collect(services, dry_run=False)
    assert (again.artifacts, again.runs) == (0, 0)


class Stubborn(MemoryArtifactStore):
    """An object store that goes down in the middle."""

    def remove(self, pointer: Pointer) -> None:
        """Remove two, then no more."""
        if len(self.objects) <= 3:
            raise ArtifactsUnavailable
        super().remove(pointer)


def test_an_object_store_that_goes_down_leaves_the_pointers(workshop: Workshop) -> None:
    """No pointer goes before its bytes; the next collection goes on."""
    stubborn = Stubborn()
    stubborn.objects = workshop.artifacts.objects
    pointers = dict(workshop.memory.pointers)
    services, _ = with_garbage(workshop, artifacts=stubborn)
    with pytest.raises(ArtifactsUnavailable):
        collect(services, dry_run=False)
    assert workshop.memory.pointers == pointers
    assert collect(with_garbage(workshop)[0], dry_run=False).runs == 1
    assert workshop.artifacts.objects == {}


def test_nothing_goes_of_a_sync_whose_target_is_silent(workshop: Workshop) -> None:
    """It is not known what an undo would need; the reason is told, and other state goes all the same."""

    class Silent:
        def publications(self, sync: str, limit: int) -> list[Any]:
            raise TargetUnavailable(f"{sync}: no answer for {limit}")

    def silent(_: SyncSpec) -> Any:
        return Silent()

    services, store = with_garbage(workshop, ledger=silent)
    garbage = collect(services, dry_run=False)
    assert (garbage.artifacts, garbage.runs, garbage.kept) == (0, 0, {"hotels": "hotels: no answer for 1"})
    assert "session" in store.steps


def test_the_newest_publication_is_kept() -> None:
    """However long ago it was, it can be explained and undone."""
    workshop = Workshop(spec=sync_spec(review={"first_load": "auto-approve"}))
    workshop.equip()
    workshop.begin()
    for key, hotel in ((NORTH, "h1"), (SOUTH, "h2")):
        workshop.bring_in(ShardKey(key), (hotel, MAY))
    review(workshop.services, RUN)
    assert publish(workshop.services, RUN) is not None
    settle(workshop.services, RUN)
    workshop.memory.clock.move(LONG)
    garbage = collect(with_garbage(workshop)[0], dry_run=False)
    assert (garbage.artifacts, garbage.runs, garbage.kept) == (0, 0, {})
    assert RUN in workshop.memory.runs
