"""Reviewing: what the absence of an object means, what is counted, and what is asked of a person."""

from datetime import timedelta

import pytest

from sluice.errors import NothingToReview, TargetMismatch
from sluice.flow.digest import review_digest
from sluice.flow.publisher import publish
from sluice.flow.reviewer import _figures, _is_complete, review
from sluice.flow.rows_artifacts import staged_artifacts
from sluice.flow.settlement import settle
from sluice.model import rows
from sluice.model.artifact import ArtifactKind
from sluice.model.base import ShardKey, Token
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, ShardStatus, Step, Verdict
from sluice.model.reject import Reject
from sluice.model.run import Mode, Run, Window
from sluice.model.shard import Shard
from sluice.ports import DiffCounts
from tests.support.nouns import NOW, a_reject, a_run
from tests.unit.flow.workshop import JUNE, MAY, NORTH, RUN, SOUTH, Workshop, sync_spec

FULL = a_run(mode=Mode.FULL)
DONE, LOST, LEFT, SKIPPED = ShardStatus.SUCCEEDED, ShardStatus.FAILED, ShardStatus.PENDING, ShardStatus.SKIPPED


def equipped() -> Workshop:
    """A workshop with a table, whose full run is about to fetch."""
    policy = {"first_load": "auto-approve", "auto_approve": {"created": "100%"}}
    workshop = Workshop(spec=sync_spec(review=policy))
    workshop.equip()
    workshop.begin(mode=Mode.FULL)
    return workshop


def published() -> Workshop:
    """The same workshop, on the day after `a` and `b` were published in the north and `c` in the south."""
    workshop = equipped()
    workshop.bring_in(NORTH, ("a", MAY), ("b", MAY))
    workshop.bring_in(SOUTH, ("c", MAY))
    review(workshop.services, RUN)
    publish(workshop.services, RUN)
    settle(workshop.services, RUN)
    for table in ("runs", "shards", "pointers", "reviews"):
        getattr(workshop.memory, table).clear()
    workshop.memory.clock.move(timedelta(days=1))
    return workshop


def shards(*statuses: ShardStatus) -> list[Shard]:
    """The shards of a run."""
    return [
        Shard(run=RUN, key=ShardKey(str(number)), params={}, status=status, token=Token(0))
        for number, status in enumerate(statuses)
    ]


@pytest.mark.parametrize(
    ("run", "statuses", "rejects", "complete"),
    [
        pytest.param(FULL, (DONE, DONE), (), True, id="all came in"),
        pytest.param(FULL, (DONE, DONE), (a_reject("a"), a_reject("b")), True, id="rejects have keys"),
        pytest.param(a_run(mode=Mode.INCREMENTAL), (DONE, DONE), (), False, id="incremental"),
        pytest.param(a_run(shards=("0", "1")), (DONE, DONE), (), False, id="shards were asked for"),
        pytest.param(a_run(window=Window(start=NOW, end=NOW + timedelta(days=1))), (DONE,), (), False, id="a window"),
        pytest.param(FULL, (DONE, LOST), (), False, id="one failed"),
        pytest.param(FULL, (DONE, LEFT), (), False, id="one is unfinished"),
        pytest.param(FULL, (DONE, SKIPPED), (), False, id="one was skipped"),
        pytest.param(FULL, (DONE, DONE), (a_reject("a"), a_reject(None)), False, id="a reject has no key"),
    ],
)
def test_when_an_absent_object_is_gone(
    run: Run, statuses: tuple[ShardStatus, ...], rejects: tuple[Reject, ...], *, complete: bool
) -> None:
    """Only where the run saw everything, and could tell everything it saw apart."""
    assert _is_complete(run, shards(*statuses), sum(reject.key is None for reject in rejects)) is complete


def test_what_nobody_delivered_is_deleted() -> None:
    """All shards came in, and one object did not."""
    workshop = published()
    workshop.begin(mode=Mode.FULL)
    workshop.bring_in(NORTH, ("a", MAY))
    workshop.bring_in(SOUTH, ("c", JUNE), ("d", JUNE))
    figures = review(workshop.services, RUN).figures
    assert figures.outcomes == {Outcome.CREATED: 1, Outcome.CHANGED: 1, Outcome.DELETED: 1}
    assert (figures.seen, figures.unchanged, figures.live_before, figures.first_loaded) == (3, 1, 3, 0)


