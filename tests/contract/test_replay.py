"""Replays: which shards and chunks of an earlier run become a run's own."""

from datetime import timedelta

import pytest

from sluice.model.artifact import ArtifactKind
from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.lifecycle import ShardStatus, Step
from sluice.model.run import Mode, Redrive, Run, Window
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, NOW, POLICY, a_pointer, a_reject, a_run, plans

PARIS, ROME = ShardKey("paris"), ShardKey("rome")
DONOR = RunId("run-1")
HOUR = Window(start=NOW, end=NOW + timedelta(hours=1))


def fetched(stores: Stores, name: RunId = DONOR, **changes: object) -> None:
    """A run that has fetched Paris, in two chunks, to its end, and a part of Rome."""
    stores.runs.open(a_run(name, **changes), POLICY)
    run = stores.runs.enter(name, Step.FETCH, MINUTE)
    stores.shards.plan(run, plans(PARIS, ROME), {PARIS: "7"})
    for key, chunks in ((PARIS, 2), (ROME, 1)):
        shard = stores.shards.claim(name, key)
        for seq in range(chunks):
            state = {"chunks": seq + 1, "pages": seq + 1, "records": 3, "exhausted": seq == 1, "cursor": seq}
            told = {"until": NOW, "supplied_at": NOW + MINUTE}
            pointer = a_pointer(name, key, f"{key} {seq} {name}", seq=seq)
            shard = stores.shards.checkpoint(shard.model_copy(update={**state, **told}), pointer, MINUTE)


def replaying(stores: Stores, name: str = "run-2", **changes: object) -> Run:
    """A run that replays it, at its second step."""
    facts = {"mode": Mode.REPLAY, "replays": DONOR, "request_key": name}
    stores.runs.open(a_run(name, **{**facts, **changes}), POLICY)
    return stores.runs.enter(RunId(name), Step.SHARD, MINUTE)


def test_what_was_fetched_to_its_end_is_adopted(stores: Stores) -> None:
    """With its raw chunks, not with what was made of them; as fetched, from no watermark on; once, however often asked."""
    fetched(stores)
    run = replaying(stores)
    until = NOW + timedelta(days=365)
    for _ in range(2):
        (shard,) = stores.shards.adopt(run, [DONOR], {PARIS: 3}, until)
    assert (shard.key, shard.status, shard.params) == (PARIS, ShardStatus.PENDING, {"city": "paris"})
    assert shard.version_in(run) == 3
    assert (shard.exhausted, shard.chunks, shard.pages, shard.records) == (True, 2, 2, 3)
    assert (shard.epoch, shard.attempt, shard.watermark, shard.high_mark) == (0, 0, None, None)
    assert (shard.until, shard.supplied_at) == (NOW, NOW + MINUTE)
    pointers = stores.pointers.of(run.id, ArtifactKind.RAW)
    donated = stores.pointers.of(DONOR, ArtifactKind.RAW, PARIS)
    assert [(pointer.key, pointer.sha256) for pointer in pointers] == [(pointer.key, pointer.sha256) for pointer in donated]
    assert {pointer.expires_at for pointer in pointers} == {until}
    claimed = stores.shards.claim(run.id, PARIS)
    assert (claimed.status, claimed.attempt) == (ShardStatus.RUNNING, 0)


def test_pointers_keep_the_longer_time(stores: Stores) -> None:
    """A replay takes nothing from what lives longer anyway."""
    fetched(stores)
    run = replaying(stores)
    stores.shards.adopt(run, [DONOR], {}, NOW)
    assert {pointer.expires_at for pointer in stores.pointers.of(run.id, ArtifactKind.RAW)} == {NOW + timedelta(days=90)}


@pytest.mark.parametrize(("asked", "adopted"), [((), [PARIS]), ((PARIS,), [PARIS]), ((ROME,), [])])
def test_only_what_was_asked_for(stores: Stores, asked: tuple[ShardKey, ...], adopted: list[ShardKey]) -> None:
    """And never what was not fetched to its end."""
    fetched(stores)
    assert [shard.key for shard in stores.shards.adopt(replaying(stores, shards=asked), [DONOR], {}, NOW)] == adopted


def test_a_shard_that_has_lost_a_chunk_is_left_out(stores: Stores) -> None:
    """A part of it would pass for all of it."""
    fetched(stores)
    stores.redos.fetch_again(PARIS, stores.runs.get(DONOR))
    assert stores.shards.adopt(replaying(stores), [DONOR], {}, NOW) == []


