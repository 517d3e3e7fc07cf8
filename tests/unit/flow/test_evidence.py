"""Evidence: what is kept beside a review, what it is compared with, and what it does without."""

from datetime import timedelta

import pytest

from sluice.flow.evidence import _distance, _telling
from sluice.flow.publisher import publish
from sluice.flow.reviewer import review
from sluice.flow.settlement import settle
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, ShardKey
from sluice.model.evidence import Drift, Evidence, Measure, ShardCount
from sluice.model.review import Review
from sluice.model.run import Mode
from tests.unit.flow.workshop import JUNE, MAY, NORTH, RUN, SOUTH, Workshop, sync_spec


def equipped() -> Workshop:
    """A workshop with a table, whose first load needs nobody."""
    policy = {"first_load": "auto-approve", "auto_approve": {"created": "100%", "changed": "100%"}}
    workshop = Workshop(spec=sync_spec(review=policy))
    workshop.equip()
    return workshop


def made(workshop: Workshop, *, north: tuple[tuple[str, str], ...], south: tuple[tuple[str, str], ...]) -> Review:
    """Take a full run up to its review."""
    workshop.begin(mode=Mode.FULL)
    workshop.bring_in(NORTH, *north)
    workshop.bring_in(SOUTH, *south)
    return review(workshop.services, RUN)


def published(workshop: Workshop, **shards: tuple[tuple[str, str], ...]) -> Review:
    """Take a full run through, and call it something else, so that another can be one."""
    review_ = made(workshop, **shards)
    publish(workshop.services, RUN)
    ended = settle(workshop.services, RUN)
    workshop.memory.runs = {RunId("before"): ended.model_copy(update={"id": RunId("before"), "request_key": "before"})}
    workshop.memory.shards = {(RunId("before"), key): shard for (_, key), shard in workshop.memory.shards.items()}
    workshop.memory.shards = {
        place: shard.model_copy(update={"run": RunId("before")}) for place, shard in workshop.memory.shards.items()
    }
    workshop.memory.pointers.clear()
    workshop.memory.clock.move(timedelta(days=1))
    return review_


def evidence_of(workshop: Workshop, review_: Review) -> Evidence:
    """Read what is kept beside a review."""
    assert review_.evidence is not None
    return Evidence.model_validate_json(workshop.artifacts.get(review_.evidence))


def test_evidence_is_kept_with_the_run() -> None:
    """As an artifact that the review points to; the same state gives the same bytes."""
    workshop = equipped()
    first = made(workshop, north=(("a", MAY), ("b", MAY)), south=(("c", MAY),))
    assert workshop.services.pointers.of(RUN, ArtifactKind.EVIDENCE) == [first.evidence]
    found = evidence_of(workshop, first)
    assert [(sample.outcome, sample.key) for sample in found.samples] == [("created", "a"), ("created", "b"), ("created", "c")]
    assert (found.profile.rows, found.baseline, found.drifts, found.shards_in_all) == (3, None, (), 2)
    assert review(workshop.services, RUN) == first
    assert workshop.services.pointers.of(RUN, ArtifactKind.EVIDENCE) == [first.evidence]


def test_the_baseline_is_what_the_last_publication_left() -> None:
    """And shards are laid beside what they delivered before."""
    workshop = equipped()
    before = published(workshop, north=(("a", MAY), ("b", MAY)), south=(("c", MAY),))
    found = evidence_of(workshop, made(workshop, north=(("a", JUNE),), south=(("c", MAY), ("d", MAY), ("e", MAY))))
    assert found.baseline == evidence_of(workshop, before).profile
    assert [change.objects for change in found.changes] == [1]
    assert found.shards == (
        ShardCount(shard=SOUTH, objects=3, before=(1,)),
        ShardCount(shard=NORTH, objects=1, before=(2,)),
    )


@pytest.mark.parametrize("loss", ["bytes", "pointer", "review", "meaning"])
def test_a_baseline_that_is_gone_is_none(loss: str) -> None:
    """Artifacts expire, reviews do, and old releases made no evidence, or another kind of it: nothing stops for that."""
    workshop = equipped()
    before = published(workshop, north=(("a", MAY),), south=(("c", MAY),))
    assert before.evidence is not None
    if loss == "bytes":
        del workshop.artifacts.objects[before.evidence.key]
    elif loss == "pointer":
        workshop.memory.reviews[before.id] = before.model_copy(update={"evidence": None})
    elif loss == "review":
        workshop.memory.reviews.clear()
    else:
        other = workshop.artifacts.put(before.evidence.ref, b'{"since": "ever"}', 0, None)
        workshop.memory.reviews[before.id] = before.model_copy(update={"evidence": other})
    found = evidence_of(workshop, made(workshop, north=(("a", JUNE),), south=(("c", MAY),)))
    assert (found.baseline, found.drifts) == (None, ())
    assert workshop.metrics.of("artifact_corrupt", kind="evidence") == (loss == "bytes")


def test_evidence_that_is_lost_stops_no_publication() -> None:
    """Nothing is published by it."""
    workshop = equipped()
    kept = made(workshop, north=(("a", MAY),), south=(("c", MAY),))
    assert kept.evidence is not None
    del workshop.artifacts.objects[kept.evidence.key]
    publication = publish(workshop.services, RUN)
    assert publication is not None
    assert publication.review == kept.id


def test_an_incremental_run_has_no_history_to_be_beside() -> None:
    """It delivers what changed, and full runs delivered everything."""
    workshop = equipped()
    published(workshop, north=(("a", MAY),), south=(("c", MAY),))
    workshop.begin(mode=Mode.INCREMENTAL)
    workshop.bring_in(NORTH, ("a", JUNE))
    workshop.bring_in(SOUTH)
    found = evidence_of(workshop, review(workshop.services, RUN))
    assert [(count.objects, count.before) for count in found.shards] == [(1, ()), (0, ())]


def test_what_grows_by_nature_is_no_drift() -> None:
    """Version and watermark are later after every change."""
    spec = sync_spec(
        fields=[{"name": name, "type": "bigint"} for name in ("id", "updated_at", "revision", "price")],
        object={"key": ["id"], "version": "revision"},
    )
    drifts = [Drift(field=field.name, measure=Measure.STABILITY_INDEX, value=1) for field in spec.fields]
    assert [drift.field for drift in _telling(drifts, spec)] == ["id", "price"]


def test_shards_are_as_far_as_a_share_of_their_median() -> None:
    """Without a history a shard is no distance from it; from nothing it is as far as it has objects."""
    shard = ShardKey("north")
    assert _distance(ShardCount(shard=shard, objects=5, before=(10, 20, 10))) == pytest.approx(0.5)
    assert _distance(ShardCount(shard=shard, objects=5, before=())) == 0
    assert _distance(ShardCount(shard=shard, objects=5, before=(0, 0))) == pytest.approx(5)