def test_what_is_gone_is_counted_where_deletions_are_ignored() -> None:
    """Nothing is deleted then, but people see the number."""
    workshop = published()
    ignoring = sync_spec(target={"table": "hotels", "deletes": "ignore"}, review=workshop.spec.review.model_dump(mode="json"))
    workshop.spec = ignoring
    workshop.begin(mode=Mode.FULL)
    workshop.bring_in(NORTH, ("a", MAY))
    workshop.bring_in(SOUTH, ("c", MAY))
    figures = review(workshop.services, RUN).figures
    assert (figures.outcomes, figures.vanished, figures.seen) == ({}, 1, 2)


def test_an_object_that_another_shard_delivers_has_moved() -> None:
    """It is no deletion in the one, nor a creation in the other."""
    workshop = published()
    workshop.begin(mode=Mode.FULL)
    workshop.bring_in(NORTH, ("a", MAY))
    workshop.bring_in(SOUTH, ("b", MAY), ("c", MAY))
    figures = review(workshop.services, RUN).figures
    assert (figures.moved, figures.vanished, figures.writes) == (1, 0, 0)


def test_a_lost_shard_deletes_nothing() -> None:
    """What is missing may be in the shard that is missing; the figures say that one is."""
    workshop = published()
    workshop.begin(mode=Mode.FULL)
    workshop.bring_in(NORTH, ("a", MAY))
    workshop.lose(SOUTH)
    figures = review(workshop.services, RUN).figures
    assert (figures.outcomes, figures.shards_failed) == ({}, 1)


def test_what_a_lost_shard_had_brought_is_left_out() -> None:
    """A shard is reviewed as a whole: the chunks it was done with when it failed wait for the others."""
    workshop = equipped()
    workshop.bring_in(NORTH, ("a", MAY))
    halfway = workshop.bring_in(SOUTH, ("c", MAY), (None, MAY))
    workshop.memory.shards[RUN, SOUTH] = halfway.model_copy(update={"status": LOST})
    figures = review(workshop.services, RUN).figures
    assert (figures.outcomes, figures.seen, figures.shards_failed) == ({Outcome.CREATED: 1}, 1, 1)


def test_a_reject_without_a_key_is_counted_and_spares_what_is_absent() -> None:
    """It might be any of the absent objects."""
    workshop = published()
    workshop.begin(mode=Mode.FULL)
    workshop.bring_in(NORTH, ("a", MAY), (None, MAY))
    workshop.bring_in(SOUTH, ("c", MAY), (None, JUNE))
    figures = review(workshop.services, RUN).figures
    assert figures.outcomes == {Outcome.REJECTED: 2}
    assert (figures.seen, figures.unchanged) == (4, 2)


def test_a_rejected_object_is_not_absent() -> None:
    """It was delivered, if in no form that can be taken in."""
    workshop = published()
    workshop.begin(mode=Mode.FULL)
    workshop.bring_in(NORTH, ("a", MAY), ("b", "yesterday"))
    workshop.bring_in(SOUTH, ("c", MAY))
    figures = review(workshop.services, RUN).figures
    assert (figures.outcomes, figures.seen) == ({Outcome.REJECTED: 1}, 3)


def test_a_review_is_bound_to_its_diff() -> None:
    """Its digest is of the run, the spec and the diff, which is stored with the run."""
    workshop = equipped()
    workshop.bring_in(NORTH, ("a", MAY))
    workshop.bring_in(SOUTH)
    made = review(workshop.services, RUN)
    run = workshop.memory.runs[RUN]
    assert (run.status, run.step) == (RunStatus.RUNNING, Step.REVIEW)
    assert made == workshop.memory.reviews[made.id]
    assert made.digest == review_digest(run, made.diff, staged_artifacts(workshop.services, RUN), 0, made.reasons)
    assert (made.verdict, made.reasons, made.figures.first_loaded) == (Verdict.AUTO_APPROVED, (), 1)
    assert workshop.services.pointers.of(RUN, ArtifactKind.DIFF) == [made.diff]
    assert made.diff.records == 1


@pytest.mark.parametrize(("kind", "held", "first"), [("values", 9, 2), ("windows", 9, 0), ("windows", 0, 2)])
def test_a_new_span_of_time_is_no_first_load(kind: str, held: int, first: int) -> None:
    """Where shards come with time, what a new one brings is created, and held against the limit of that."""
    spans = {"kind": "windows", "every": "1d", "start": "2024-01-01T00:00:00Z"}
    spec = sync_spec(shards=spans) if kind == "windows" else sync_spec()
    outcomes = {Outcome.CREATED: 2}
    counts = DiffCounts(seen=2, unchanged=0, live_before=held, first_loaded=2, vanished=0, moved=0, noted=0, outcomes=outcomes)
    assert _figures(spec, FULL, counts, 0, failed=0).first_loaded == first


