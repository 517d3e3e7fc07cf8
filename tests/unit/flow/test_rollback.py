"""Rollbacks in memory: what is reviewed, who has to answer, what is published, and what is refused."""

from datetime import timedelta
from typing import Any

import pytest

from sluice.errors import NotUndoable, TargetMismatch, UsageInvalid
from sluice.flow.admission import admit, request_key
from sluice.flow.gate import decide
from sluice.flow.inline import resume_inline, run_inline
from sluice.flow.packet import evidence_of, packet_of
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.rollback import conflicts_of
from sluice.model.artifact import ArtifactKind
from sluice.model.base import ObjectKey, PublicationId, RunId
from sluice.model.ledger import ObjectState, Outcome, Publication
from sluice.model.lifecycle import RunStatus, Step, Verdict
from sluice.model.review import Choice, Review
from sluice.model.run import Mode, Origin, Run, RunRequest, Window
from sluice.model.stage import StagePolicy
from tests.support.nouns import NOW, a_decision
from tests.unit.fakes.source import RegionalSource
from tests.unit.flow.workshop import JUNE, MAY, Workshop, page, sync_spec

A, B, C = (ObjectKey(key) for key in "abc")


class Bench:
    """A sync whose table holds `a` and `b` since its first publication."""

    def __init__(self, **policy: Any) -> None:
        review = {"first_load": "auto-approve", "auto_approve": {"created": 99, "changed": 99, "drift": 9}}
        self.workshop = Workshop(spec=sync_spec(review=review), policy=StagePolicy(**policy))
        self.target = self.workshop.equip()
        self.first = self.bring(("a", MAY), ("b", MAY))

    def bring(self, *hotels: tuple[str, str]) -> Publication:
        """Publish what a run delivers."""
        self.workshop.supplier = RegionalSource(north=(page(1, *hotels, is_last=True),), south=(page(1, is_last=True),))
        run = run_inline(self.workshop.services, RunRequest(sync="hotels", mode=Mode.FULL, force=True, origin=Origin()))
        assert run.status is RunStatus.SUCCEEDED
        return self.target.ledger.published[-1]

    def ask(self, undone: Publication) -> Run:
        """Ask for a publication to be taken back."""
        return run_inline(self.workshop.services, request(undone.id))

    def review(self, run: Run) -> Review:
        """The newest review of a run."""
        review = self.workshop.services.reviews.latest(run.id)
        assert review is not None
        return review

    def answer(self, run: Run, choice: Choice = Choice.APPROVE) -> Run:
        """Answer its review, and go on."""
        decide(self.workshop.services, self.review(run).id, a_decision(choice))
        return resume_inline(self.workshop.services, run.id)

    def dates(self) -> dict[str, str]:
        """When the hotels of the table were updated."""
        return {key: f"{row['updated_at']:%Y-%m-%dT%H:%M:%SZ}" for key, row in sorted(self.target.rows.items())}


def request(undone: PublicationId, **changes: Any) -> RunRequest:
    """What `sluice rollback` asks for."""
    return RunRequest(**{"sync": "hotels", "mode": Mode.ROLLBACK, "undoes": undone, "origin": Origin(), **changes})


def test_a_rollback_waits_for_its_answer_and_is_published_with_a_record() -> None:
    """It asks no supplier and moves no watermark; both publications name each other, and it has before-images of its own."""
    bench = Bench()
    marks = bench.workshop.services.watermarks.of("hotels")
    bad = bench.bring(("a", JUNE), ("b", MAY), ("c", JUNE))
    asked = bench.ask(bad)
    review = bench.review(asked)
    assert (asked.status, asked.step, review.verdict) == (RunStatus.WAITING, Step.GATE, Verdict.NEEDS_HUMAN)
    assert (review.figures.seen, review.figures.outcomes, review.figures.conflicts) == (2, {Outcome.ROLLED_BACK: 2}, 0)
    assert review.reasons == (f"a person asks for publication {bad.id} to be taken back",)
    evidence = evidence_of(bench.workshop.services, review)
    assert evidence is not None
    assert [sample.key for sample in evidence.samples] == [A, C]
    assert packet_of(bench.workshop.services, review)
    assert bench.dates() == {"a": JUNE, "b": MAY, "c": JUNE}

    done = bench.answer(asked)
    assert (done.status, done.step, bench.workshop.services.shards.of(done.id)) == (RunStatus.SUCCEEDED, Step.SETTLE, [])
    assert bench.dates() == {"a": MAY, "b": MAY}
    assert bench.target.ledger.objects["hotels", C].state is ObjectState.DELETED
    made = bench.target.ledger.published[-1]
    assert (made.run, made.undoes, made.counts) == (done.id, bad.id, {Outcome.ROLLED_BACK: 2})
    assert bench.target.ledger.published[-2].rolled_back_by == made.id
    (undo,) = bench.workshop.services.pointers.of(done.id, ArtifactKind.UNDO)
    assert (undo.key, undo.records) == (made.undo_key, 2)
    assert bench.workshop.services.watermarks.of("hotels") == {**marks, "north": JUNE}


