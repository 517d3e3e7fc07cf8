"""Explaining an object of which little is left, or whose stores cannot be reached."""

from dataclasses import replace
from typing import Any

import pytest

from sluice.errors import ArtifactsUnavailable, NotFound, TargetMismatch
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import ObjectKey, PublicationId, ReviewId, RunId, ShardKey
from sluice.model.ledger import LedgerObject, ObjectEvent, ObjectState, Outcome, Publication
from sluice.upkeep.explanation import explain
from tests.support.nouns import NOW, a_review
from tests.unit.fakes.artifact_store import MemoryArtifactStore
from tests.unit.flow.workshop import RUN, Workshop

KEY = ObjectKey("a")
PUBLICATION = PublicationId(1)


def published(run: RunId = RUN, **event: Any) -> Workshop:
    """Return a workshop whose ledger says that one publication created the object."""
    workshop = Workshop()
    target = workshop.equip()
    workshop.admit()
    ledger = target.ledger
    ledger.published.append(
        Publication(id=PUBLICATION, sync="hotels", review=ReviewId("r1"), run=run, counts={}, applied_at=NOW)
    )
    facts = {"outcome": Outcome.CREATED, "old_hash": None, "new_hash": b"h" * 16, "source_version": None}
    ledger.happened["hotels", KEY] = [ObjectEvent(at=NOW, run=run, publication=PUBLICATION, **{**facts, **event})]
    ledger.objects["hotels", KEY] = LedgerObject(
        sync="hotels",
        key=KEY,
        shard=ShardKey("north"),
        raw_hash=b"r" * 16,
        row_hash=b"h" * 16,
        transformer_version=1,
        source_version=None,
        state=ObjectState.LIVE,
        first_seen=NOW,
        last_changed_run=run,
        publication=PUBLICATION,
    )
    target.rows[KEY] = {"id": "a", "updated_at": None}
    return workshop


def test_the_table_tells_what_state_and_artifacts_do_not_know_any_more() -> None:
    """Run, review and diff are said to be gone; the row is not, since the table still holds it."""
    workshop = published(RunId("long-ago"))
    told = explain(workshop.services, workshop.spec, KEY, 20)
    (trace,) = told.traces
    assert (trace.run, trace.review, trace.raw, trace.values) == (None, None, None, {"id": "a", "updated_at": None})
    assert trace.publication is not None
    assert [lost.partition(":")[0] for lost in trace.gone] == [
        "review r1",
        "run long-ago",
        "the diff, which leads to its row and its raw bytes",
    ]
    assert told.altered is None


def test_what_others_changed_does_not_stand_in_for_what_was_published() -> None:
    """The table's row is told as altered, and the published one as unknown."""
    workshop = published()
    assert workshop.target is not None
    workshop.target.altered.add(KEY)
    told = explain(workshop.services, workshop.spec, KEY, 20)
    assert (told.traces[0].values, told.altered, told.alterations) == (None, "others have changed its row", ())


def test_nobody_is_accused_where_another_spec_may_have_made_the_row() -> None:
    """Once the spec of its publication is gone, a row that differs need not have been edited."""
    workshop = published(RunId("long-ago"))
    assert workshop.target is not None
    workshop.target.altered.add(KEY)
    told = explain(workshop.services, workshop.spec, KEY, 20)
    assert told.altered == (
        "it is not as today's spec has it, and the one it was published under is gone: others may have changed it"
    )


def test_a_damaged_diff_is_gone_and_a_store_out_of_reach_is_not() -> None:
    """The first is told beside the rest; the second is an error, since nobody knows."""
    workshop = published()
    ref = ArtifactRef(sync="hotels", run=RUN, kind=ArtifactKind.DIFF)
    diff = workshop.artifacts.put(ref, b"no Parquet", records=1, expires_at=None)
    workshop.memory.reviews[ReviewId("r1")] = a_review("r1", RUN, diff=diff)
    (trace,) = explain(workshop.services, workshop.spec, KEY, 20).traces
    assert "its raw bytes: the bytes of a Parquet artifact cannot be read" in trace.gone[0]

    class Unreachable(MemoryArtifactStore):
        def get(self, pointer: Pointer) -> bytes:
            raise ArtifactsUnavailable(key=pointer.key)

    with pytest.raises(ArtifactsUnavailable):
        explain(replace(workshop.services, artifacts=Unreachable()), workshop.spec, KEY, 20)


def test_a_table_that_does_not_fit_is_told_beside_the_rest() -> None:
    """What was published is known all the same."""
    workshop = published()
    assert workshop.target is not None
    workshop.target.trouble = TargetMismatch("column stars is missing")
    told = explain(workshop.services, workshop.spec, KEY, 20)
    assert told.altered == "it cannot be compared: column stars is missing"
    assert len(told.traces) == 1


def test_an_object_that_was_only_ever_rejected_is_told() -> None:
    """It is in no table and in no ledger row, and yet something became of it."""
    workshop = published(outcome=Outcome.REJECTED, new_hash=None)
    assert workshop.target is not None
    workshop.target.ledger.objects.clear()
    workshop.target.rows.clear()
    told = explain(workshop.services, workshop.spec, KEY, 20)
    assert (told.held, told.altered, told.present) == (None, None, None)
    assert told.traces[0].gone == ("review r1: there is no review r1", "why it was rejected: nothing points to it any more")


def test_nobody_has_heard_of_it() -> None:
    """Who stands around it is named; a sync without publications says so."""
    workshop = published()
    with pytest.raises(NotFound, match=r"knows no object b: in key order it would stand among a$"):
        explain(workshop.services, workshop.spec, ObjectKey("b"), 20)
    empty = Workshop()
    empty.equip()
    with pytest.raises(NotFound, match="nothing of this sync was published yet"):
        explain(empty.services, empty.spec, KEY, 20)