def test_reviewing_again() -> None:
    """The same work is the same review, decision and all; more work is a new one that takes its place."""
    workshop = Workshop()
    workshop.equip()
    workshop.begin(mode=Mode.FULL)
    workshop.bring_in(NORTH, ("a", MAY))
    workshop.lose(SOUTH)
    first = review(workshop.services, RUN)
    assert first.verdict is Verdict.NEEDS_HUMAN
    assert review(workshop.services, RUN) == first
    workshop.bring_in(SOUTH, ("c", MAY))
    second = review(workshop.services, RUN)
    assert second.figures.count(Outcome.CREATED) == 2
    assert workshop.memory.reviews[first.id].verdict is Verdict.SUPERSEDED
    assert workshop.services.reviews.latest(RUN) == second


def test_a_shard_that_brings_nothing_is_a_new_review_all_the_same() -> None:
    """The diff is what it was, but it is of more shards now, and that may make absence mean deletion or free a watermark."""
    workshop = equipped()
    workshop.bring_in(NORTH, ("a", MAY))
    workshop.lose(SOUTH)
    review(workshop.services, RUN)
    workshop.bring_in(SOUTH)
    assert review(workshop.services, RUN).figures.shards_failed == 0


def test_a_run_that_succeeded_is_not_reviewed_again() -> None:
    """Against the ledger it has written, it would find nothing to do."""
    workshop = equipped()
    workshop.bring_in(NORTH, ("a", MAY))
    workshop.bring_in(SOUTH)
    made = review(workshop.services, RUN)
    publish(workshop.services, RUN)
    assert settle(workshop.services, RUN).status is RunStatus.SUCCEEDED
    assert review(workshop.services, RUN) == made


def test_what_the_ledger_forgot_meanwhile_is_mapped_again() -> None:
    """The transformer had left it out for the sake of bytes the ledger then held; the review needs its row after all."""
    workshop = published()
    assert workshop.target is not None
    workshop.begin(mode=Mode.FULL)
    workshop.bring_in(NORTH, ("a", MAY), ("b", MAY))
    workshop.bring_in(SOUTH, ("c", MAY))
    del workshop.target.ledger.objects["hotels", "a"]
    made = review(workshop.services, RUN)
    assert made.figures.outcomes == {Outcome.CREATED: 1}
    variants = [pointer.ref.variant for pointer in workshop.services.pointers.of(RUN, ArtifactKind.ROWS, NORTH)]
    assert sum("-full-" in variant for variant in variants) == 1
    workshop.target.rows.pop("a")
    publish(workshop.services, RUN)
    assert workshop.target.rows["a"]["id"] == "a"
    assert rows.KEY not in workshop.target.rows["a"]


def test_nothing_came_in() -> None:
    """There is nothing to compare; the shards say why, and settlement after them."""
    workshop = equipped()
    workshop.lose(NORTH)
    workshop.lose(SOUTH)
    with pytest.raises(NothingToReview):
        review(workshop.services, RUN)
    assert workshop.memory.runs[RUN].status is RunStatus.RUNNING


def test_what_could_not_be_published_is_not_reviewed() -> None:
    """Nobody is asked about a table that does not fit."""
    workshop = equipped()
    assert workshop.target is not None
    workshop.target.trouble = TargetMismatch("hotels.id is integer, not text")
    workshop.bring_in(NORTH, ("a", MAY))
    with pytest.raises(TargetMismatch):
        review(workshop.services, RUN)
    assert workshop.memory.reviews == {}
    assert workshop.memory.runs[RUN].status is RunStatus.FAILED


def test_by_spans_of_time_nothing_is_missed() -> None:
    """An object whose time changes while the run goes on is in no span, and not gone for that."""
    workshop = published()
    spans = {"kind": "windows", "every": "36500d", "start": "2024-01-01T00:00:00Z"}
    source = workshop.spec.source.model_copy(update={"watermark": None})
    workshop.spec = workshop.spec.model_copy(update={"source": source, "shards": sync_spec(shards=spans).shards})
    (span,) = workshop.begin(mode=Mode.FULL) and workshop.services.shards.of(RUN)
    workshop.bring_in(span.key, ("a", MAY))
    figures = review(workshop.services, RUN).figures
    assert (figures.outcomes, figures.vanished, figures.moved) == ({}, 0, 1)
