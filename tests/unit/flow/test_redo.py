"""Doing again: steps that make what was lost before they are done, however the worker before them ended, and not for ever."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from sluice.errors import RedoNeeded, ReviewWaiting, SupplierUnavailable
from sluice.flow import redo
from sluice.flow.fetcher import fetch
from sluice.flow.gate import decide
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import ShardKey
from sluice.model.ledger import Publication
from sluice.model.lifecycle import RunStatus, ShardStatus, Verdict
from sluice.model.review import Choice
from sluice.model.run import Mode, ReviewMode
from sluice.model.shard import Shard
from sluice.model.stage import StagePolicy
from sluice.ports import Page
from tests.support.nouns import a_decision
from tests.unit.fakes.artifact_store import MemoryArtifactStore
from tests.unit.fakes.source import RegionalSource
from tests.unit.flow.workshop import JUNE, MAY, NORTH, RUN, SOUTH, Workshop, page, small_chunks, sync_spec

IN_NORTH = (page(1, ("a", MAY), (None, MAY)), page(2, ("b", JUNE), is_last=True))
IN_SOUTH = (page(1, ("c", MAY), is_last=True),)
KEYS = {"raw": ArtifactKind.RAW, "rows": ArtifactKind.ROWS, "rejects": ArtifactKind.REJECTS, "diff": ArtifactKind.DIFF}


class ForgetfulStore(MemoryArtifactStore):
    """Loses what it is given of one kind, so many times."""

    def __init__(self, kind: ArtifactKind, times: int) -> None:
        super().__init__()
        self._kind, self._times = kind, times

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        pointer = super().put(ref, data, records, expires_at)
        if ref.kind is self._kind and self._times:
            self._times -= 1
            del self.objects[pointer.key]
        return pointer


class Bench:
    """A run of two shards, a page to a chunk, as Airflow takes it through its steps."""

    def __init__(self, artifacts: MemoryArtifactStore | None = None, policy: StagePolicy | None = None) -> None:
        approving = {"first_load": "auto-approve", "auto_approve": {"created": "100%", "changed": "100%", "rejected": "100%"}}
        self.workshop = Workshop(
            spec=sync_spec(review=approving), policy=policy or small_chunks(), artifacts=artifacts or MemoryArtifactStore()
        )
        self.target = self.workshop.equip()
        self.source = RegionalSource(north=IN_NORTH, south=IN_SOUTH)
        self.workshop.supplier = self.source
        self.services = self.workshop.services

    def begin(self, review: ReviewMode = ReviewMode.POLICY) -> None:
        """Bring both shards in."""
        self.workshop.begin(mode=Mode.FULL, review=review)
        for key in (NORTH, SOUTH):
            fetch(self.services, RUN, key)
            self.transform(key)

    def transform(self, key: ShardKey = NORTH) -> Shard:
        """Run the step."""
        return redo.transform(self.services, RUN, key)

    def review(self) -> None:
        """Run the step."""
        redo.review(self.services, RUN)

    def publish(self) -> Publication | None:
        """Run the step."""
        return redo.publish(self.services, RUN)

    def lose(self, *kinds: ArtifactKind) -> None:
        """Lose all artifacts of some kinds."""
        for ref, pointer in self.workshop.memory.pointers.items():
            if ref.kind in kinds:
                self.workshop.artifacts.objects.pop(pointer.key, None)

    def asked(self, region: str) -> list[Any]:
        """The cursors that the supplier was asked to go on from."""
        return [request.cursor for request in self.source.regions[region].requests]


def test_a_transformation_that_finds_a_chunk_lost() -> None:
    """The shard is fetched again from its first page, and then mapped; the other one is left alone."""
    bench = Bench()
    bench.workshop.begin(mode=Mode.FULL)
    fetch(bench.services, RUN, NORTH)
    bench.lose(ArtifactKind.RAW)
    shard = bench.transform()
    assert (shard.status, shard.epoch, shard.chunks, shard.records) == (ShardStatus.SUCCEEDED, 1, 2, 3)
    assert bench.asked("north") == [None, None]
    assert bench.workshop.memory.shards[RUN, SOUTH].status is ShardStatus.PENDING


def test_a_transformation_after_one_that_died_behind_its_mark() -> None:
    """It finds a shard that began again, and fetches it."""
    bench = Bench()
    bench.begin()
    bench.services.redos.fetch_again(NORTH, bench.workshop.memory.runs[RUN])
    assert bench.transform().epoch == 1
    assert bench.asked("north") == [None, None]


@pytest.mark.parametrize("kinds", [("rows",), ("rejects",), ("rows", "rejects"), ("raw", "rows")], ids="+".join)
def test_a_review_that_finds_rows_lost(kinds: tuple[str, ...]) -> None:
    """All of them are made again at once, from the chunks if these are there, and then reviewed."""
    bench = Bench()
    bench.begin()
    bench.lose(*(KEYS[kind] for kind in kinds))
    bench.review()
    latest = bench.services.reviews.latest(RUN)
    assert latest is not None
    assert (latest.figures.seen, latest.figures.shards_failed) == (4, 0)
    assert bench.asked("north") == ([None, None] if "raw" in kinds else [None])


def test_a_review_after_one_that_died_behind_its_mark() -> None:
    """No shard is left out of it because its rows were not there."""
    bench = Bench()
    bench.begin()
    bench.services.redos.map_again(NORTH, [0], bench.workshop.memory.runs[RUN])
    bench.review()
    latest = bench.services.reviews.latest(RUN)
    assert latest is not None
    assert (latest.figures.seen, latest.figures.shards_failed) == (4, 0)


def test_a_shard_that_cannot_be_fetched_again_fails_alone() -> None:
    """The review is of the others, as if it had failed at first; the run will be partial."""
    bench = Bench()
    bench.begin()
    bench.lose(ArtifactKind.RAW, ArtifactKind.ROWS)
    bench.source.regions["north"].answers.insert(0, SupplierUnavailable("503"))
    bench.review()
    latest = bench.services.reviews.latest(RUN)
    assert latest is not None
    assert (latest.figures.seen, latest.figures.shards_failed) == (1, 1)
    assert bench.workshop.shard(NORTH).status is ShardStatus.FAILED


@pytest.mark.parametrize("kinds", [("diff",), ("rows",), ("diff", "rows", "rejects"), ("raw", "rows", "diff")], ids="+".join)
def test_a_publication_that_finds_something_lost(kinds: tuple[str, ...]) -> None:
    """It is made again to the same bytes: the review is the same, and so is what is published, once."""
    bench = Bench()
    bench.begin(ReviewMode.ALWAYS)
    bench.review()
    (waiting,) = bench.services.reviews.waiting()
    decide(bench.services, waiting.id, a_decision(Choice.APPROVE))
    bench.lose(*(KEYS[kind] for kind in kinds))
    published = bench.publish()
    assert published is not None
    assert published.review == waiting.id
    assert sorted(bench.target.rows) == ["a", "b", "c"]
    assert len(bench.target.ledger.published) == 1
    assert bench.services.watermarks.of("hotels") == {NORTH: JUNE, SOUTH: MAY}


def restart_behind_the_review(bench: Bench) -> None:
    bench.services.redos.fetch_again(NORTH, bench.workshop.memory.runs[RUN])


def lose_raw_and_rows(bench: Bench) -> None:
    bench.lose(ArtifactKind.RAW, ArtifactKind.ROWS)


@pytest.mark.parametrize("harm", [restart_behind_the_review, lose_raw_and_rows])
def test_an_approval_of_what_is_not_any_more(harm: Callable[[Bench], None]) -> None:
    """Where another diff comes of it, nothing is published, no watermark moves, and the run waits for a person."""
    bench = Bench()
    bench.begin(ReviewMode.ALWAYS)
    bench.review()
    (waiting,) = bench.services.reviews.waiting()
    decide(bench.services, waiting.id, a_decision(Choice.APPROVE))
    harm(bench)
    more: list[Page | BaseException] = [*IN_NORTH[:1], page(2, ("b", JUNE), ("d", JUNE), is_last=True)]
    bench.source.regions["north"].answers = more
    with pytest.raises(ReviewWaiting, match="is needs-human: a person has to decide") as asked:
        bench.publish()
    assert (bench.target.rows, bench.services.watermarks.of("hotels")) == ({}, {})
    assert bench.workshop.memory.runs[RUN].status is RunStatus.WAITING
    latest = bench.services.reviews.latest(RUN)
    assert latest is not None
    assert (latest.verdict, latest.id == waiting.id, asked.value.review) == (Verdict.NEEDS_HUMAN, False, latest.id)


@pytest.mark.parametrize("kind", [ArtifactKind.ROWS, ArtifactKind.REJECTS])
@pytest.mark.parametrize("from_the_review_on", [True, False])
def test_what_is_lost_behind_the_commit(kind: ArtifactKind, from_the_review_on: bool) -> None:
    """The publication stands and is not reviewed again; what follows it is finished with what was made again."""
    bench = Bench()
    bench.begin()
    bench.review()
    watermarks = bench.services.watermarks
    bench.services = replace(bench.services, watermarks=InterruptedWatermarks())
    with pytest.raises(KeyboardInterrupt):
        bench.publish()
    bench.services = replace(bench.services, watermarks=watermarks)
    bench.lose(kind)
    if from_the_review_on:
        bench.review()
    published = bench.publish()
    assert published is not None
    assert len(bench.target.ledger.published) == len(bench.workshop.memory.reviews) == 1
    assert bench.services.watermarks.of("hotels") == {NORTH: JUNE, SOUTH: MAY}
    assert {shard.status for shard in bench.services.shards.of(RUN)} == {ShardStatus.SUCCEEDED}


class InterruptedWatermarks:
    """A worker that dies before its watermarks move."""

    def of(self, *_: Any) -> dict[ShardKey, str]:
        raise KeyboardInterrupt

    def advance(self, *_: Any) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize(("times", "is_made"), [(redo.MOST_REDOS, True), (redo.MOST_REDOS + 1, False)])
def test_nothing_is_made_for_ever(times: int, is_made: bool) -> None:
    """What is lost again and again stays lost, and is marked for the next try."""
    bench = Bench(ForgetfulStore(ArtifactKind.DIFF, times))
    bench.begin()
    bench.review()
    if is_made:
        assert bench.publish() is not None
        return
    with pytest.raises(RedoNeeded):
        bench.publish()
    assert bench.target.rows == {}
    assert bench.publish() is not None


@pytest.mark.parametrize("days", [14, 180])
def test_artifacts_are_kept_as_the_stage_says(days: int) -> None:
    """Whatever a run stores expires after its stage's `artifact_ttl`."""
    bench = Bench(policy=StagePolicy.model_validate({"artifact_ttl": f"{days}d", "chunk_bytes": 1}))
    bench.begin()
    bench.review()
    bench.publish()
    now = bench.workshop.memory.clock.now()
    kept = {ref.kind: pointer.expires_at for ref, pointer in bench.workshop.memory.pointers.items()}
    kinds = {*KEYS.values(), ArtifactKind.SPEC, ArtifactKind.UNDO}
    assert kinds <= set(kept)
    assert {(at - now).days for at in kept.values() if at is not None} == {days}
    assert None not in kept.values()
