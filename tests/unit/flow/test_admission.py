"""Admission: which requests are the same, which are refused, and what a second try of one finds."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest

from sluice.errors import UsageInvalid
from sluice.flow.admission import admit, look_again, request_key
from sluice.flow.pinned_spec import pinned_spec
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Mode, Origin, ReviewMode, Run, RunRequest, Window
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from tests.support.nouns import MINUTE, NOW, OVER
from tests.unit.flow.workshop import RUN, Workshop, sync_spec

SOURCE = sync_spec().source.model_dump()
FULL_ONLY = {"source": SOURCE | {"watermark": None}}


def key(mode: Mode = Mode.FULL, spec: SyncSpec | None = None, spec_hash: str = "5" * 64, **asked: Any) -> str:
    """The key of a request."""
    return request_key(spec or sync_spec(), mode, RunRequest(sync="hotels", origin=Origin(), **asked), spec_hash)


@pytest.mark.parametrize(
    "other",
    [
        key(Mode.INCREMENTAL),
        key(window=Window(start=NOW, end=NOW + timedelta(days=1))),
        key(shards=("north",)),
        key(shards=("north", "south")),
        key(review=ReviewMode.ALWAYS),
        key(spec_hash="6" * 64),
        key(spec=sync_spec(tenant="acme")),
        key(spec=sync_spec(stage="hotel-rates")),
        key(spec=sync_spec(version=2)),
        key(spec=sync_spec(sync="rooms")),
    ],
    ids=["mode", "window", "a shard", "all shards by name", "review", "spec", "tenant", "stage", "version", "sync"],
)
def test_whatever_shapes_the_work_makes_another_request(other: str) -> None:
    """Two requests that differ in it may run side by side."""
    assert other != key()


def test_windows_differ_by_either_end() -> None:
    """Both ends are part of the key."""
    soon, later = NOW + timedelta(days=1), NOW + timedelta(days=2)
    windows = [Window(start=NOW, end=soon), Window(start=NOW, end=later), Window(start=soon, end=later)]
    assert len({key(window=window) for window in windows}) == 3


def test_the_same_work_is_the_same_request() -> None:
    """However its shards are listed, and whoever asks."""
    assert key(shards=("south", "north", "south")) == key(shards=("north", "south"))
    asked = RunRequest(sync="hotels", origin=Origin(dag_id="hotels", dag_run_id="manual"))
    assert request_key(sync_spec(), Mode.FULL, asked, "5" * 64) == key()


@pytest.mark.parametrize(
    ("changes", "asked", "mode"),
    [
        ({}, None, Mode.INCREMENTAL),
        ({}, Mode.FULL, Mode.FULL),
        ({}, Mode.INCREMENTAL, Mode.INCREMENTAL),
        (FULL_ONLY, None, Mode.FULL),
        (FULL_ONLY, Mode.FULL, Mode.FULL),
    ],
)
def test_the_mode_is_the_lightest_the_spec_can(changes: dict[str, Any], asked: Mode | None, mode: Mode) -> None:
    """Unless one is asked for."""
    assert Workshop(spec=sync_spec(**changes)).admit(mode=asked).mode is mode


def test_a_sync_without_a_watermark_cannot_be_incremental() -> None:
    """That is refused before anything is written."""
    workshop = Workshop(spec=sync_spec(**FULL_ONLY))
    with pytest.raises(UsageInvalid, match=r"hotels declares no source\.watermark"):
        workshop.admit(mode=Mode.INCREMENTAL)
    assert (workshop.memory.runs, workshop.memory.leases, workshop.artifacts.objects) == ({}, {}, {})


def test_a_window_that_nothing_asks_for_is_refused() -> None:
    """It would be ignored, and everything be taken for what it spans."""
    window = Window(start=NOW, end=NOW + timedelta(days=1))
    with pytest.raises(UsageInvalid, match="nothing that hotels asks its supplier depends on a window"):
        Workshop().admit(window=window)
    source = SOURCE | {"query": {"region": "{{ shard.region }}", "from": "{{ window.start }}", "since": "{{ watermark }}"}}
    assert Workshop(spec=sync_spec(source=source)).admit(window=window).window == window


def test_an_admitted_run_is_pending_and_pinned() -> None:
    """It holds the flight of its request, and its spec is stored as long as its policy keeps artifacts."""
    workshop = Workshop()
    run = workshop.admit(shards=("south", "north", "south"))
    assert (run.status, run.step, run.shards) == (RunStatus.PENDING, Step.ADMIT, ("north", "south"))
    assert workshop.memory.leases[run.request_key].owner == RUN
    (pointer,) = workshop.services.pointers.of(RUN, ArtifactKind.SPEC)
    assert pointer.expires_at == run.created_at + workshop.policy.artifact_ttl
    assert run.spec_hash == hashlib.sha256(workshop.artifacts.get(pointer)).hexdigest()


def test_admitting_a_run_again_changes_nothing() -> None:
    """Not even when its spec has been edited since: the run goes on with the one it was admitted with."""
    workshop = Workshop()
    admitted, first = workshop.admit(), workshop.spec
    pointers = dict(workshop.memory.pointers)
    assert workshop.admit() == admitted
    workshop.spec = sync_spec(description="edited")
    assert workshop.admit() == admitted
    assert workshop.memory.pointers == pointers
    assert pinned_spec(workshop.services, admitted) == first


def cut_off() -> Workshop:
    """A workshop whose run was opened, and whose spec was not pinned."""
    workshop = Workshop()
    workshop.admit()
    workshop.memory.pointers.clear()
    return workshop


def test_a_second_try_pins_what_the_first_could_not() -> None:
    """The spec being the same."""
    workshop = cut_off()
    assert workshop.services.pointers.of(RUN, ArtifactKind.SPEC) == []
    run = workshop.admit()
    assert pinned_spec(workshop.services, run) == workshop.spec


def test_a_spec_that_was_edited_between_two_tries_is_refused() -> None:
    """The run's request key speaks of the other spec, so nothing may be pinned under it."""
    workshop = cut_off()
    workshop.spec = sync_spec(description="edited")
    with pytest.raises(UsageInvalid, match=r"the spec of hotels was edited while run run-1 was being admitted"):
        workshop.admit()
    assert workshop.services.pointers.of(RUN, ArtifactKind.SPEC) == []


