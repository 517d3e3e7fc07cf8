"""The contract of `RedoStore`."""

import pytest

from sluice.errors import Fenced, IllegalTransition
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import ShardStatus, Step
from sluice.model.run import Failure, Run
from sluice.model.shard import Shard
from sluice.ports import Holder
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, POLICY, a_pointer, a_run, plans

RUN, PARIS, ROME = RunId("run-1"), ShardKey("paris"), ShardKey("rome")
RAW, ROWS, REJECTS, DIFF = ArtifactKind.RAW, ArtifactKind.ROWS, ArtifactKind.REJECTS, ArtifactKind.DIFF


class Bench:
    """A run whose two shards have been brought in and reviewed; of Paris there are two chunks."""

    def __init__(self, stores: Stores) -> None:
        self.stores = stores
        opened = stores.runs.open(a_run(), POLICY)
        stores.shards.plan(opened, plans(PARIS, ROME), {PARIS: "2024-05-01"})
        for key, chunks in ((PARIS, 2), (ROME, 1)):
            shard = stores.shards.claim(RUN, key)
            for seq in range(chunks):
                shard = self.checkpoint(shard, seq, is_last=seq == chunks - 1)
                for kind in (ROWS, REJECTS):
                    stores.pointers.add(a_pointer(shard=key, kind=kind, seq=seq, variant="v1"), shard.token)
            stores.shards.succeed(shard.model_copy(update={"high_mark": "2024-06-01"}))
        self.run = stores.runs.enter(RUN, Step.REVIEW, MINUTE)
        stores.pointers.add(a_pointer(kind=DIFF), self.run.token)

    def checkpoint(self, shard: Shard, seq: int, *, is_last: bool) -> Shard:
        """Store a chunk of three pages."""
        come = {"cursor": seq, "exhausted": is_last, "chunks": seq + 1, "pages": 3 * seq + 3, "records": 9 * seq + 9}
        return self.stores.shards.checkpoint(shard.model_copy(update=come), a_pointer(shard=shard.key, seq=seq), MINUTE)

    def shard(self, key: ShardKey) -> Shard:
        """The shard as it stands."""
        return next(shard for shard in self.stores.shards.of(RUN) if shard.key == key)

    def pointers(self, kind: ArtifactKind, key: ShardKey | None = None) -> list[Pointer]:
        """The pointers that count."""
        return self.stores.pointers.of(RUN, kind, key)

    def seqs(self, key: ShardKey) -> tuple[list[int], ...]:
        """The chunks of a shard that are there: raw, rows, rejects."""
        return tuple([pointer.ref.seq for pointer in self.pointers(kind, key)] for kind in (RAW, ROWS, REJECTS))


@pytest.fixture
def bench(stores: Stores) -> Bench:
    """A run that is being reviewed."""
    return Bench(stores)


def test_a_shard_is_fetched_again(bench: Bench) -> None:
    """It begins from its first page in a new epoch, from the same watermark; nothing made of it counts, the diff included."""
    before = bench.shard(PARIS)
    bench.stores.redos.fetch_again(PARIS, bench.run)
    after = bench.shard(PARIS)
    begun = {"status": ShardStatus.PENDING, "epoch": 1, "cursor": None, "exhausted": False, "high_mark": None}
    nothing = {"chunks": 0, "pages": 0, "records": 0}
    assert after == before.model_copy(update={**begun, **nothing, "token": after.token})
    assert after.token > before.token
    assert after.watermark == "2024-05-01"
    assert (bench.seqs(PARIS), bench.seqs(ROME)) == (([], [], []), ([0], [0], [0]))
    assert bench.pointers(DIFF) == []


def test_chunks_are_mapped_again(bench: Bench) -> None:
    """Their rows and rejects do not count; what was fetched, the other chunks and the diff do."""
    before = bench.shard(PARIS)
    bench.stores.redos.map_again(PARIS, [1], bench.run)
    after = bench.shard(PARIS)
    assert after == before.model_copy(update={"status": ShardStatus.PENDING, "token": after.token})
    assert after.token > before.token
    assert (bench.seqs(PARIS), bench.seqs(ROME)) == (([0, 1], [0], [0]), ([0], [0], [0]))
    assert len(bench.pointers(DIFF)) == 1


def test_a_run_is_reviewed_again(bench: Bench) -> None:
    """Its diffs do not count; its shards stand."""
    bench.stores.redos.review_again(bench.run)
    assert bench.pointers(DIFF) == []
    assert (bench.seqs(PARIS), bench.shard(PARIS).status) == (([0, 1], [0, 1], [0, 1]), ShardStatus.SUCCEEDED)


def test_what_is_stored_again_counts_again(bench: Bench) -> None:
    """The same bytes under the same ref are what they were."""
    (diff,) = bench.pointers(DIFF)
    rows = bench.pointers(ROWS, ROME)
    bench.stores.redos.review_again(bench.run)
    bench.stores.redos.map_again(ROME, [0], bench.run)
    for pointer in (diff, *rows):
        bench.stores.pointers.add(pointer)
    assert (bench.pointers(DIFF), bench.pointers(ROWS, ROME)) == ([diff], rows)


def test_whoever_claimed_the_shard_may_mark_it(bench: Bench) -> None:
    """Then its claim is over, as is that of anybody else."""
    bench.stores.redos.map_again(PARIS, [0], bench.run)
    shard = bench.stores.shards.claim(RUN, PARIS)
    bench.stores.redos.fetch_again(PARIS, shard)
    with pytest.raises(Fenced):
        bench.stores.redos.fetch_again(PARIS, shard)
    with pytest.raises(Fenced):
        bench.stores.shards.succeed(shard)
    assert bench.shard(PARIS).epoch == 1


@pytest.mark.parametrize("act", ["fetch_again", "map_again", "review_again"])
def test_an_older_token_marks_nothing(bench: Bench, act: str) -> None:
    """Whoever lost the run or the shard changes nothing."""
    stores, earlier = bench.stores, bench.run
    newer = stores.runs.enter(RUN, Step.PUBLISH, MINUTE)
    shard = bench.shard(PARIS).model_copy(update={"token": bench.shard(PARIS).token - 1})
    holders: list[Holder] = [earlier, shard]
    for holder in holders:
        with pytest.raises(Fenced):
            mark(stores, act, holder)
    assert (bench.seqs(PARIS), len(bench.pointers(DIFF))) == (([0, 1], [0, 1], [0, 1]), 1)
    mark(stores, act, newer)


def mark(stores: Stores, act: str, holder: Holder) -> None:
    """Mark Paris, or its run."""
    if act == "review_again":
        stores.redos.review_again(holder if isinstance(holder, Run) else a_run(token=holder.token))
    elif act == "map_again":
        stores.redos.map_again(PARIS, [0], holder)
    else:
        stores.redos.fetch_again(PARIS, holder)


def test_a_failed_shard_may_be_marked(bench: Bench) -> None:
    """It is pending again, without its failure."""
    bench.stores.redos.map_again(PARIS, [0], bench.run)
    shard = bench.stores.shards.claim(RUN, PARIS)
    bench.stores.shards.fail(shard, Failure(error="AnswerNotJson", message="<html>"))
    bench.stores.redos.map_again(PARIS, [1], bench.run)
    assert (bench.shard(PARIS).status, bench.shard(PARIS).failure) == (ShardStatus.PENDING, None)


def test_a_shard_that_is_not_there(bench: Bench) -> None:
    """There is nothing to mark."""
    with pytest.raises(IllegalTransition, match="nowhere"):
        bench.stores.redos.fetch_again(ShardKey("nowhere"), bench.run)
