"""The publication: an approved review comes in, one transaction in the target goes out, and the record of it is finished."""

from typing import Final

import structlog

from sluice import log_events
from sluice.errors import ApprovalVoid, NothingToReview, ReviewNotApproved
from sluice.flow.digest import review_digest
from sluice.flow.entering import entered
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.rows_artifacts import rejects_of, rows_artifacts
from sluice.mapping.columns import keys_of
from sluice.mapping.watermarks import higher
from sluice.model.artifact import ArtifactKind, ArtifactRef
from sluice.model.base import RunId, ShardKey
from sluice.model.ledger import Publication
from sluice.model.lifecycle import APPROVALS, RunStatus, ShardStatus, Step, Verdict
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from sluice.ports import Publishing, Services

log: Final = structlog.get_logger()


def publish(services: Services, run_id: RunId) -> Publication | None:
    """Apply the run's newest review, exactly once; None if it changes nothing.

    A review that is already applied is found, not repeated: only what follows it is finished. Raises `ReviewNotApproved`,
    `ApprovalVoid` if what would be written is not what was approved, `LedgerMoved`, `Fenced` and `CommitUnconfirmed`.
    """
    with entered(services, run_id, Step.PUBLISH) as (run, policy):
        review = services.reviews.latest(run_id)
        if review is None:
            raise NothingToReview(f"run {run_id} has no review yet")
        if review.verdict not in APPROVALS:
            raise ReviewNotApproved(f"review {review.id} is {review.verdict}", verdict=str(review.verdict))
        spec = pinned_spec(services, run)
        publication = services.ledger(spec).publication_of(review.id)
        if publication is not None:
            log.info(log_events.PUBLICATION_FOUND, review=review.id, publication=publication.id)
        elif review.figures.writes:
            publication = _apply(services, run, spec, review, policy)
        shards = services.shards.of(run_id)
        if run.status is not RunStatus.SUCCEEDED and review.covers(shards):
            arrived = [shard for shard in shards if shard.status is ShardStatus.SUCCEEDED]
            _close_dead_letters(services, run, [shard.key for shard in arrived])
            _advance_watermarks(services, run, spec, arrived)
        return publication


def _apply(services: Services, run: Run, spec: SyncSpec, review: Review, policy: StagePolicy) -> Publication:
    if review.digest != review_digest(run, review.diff, review.figures.shards_failed):
        raise ApprovalVoid(f"review {review.id} was approved under another spec: {ApprovalVoid.__doc__}")
    target = services.target(spec)
    target.prepare()
    artifacts = rows_artifacts(services, run.id)
    diff = services.artifacts.get(review.diff)
    with target.publishing(run.token) as publishing:
        if found := publishing.find(review.id):
            return found
        for shard, seq in publishing.load(diff, with_deletes=review.verdict is not Verdict.APPROVED_WITHOUT_DELETES):
            publishing.load_rows(shard, seq, services.artifacts.get(artifacts[shard, seq]))
        publication = _apply_with_undo(services, publishing, run, review, policy)
    log.info(
        log_events.PUBLICATION_COMMITTED,
        review=review.id,
        publication=publication.id,
        counts=dict(publication.counts),
    )
    return publication


def _apply_with_undo(services: Services, publishing: Publishing, run: Run, review: Review, policy: StagePolicy) -> Publication:
    """Store the before-images under the target's lock, so that they are exactly what is overwritten, then apply."""
    images, number = publishing.before_images()
    ref = ArtifactRef(sync=run.sync, run=run.id, kind=ArtifactKind.UNDO, variant=review.digest[:16])
    undo = services.artifacts.put(ref, images, records=number, expires_at=services.clock.now() + policy.artifact_ttl)
    services.pointers.add(undo, run.token)
    log.info(log_events.UNDO_STORED, artifact=undo.key, records=number)
    return publishing.apply(run, review, undo)


def _close_dead_letters(services: Services, run: Run, arrived: list[ShardKey]) -> None:
    """Close the dead letters of objects that came right, whether that changed them or not; most syncs have none open."""
    if not services.dead_letters.open_for(run.sync, 1):
        return
    rejected = {reject.key for reject in rejects_of(services, run.id, arrived)}
    for (shard, _), pointer in rows_artifacts(services, run.id).items():
        if shard in arrived:
            services.dead_letters.close(run.sync, sorted(keys_of(services.artifacts.get(pointer)) - rejected))


def _advance_watermarks(services: Services, run: Run, spec: SyncSpec, arrived: list[Shard]) -> None:
    """Let incremental fetching go on behind what is published now; not for a failed shard, nor past what a window left out."""
    kind = spec.watermark_type
    if kind is None or run.window is not None:
        return
    marks = services.watermarks.of(run.sync)
    seen = {shard.key: shard.high_mark for shard in arrived if shard.high_mark is not None}
    moved: dict[ShardKey, str] = {
        key: mark for key, mark in seen.items() if key not in marks or higher(marks[key], mark, kind) != marks[key]
    }
    if moved:
        services.watermarks.advance(run.sync, moved, run)