@pytest.mark.parametrize("changes", [{}, {"replays": None, "window": HOUR}], ids=["of a run", "of a window"])
def test_only_its_own_dead_letters_are_closed(stores: Stores, changes: dict[str, object]) -> None:
    """What came right in old data may still be wrong in newer data."""
    fetched(stores)
    donor = stores.runs.get(DONOR)
    (paris, rome) = stores.shards.of(DONOR)
    paris, rome = (stores.shards.claim(DONOR, shard.key) for shard in (paris, rome))
    stores.dead_letters.record(donor, paris, [a_reject("h1")], "rejects-0")
    younger = replaying(stores, "run-3", mode=Mode.FULL, replays=None, created_at=NOW + timedelta(hours=2))
    (shard,) = stores.shards.plan(younger, plans(PARIS), {})
    shard = stores.shards.claim(younger.id, shard.key)
    stores.dead_letters.record(younger, shard, [a_reject("h2", artifact="raw-9")], "rejects-0")
    run = replaying(stores, **changes)
    assert stores.dead_letters.close(run, [ObjectKey("h1"), ObjectKey("h2")]) == 1
    (left,) = stores.letter_desk.selected("hotels", Redrive(), 9)
    assert left.reject.key == "h2"


LATER = RunId("run-9")
DAY = Window(start=NOW - timedelta(hours=12), end=NOW + timedelta(hours=12))


def test_a_shard_of_several_runs_has_the_chunks_of_all(stores: Stores) -> None:
    """The older run's first, counted through; what is told of the fetching is the newer's."""
    fetched(stores)
    fetched(stores, LATER, request_key="again")
    run = replaying(stores, replays=None, window=DAY)
    (shard,) = stores.shards.adopt(run, [DONOR, LATER], {}, NOW)
    assert (shard.key, shard.chunks, shard.pages, shard.records, shard.exhausted) == (PARIS, 4, 4, 6, True)
    pointers = stores.pointers.of(run.id, ArtifactKind.RAW)
    assert [pointer.ref.seq for pointer in pointers] == [0, 1, 2, 3]
    chunks = [pointer.key for donor in (DONOR, LATER) for pointer in stores.pointers.of(donor, ArtifactKind.RAW, PARIS)]
    assert [pointer.key for pointer in pointers] == chunks


def test_what_was_taken_over_comes_once(stores: Stores) -> None:
    """A run that went on from a dead one has the same chunks."""
    fetched(stores)
    run = replaying(stores, "run-2")
    stores.shards.adopt(run, [DONOR], {}, NOW)
    both = replaying(stores, "run-3", replays=None, window=DAY)
    (shard,) = stores.shards.adopt(both, [DONOR, run.id], {}, NOW)
    assert shard.chunks == 2


def test_the_runs_of_a_window(stores: Stores) -> None:
    """Those that asked the supplier and were begun from its start on and before its end, oldest first; none of another sync."""
    for name, hours in (("early", -1), ("first", 0), ("second", 1), ("late", 2)):
        began = NOW + timedelta(hours=hours)
        stores.runs.open(a_run(name, request_key=name, created_at=began), POLICY)
    stores.runs.open(a_run("replay", request_key="replay", mode=Mode.REPLAY, replays=RunId("first")), POLICY)
    stores.runs.open(a_run("other", request_key="other", sync="rates"), POLICY)
    stores.runs.open(a_run("follower", request_key="first"), POLICY)
    window = Window(start=NOW, end=NOW + timedelta(hours=2))
    assert [run.id for run in stores.runs.fetched_within("hotels", window)] == ["first", "second"]


def test_whose_data_is_newer(stores: Stores) -> None:
    """That of later runs and of their replays; not that of earlier ones, however late they were replayed."""
    for name in ("first", "second", "third"):
        stores.runs.open(
            a_run(name, request_key=name, created_at=NOW + timedelta(hours=len(stores.runs.recent(None, [], 9)))), POLICY
        )
    for name, of in (("of-first", "first"), ("of-third", "third")):
        stores.runs.open(a_run(name, request_key=name, mode=Mode.REPLAY, replays=RunId(of)), POLICY)
    until = Window(start=NOW, end=NOW + timedelta(hours=2))
    stores.runs.open(a_run("of-two", request_key="of-two", mode=Mode.REPLAY, window=until), POLICY)
    replay = stores.runs.open(a_run("own", request_key="own", mode=Mode.REPLAY, replays=RunId("second")), POLICY)
    assert stores.runs.newer_than(replay) == ["of-third", "third"]
    assert stores.runs.newer_than(stores.runs.get(RunId("of-two"))) == ["of-third", "third"]
    oldest = stores.runs.get(RunId("of-first"))
    assert stores.runs.newer_than(oldest) == ["of-third", "of-two", "own", "second", "third"]