def test_what_was_changed_since_is_named_and_left_alone() -> None:
    """In the reasons that every surface shows, and all of it in an artifact."""
    bench = Bench()
    bad = bench.bring(("a", JUNE), ("b", JUNE))
    later = bench.bring(("a", "2024-07-01T00:00:00Z"), ("b", JUNE))
    asked = bench.ask(bad)
    review = bench.review(asked)
    assert (review.figures.outcomes, review.figures.conflicts) == ({Outcome.ROLLED_BACK: 1}, 1)
    assert review.reasons[1] == f"1 of 2 objects were changed since, and are left alone: a: publication {later.id} changed it"
    assert [conflict.publication for conflict in conflicts_of(bench.workshop.services, review)] == [later.id]
    bench.answer(asked)
    assert bench.dates() == {"a": "2024-07-01T00:00:00Z", "b": MAY}


def test_many_conflicts_are_named_in_part() -> None:
    """The reasons stay short; the artifact has them all, unless it is lost."""
    bench = Bench()
    many = [(f"h{number}", JUNE) for number in range(8)]
    bad = bench.bring(("a", MAY), ("b", MAY), *many)
    bench.target.altered = {ObjectKey(key) for key, _ in many[:7]}
    review = bench.review(bench.ask(bad))
    assert review.reasons[1].endswith("h4: others changed it in the table; and 2 more")
    assert len(conflicts_of(bench.workshop.services, review)) == 7
    (pointer,) = bench.workshop.services.pointers.of(review.run, ArtifactKind.CONFLICTS)
    bench.workshop.artifacts.remove(pointer)
    assert conflicts_of(bench.workshop.services, review) == []
    assert bench.workshop.metrics.of("artifact_corrupt", kind="conflicts") == 1


def test_nothing_left_to_restore() -> None:
    """Then there is nothing to answer and nothing to publish; asked once more, it is looked at afresh."""
    bench = Bench(result_ttl=timedelta(days=1))
    bad = bench.bring(("a", JUNE), ("b", MAY))
    bench.target.altered = {A}
    nothing = bench.ask(bad)
    assert (nothing.status, bench.review(nothing).verdict) == (RunStatus.SUCCEEDED, Verdict.AUTO_APPROVED)
    assert len(bench.target.ledger.published) == 2
    bench.target.altered = set()
    assert bench.ask(bad).status is RunStatus.WAITING


def test_what_was_declined_changes_nothing() -> None:
    """The run ends cancelled."""
    bench = Bench()
    bad = bench.bring(("a", JUNE), ("b", MAY))
    assert bench.answer(bench.ask(bad), Choice.REJECT).status is RunStatus.CANCELLED
    assert (bench.dates(), len(bench.target.ledger.published)) == ({"a": JUNE, "b": MAY}, 2)


def test_without_deletions_no_row_is_taken_out() -> None:
    """What the publication created stays, and belongs to it."""
    bench = Bench()
    bad = bench.bring(("a", JUNE), ("b", MAY), ("c", JUNE))
    bench.answer(bench.ask(bad), Choice.APPROVE_WITHOUT_DELETES)
    assert bench.dates() == {"a": MAY, "b": MAY, "c": JUNE}
    assert bench.target.ledger.objects["hotels", C].publication == bad.id


def test_an_object_that_changes_behind_the_answer_is_asked_about_again() -> None:
    """What was approved is not what would be done now, so nothing is; the new review names the conflict."""
    bench = Bench()
    bad = bench.bring(("a", JUNE), ("b", JUNE))
    asked = bench.ask(bad)
    bench.target.altered = {A}
    again = bench.answer(asked)
    assert (again.status, bench.review(again).figures.conflicts) == (RunStatus.WAITING, 1)
    assert bench.dates() == {"a": JUNE, "b": JUNE}
    assert bench.answer(again).status is RunStatus.SUCCEEDED
    assert bench.dates() == {"a": JUNE, "b": MAY}


