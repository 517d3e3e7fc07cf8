"""The contract of `PointerStore`."""

import pytest

from sluice.errors import Fenced, NotFound
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import Step
from sluice.model.run import Run
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, POLICY, a_pointer, a_run, plans

RUN, PARIS, ROME = RunId("run-1"), ShardKey("paris"), ShardKey("rome")


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