def asked_again(workshop: Workshop, name: str = "run-2", **changes: Any) -> Run:
    """Admit another run."""
    return admit(workshop.services, RunRequest(sync="hotels", origin=Origin(), **changes), RunId(name))


def test_a_request_whose_flight_is_taken() -> None:
    """A second run of it follows, with its spec pinned as every run's, while another request is let through."""
    workshop = Workshop()
    workshop.admit()
    follower = asked_again(workshop)
    assert (follower.status, follower.follows) == (RunStatus.WAITING, RUN)
    assert pinned_spec(workshop.services, follower) == workshop.spec
    assert workshop.memory.leases[follower.request_key].owner == RUN
    assert asked_again(workshop, "run-3", mode=Mode.FULL).status is RunStatus.PENDING


def test_a_result_that_is_replayed() -> None:
    """It needs no flight, and leaves the one of its request alone."""
    workshop = Workshop(policy=StagePolicy(result_ttl=timedelta(hours=1)))
    run = workshop.admit()
    workshop.services.runs.end(workshop.services.runs.enter(run.id, Step.SETTLE, OVER), RunEvent.SUCCEED)
    replay = asked_again(workshop)
    assert (replay.status, replay.follows, workshop.memory.leases) == (RunStatus.SUCCEEDED, RUN, {})
    assert pinned_spec(workshop.services, replay) == workshop.spec
    assert asked_again(workshop, "run-3", force=True).status is RunStatus.PENDING


@pytest.mark.parametrize(
    ("sharing", "asked"),
    [
        ({"stage": "hotel-rates"}, {}),
        ({"tenant": "acme"}, {}),
        ({"version": 2}, {}),
        ({"description": "edited"}, {}),
        ({}, {"shards": ("north",)}),
    ],
    ids=["stage", "tenant", "version", "spec", "input"],
)
def test_requests_that_differ_share_nothing(sharing: dict[str, Any], asked: dict[str, Any]) -> None:
    """Neither the flight nor, later, the result."""
    workshop = Workshop(policy=StagePolicy(result_ttl=timedelta(hours=1)))
    first = workshop.admit()
    workshop.spec = sync_spec(**sharing)
    other = asked_again(workshop, **asked)
    assert (other.status, other.follows) == (RunStatus.PENDING, None)
    workshop.services.runs.end(workshop.services.runs.enter(first.id, Step.SETTLE, MINUTE), RunEvent.SUCCEED)
    assert asked_again(workshop, "run-3", **asked).follows == other.id


def test_a_follower_looks_again_with_what_it_was_admitted_with() -> None:
    """Neither its request nor its spec is read once more, and nothing more is stored."""
    workshop = Workshop()
    workshop.admit()
    follower = asked_again(workshop)
    stored = dict(workshop.artifacts.objects)
    workshop.spec = sync_spec(description="edited", version=2)
    assert asked_again(workshop) == look_again(workshop.services, follower) == follower
    workshop.services.runs.end(workshop.memory.runs[RUN], RunEvent.CANCEL)
    ended = look_again(workshop.services, follower)
    assert (ended.status, ended.follows, workshop.artifacts.objects) == (RunStatus.CANCELLED, RUN, stored)


def test_to_look_again_revives_nobody() -> None:
    """A follower that somebody has ended stays ended, unless it is admitted again."""
    workshop = Workshop()
    workshop.admit()
    follower = asked_again(workshop)
    ended = workshop.services.runs.end(follower, RunEvent.CANCEL)
    assert look_again(workshop.services, follower) == ended
    assert asked_again(workshop).status is RunStatus.WAITING
