"""Replays: which shards and chunks of an earlier run become a run's own."""

from datetime import timedelta

import pytest

from sluice.model.artifact import ArtifactKind
from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.lifecycle import ShardStatus, Step
from sluice.model.run import Mode, Run
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, NOW, POLICY, a_pointer, a_reject, a_run, plans

PARIS, ROME = ShardKey("paris"), ShardKey("rome")
DONOR = RunId("run-1")


def fetched(stores: Stores) -> None:
    """A run that has fetched Paris, in two chunks, to its end, and a part of Rome."""
    stores.runs.open(a_run(DONOR), POLICY)
    run = stores.runs.enter(DONOR, Step.FETCH, MINUTE)
    stores.shards.plan(run, plans(PARIS, ROME), {PARIS: "7"})
    for key, chunks in ((PARIS, 2), (ROME, 1)):
        shard = stores.shards.claim(DONOR, key)
        for seq in range(chunks):
            state = {"chunks": seq + 1, "pages": seq + 1, "records": 3, "exhausted": seq == 1, "cursor": seq}
            told = {"until": NOW, "supplied_at": NOW + MINUTE}
            pointer = a_pointer(DONOR, key, f"{key} {seq}", seq=seq)
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
        (shard,) = stores.shards.adopt(run, until)
    assert (shard.key, shard.status, shard.params) == (PARIS, ShardStatus.PENDING, {"city": "paris"})
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
    stores.shards.adopt(run, NOW)
    assert {pointer.expires_at for pointer in stores.pointers.of(run.id, ArtifactKind.RAW)} == {NOW + timedelta(days=90)}


@pytest.mark.parametrize(("asked", "adopted"), [((), [PARIS]), ((PARIS,), [PARIS]), ((ROME,), [])])
def test_only_what_was_asked_for(stores: Stores, asked: tuple[ShardKey, ...], adopted: list[ShardKey]) -> None:
    """And never what was not fetched to its end."""
    fetched(stores)
    assert [shard.key for shard in stores.shards.adopt(replaying(stores, shards=asked), NOW)] == adopted


def test_a_shard_that_has_lost_a_chunk_is_left_out(stores: Stores) -> None:
    """A part of it would pass for all of it."""
    fetched(stores)
    stores.redos.fetch_again(PARIS, stores.runs.get(DONOR))
    assert stores.shards.adopt(replaying(stores), NOW) == []


def test_only_its_own_dead_letters_are_closed(stores: Stores) -> None:
    """What came right in old data may still be wrong in newer data."""
    fetched(stores)
    donor = stores.runs.get(DONOR)
    (paris, rome) = stores.shards.of(DONOR)
    paris, rome = (stores.shards.claim(DONOR, shard.key) for shard in (paris, rome))
    stores.dead_letters.record(donor, paris, [a_reject("h1")], "rejects-0")
    younger = replaying(stores, "run-3", mode=Mode.FULL, replays=None)
    (shard,) = stores.shards.plan(younger, plans(PARIS), {})
    shard = stores.shards.claim(younger.id, shard.key)
    stores.dead_letters.record(younger, shard, [a_reject("h2", artifact="raw-9")], "rejects-0")
    run = replaying(stores)
    assert stores.dead_letters.close(run, [ObjectKey("h1"), ObjectKey("h2")]) == 1
    (left,) = stores.dead_letters.open_for("hotels", 9)
    assert left.reject.key == "h2"
