"""The contract of `PointerStore`."""

from datetime import timedelta

import pytest

from sluice.errors import Fenced, NotFound
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import Step
from sluice.model.run import Run
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, NOW, POLICY, a_pointer, a_run, plans

RUN, PARIS, ROME = RunId("run-1"), ShardKey("paris"), ShardKey("rome")
YEARS = timedelta(days=1_000)


@pytest.fixture
def run(stores: Stores) -> Run:
    """A run with two shards."""
    opened = stores.runs.open(a_run(), POLICY)
    stores.shards.plan(opened, plans(PARIS, ROME), {})
    return opened


def test_pointers_come_back_whole_by_shard_and_seq(stores: Stores, run: Run) -> None:
    """Kind and shard narrow; the order is by shard, seq and variant, whatever the order of arrival."""
    added = [
        a_pointer(shard=ROME, seq=0),
        a_pointer(shard=PARIS, seq=10),
        a_pointer(shard=PARIS, seq=9, variant="v2"),
        a_pointer(shard=PARIS, seq=9, variant="v1"),
    ]
    for pointer in [*added, a_pointer(kind=ArtifactKind.SPEC), a_pointer(shard=PARIS, kind=ArtifactKind.ROWS)]:
        stores.pointers.add(pointer)
    rome, ten, second, first = added
    assert stores.pointers.of(RUN, ArtifactKind.RAW) == [first, second, ten, rome]
    assert stores.pointers.of(RUN, ArtifactKind.RAW, PARIS) == [first, second, ten]
    assert stores.pointers.of(RUN, ArtifactKind.SPEC) == [a_pointer(kind=ArtifactKind.SPEC)]
    assert stores.pointers.of(RUN, ArtifactKind.DIFF) == []


def kept(pointer: Pointer) -> Pointer:
    """A pointer whose time is never over."""
    return pointer.model_copy(update={"expires_at": None})


def test_what_was_made_of_the_same_chunk_is_found(stores: Stores, run: Run) -> None:
    """By other runs, in the same way, where it counts and its time is not over: the fullest, and of those the newest."""
    raw = a_pointer(shard=PARIS, seq=4)
    own = raw.model_copy(update={"ref": raw.ref.model_copy(update={"run": RunId("run-2"), "seq": 7})})
    stores.runs.open(a_run("run-2", request_key="again"), POLICY)
    stores.shards.plan(stores.runs.get(RunId("run-2")), plans(PARIS), {})
    for pointer in (raw, own):
        stores.pointers.add(pointer)
    assert stores.pointers.rows_elsewhere(own, "v1-ab-") is None
    rows = [
        kept(a_pointer(shard=PARIS, kind=ArtifactKind.ROWS, seq=seq, variant=variant))
        for seq, variant in ((4, "v1-ab-1"), (4, "v1-cd-1"), (4, "v2-ab-1"), (5, "v1-ab-9"))
    ]
    for pointer in rows:
        stores.pointers.add(pointer)
    stores.pointers.add(a_pointer("run-2", PARIS, kind=ArtifactKind.ROWS, seq=7, variant="v1-ab-own"))
    assert stores.pointers.rows_elsewhere(own, "v1-ab-") == rows[0]
    full = kept(a_pointer(shard=PARIS, kind=ArtifactKind.ROWS, seq=4, variant="v1-ab-full-1"))
    for pointer in (full, kept(a_pointer(shard=PARIS, kind=ArtifactKind.ROWS, seq=4, variant="v1-ab-2"))):
        stores.pointers.add(pointer)
    assert stores.pointers.rows_elsewhere(own, "v1-ab-") == full
    stores.redos.map_again(PARIS, [4], stores.runs.get(RUN))
    assert stores.pointers.rows_elsewhere(own, "v1-ab-") is None


def test_what_was_made_of_the_same_chunk_and_is_over_is_not(stores: Stores, run: Run) -> None:
    """Nobody leans on what may be removed at any time."""
    raw = a_pointer(shard=PARIS)
    stores.runs.open(a_run("run-2", request_key="again"), POLICY)
    stores.shards.plan(stores.runs.get(RunId("run-2")), plans(PARIS), {})
    own = raw.model_copy(update={"ref": raw.ref.model_copy(update={"run": RunId("run-2")})})
    over = a_pointer(shard=PARIS, kind=ArtifactKind.ROWS, variant="v1-ab-1").model_copy(update={"expires_at": NOW - YEARS})
    for pointer in (raw, own, over):
        stores.pointers.add(pointer)
    assert stores.pointers.rows_elsewhere(own, "v1-ab-") is None


def test_the_same_bytes_change_nothing(stores: Stores, run: Run) -> None:
    """A step that is tried again leaves the first pointer as it is."""
    first = a_pointer(kind=ArtifactKind.SPEC)
    stores.pointers.add(first)
    stores.pointers.add(first.model_copy(update={"expires_at": None}))
    assert stores.pointers.of(RUN, ArtifactKind.SPEC) == [first]


def test_other_bytes_replace_the_pointer(stores: Stores, run: Run) -> None:
    """A ref leads to the bytes that were stored last."""
    stores.pointers.add(a_pointer(kind=ArtifactKind.SPEC))
    other = a_pointer(kind=ArtifactKind.SPEC, content="other bytes")
    stores.pointers.add(other)
    assert stores.pointers.of(RUN, ArtifactKind.SPEC) == [other]


def test_an_older_token_of_the_run_is_fenced(stores: Stores, run: Run) -> None:
    """Artifacts of a whole run are written by whoever entered it last."""
    entered = stores.runs.enter(RUN, Step.REVIEW, MINUTE)
    with pytest.raises(Fenced):
        stores.pointers.add(a_pointer(kind=ArtifactKind.DIFF), run.token)
    assert stores.pointers.of(RUN, ArtifactKind.DIFF) == []
    stores.pointers.add(a_pointer(kind=ArtifactKind.DIFF), entered.token)
    assert len(stores.pointers.of(RUN, ArtifactKind.DIFF)) == 1


def test_an_older_token_of_the_shard_is_fenced(stores: Stores, run: Run) -> None:
    """Artifacts of a shard are written by whoever claimed it last, and by no token of another shard."""
    earlier, later = stores.shards.claim(RUN, PARIS), stores.shards.claim(RUN, PARIS)
    rome = stores.shards.claim(RUN, ROME)
    rows = a_pointer(shard=PARIS, kind=ArtifactKind.ROWS)
    for token in (earlier.token, rome.token, run.token):
        with pytest.raises(Fenced):
            stores.pointers.add(rows, token)
    stores.pointers.add(rows, later.token)
    assert stores.pointers.of(RUN, ArtifactKind.ROWS) == [rows]


def test_a_pointer_belongs_to_something(stores: Stores, run: Run) -> None:
    """No pointer is kept for a run or a shard that is not there."""
    for token in (None, run.token):
        with pytest.raises(NotFound, match="run-9"):
            stores.pointers.add(a_pointer("run-9"), token)
        with pytest.raises(NotFound, match="nowhere"):
            stores.pointers.add(a_pointer(shard="nowhere"), token)