def test_a_second_request_takes_the_place_of_one_that_waits() -> None:
    """A person is asked about one of them alone."""
    bench = Bench()
    bad = bench.bring(("a", JUNE), ("b", MAY))
    first, second = bench.ask(bad), bench.ask(bad)
    assert (bench.review(first).verdict, bench.review(second).verdict) == (Verdict.SUPERSEDED, Verdict.NEEDS_HUMAN)


def test_a_rollback_is_taken_back_as_any_publication() -> None:
    """Which restores what it undid."""
    bench = Bench()
    bad = bench.bring(("a", JUNE), ("b", MAY), ("c", JUNE))
    bench.answer(bench.ask(bad))
    bench.answer(bench.ask(bench.target.ledger.published[-1]))
    assert bench.dates() == {"a": JUNE, "b": MAY, "c": JUNE}


def test_the_spec_of_the_publication_counts() -> None:
    """Whatever the YAML says by now: its names, types and table are what was written."""
    bench = Bench()
    bad = bench.bring(("a", JUNE), ("b", MAY))
    made_with = bench.workshop.spec
    bench.workshop.spec = sync_spec(target={"table": "other"}, version=2)
    asked = bench.ask(bad)
    assert pinned_spec(bench.workshop.services, asked) == made_with
    assert asked.transformer_version == 1


@pytest.mark.parametrize("lost", ["pointer", "bytes"])
def test_before_images_that_are_gone(lost: str) -> None:
    """It is refused, with what to do instead."""
    bench = Bench()
    bad = bench.bring(("a", JUNE), ("b", MAY))
    (undo,) = bench.workshop.services.pointers.of(bad.run, ArtifactKind.UNDO)
    if lost == "pointer":
        del bench.workshop.memory.pointers[undo.ref]
    else:
        bench.workshop.artifacts.remove(undo)
    with pytest.raises(NotUndoable, match=f"what was before publication {bad.id} is .*run the sync in mode full instead"):
        bench.ask(bad)
    failed = list(bench.workshop.memory.runs.values())[-1]
    assert failed.status is RunStatus.FAILED


def test_a_publication_of_which_nothing_but_the_record_is_kept() -> None:
    """It is refused before anything is admitted."""
    bench = Bench()
    del bench.workshop.memory.runs[bench.first.run]
    with pytest.raises(NotUndoable, match="of publication 1 nothing is kept any more but its record"):
        bench.ask(bench.first)


def test_a_publication_that_is_not_of_the_sync() -> None:
    """It is refused, naming the one it is of."""
    bench = Bench()
    with pytest.raises(NotUndoable, match="hotels has no publication 9; `sluice publications` lists them"):
        run_inline(bench.workshop.services, request(PublicationId(9)))
    bench.target.ledger.published[0] = bench.first.model_copy(update={"sync": "rates"})
    with pytest.raises(NotUndoable, match="hotels has no publication 1: it is one of rates"):
        bench.ask(bench.first)


def test_a_table_that_lacks_what_was_written() -> None:
    """The error names it, and the run has failed by it."""
    bench = Bench()
    bench.target.trouble = TargetMismatch("table hotels has lost columns")
    with pytest.raises(TargetMismatch):
        bench.ask(bench.first)


@pytest.mark.parametrize(
    "asked",
    [
        {"undoes": None},
        {"mode": Mode.FULL},
        {"mode": None},
        {"shards": ("north",)},
        {"window": Window(start=NOW, end=NOW + timedelta(days=1))},
    ],
    ids=["no publication", "full", "no mode", "shards", "window"],
)
def test_a_request_that_makes_no_sense(asked: dict[str, Any]) -> None:
    """A rollback names a publication, which it takes back as a whole; nothing else names one."""
    bench = Bench()
    with pytest.raises(UsageInvalid):
        admit(bench.workshop.services, request(bench.first.id, **asked), RunId("run-9"))


def test_rollbacks_of_different_publications_are_different_requests() -> None:
    """They may run side by side; and nothing else changes the key of a request."""
    keys = {request_key(sync_spec(), Mode.ROLLBACK, request(PublicationId(number)), "5" * 64) for number in (1, 2)}
    assert len(keys) == 2
