"""The publication: an approved review comes in, one transaction in the target goes out, and the record of it is finished."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import BinaryIO, Final

import structlog

from sluice import log_events
from sluice.errors import ApprovalVoid, Fenced, NothingToReview, RedoNeeded, ReviewNotApproved, ReviewWaiting
from sluice.flow import outbox
from sluice.flow.before_images import before_images, undone_publication
from sluice.flow.damage import intact, intact_file, is_void
from sluice.flow.digest import review_digest
from sluice.flow.entering import Entry, entered
from sluice.flow.overtaken import close_redriven, overtaken
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.rejects import close_letters
from sluice.flow.rows_artifacts import rows_artifacts, staged_artifacts
from sluice.guard.temporary_files import temporary_file
from sluice.mapping.columns import keys_of
from sluice.mapping.watermarks import MarkOrder, mark_order
from sluice.model import metric
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.model.ledger import Outcome, Publication
from sluice.model.lifecycle import APPROVALS, WAITING_VERDICTS, RunStatus, ShardStatus, Step, Verdict
from sluice.model.review import Review, told_by
from sluice.model.run import SYNC_MODES, Mode, Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.ports import Publishing, Services, Target

log: Final = structlog.get_logger()


def publish(services: Services, run_id: RunId, *, is_repeated: bool = False) -> Publication | None:
    """Apply the run's newest review, exactly once; None if it changes nothing.

    A review that is already applied is found, not repeated: only what follows it is finished. Raises `ReviewNotApproved`
    or, if a person has yet to decide, `ReviewWaiting`; `ApprovalVoid` if what would be written is not what was approved,
    `LedgerMoved`, `Fenced` and `CommitUnconfirmed`. Only if the step `is_repeated` after an error, `CallUnconfirmed` for a
    webhook that could not be reached.
    """
    with entered(services, run_id, Step.PUBLISH) as entry:
        review = services.reviews.latest(run_id)
        if review is None:
            raise NothingToReview(f"run {run_id} has no review yet")
        if review.verdict in WAITING_VERDICTS:
            raise ReviewWaiting(f"review {review.id} is {review.verdict}: a person has to decide", review=review.id)
        if review.verdict not in APPROVALS:
            raise ReviewNotApproved(f"review {review.id} is {review.verdict}", verdict=str(review.verdict))
        if is_void(services, review):
            raise RedoNeeded(f"review {review.id} is void: its diff was lost, or some of what it is of", review=review.id)
        spec = pinned_spec(services, entry.run)
        publication = services.ledger(spec).publication_of(review.id)
        if publication is not None:
            log.info(log_events.PUBLICATION_FOUND, review=review.id, publication=publication.id)
        elif review.figures.publishes:
            outbox.prepare(services, entry, spec, review)
            publication = _apply(services, entry, spec, review)
        shards = services.shards.of(run_id)
        if entry.run.status is not RunStatus.SUCCEEDED and review.covers(shards):
            arrived = [shard for shard in shards if shard.status is ShardStatus.SUCCEEDED]
            _close_dead_letters(services, entry, spec, shards, arrived)
            _advance_watermarks(services, entry.run, spec, arrived)
        outbox.deliver(services, entry, spec, review, is_repeated=is_repeated)
        if entry.run.status is not RunStatus.SUCCEEDED:
            services.runs.reach(entry.run, Step.SETTLE)
        return publication


def _apply(services: Services, entry: Entry, spec: SyncSpec, review: Review) -> Publication:
    target = services.target(spec)
    undone = entry.run.undoes
    staged = staged_artifacts(services, entry.run.id)
    changes = target.check() if undone is None else ()
    told = (*told_by(review.reasons, review.checks), *changes)
    if review.digest != review_digest(entry.run, review.diff, staged, review.figures.shards_failed, told):
        raise ApprovalVoid(
            f"what is staged, its spec or its table has changed since review {review.id}: {ApprovalVoid.__doc__}"
        )
    restored = nullcontext() if undone is None else before_images(services, undone_publication(services, spec, undone))
    with restored as images:
        publication = _publish_in_turn(services, entry, target, review, images)
    for outcome, number in publication.counts.items():
        services.metrics.count(metric.OBJECTS_PUBLISHED, number, stage=entry.run.stage, outcome=outcome)
    log.info(log_events.PUBLICATION_COMMITTED, review=review.id, publication=publication.id, counts=dict(publication.counts))
    return publication


def _publish_in_turn(services: Services, entry: Entry, target: Target, review: Review, images: BinaryIO | None) -> Publication:
    while True:
        try:
            return _publish_once(services, entry, target, review, images)
        except Fenced:
            # Another request of this sync has published meanwhile and raised the fence. That stops a worker who lost his run,
            # and he gets no newer token; for one who did not, it is only a queue.
            log.info(log_events.FENCE_RAISED, review=review.id, token=entry.take_next_token().token)


def _require_none_overtaken(services: Services, entry: Entry, review: Review) -> None:
    """Raise `ApprovalVoid` if an object that a redrive would write has come right in a later delivery since the review."""
    if entry.run.mode is not Mode.REDRIVE:
        return
    shards = {shard.key for shard in services.shards.of(entry.run.id)}
    if late := set(overtaken(services, entry.run, pinned_spec(services, entry.run), shards)):
        with intact(services, review.diff, entry.run) as diff:
            if late & keys_of(diff):
                what = f"review {review.id} writes objects whose dead letters have ended since"
                raise ApprovalVoid(f"{what}: {ApprovalVoid.__doc__}")


def _publish_once(services: Services, entry: Entry, target: Target, review: Review, images: BinaryIO | None) -> Publication:
    with_deletes = review.verdict is not Verdict.APPROVED_WITHOUT_DELETES
    with target.publishing(entry.run.token, entry.policy.no_progress_timeout) as publishing:
        if found := publishing.find(review.id):
            return found
        if images is not None and entry.run.undoes is not None:
            with intact_file(services, review.diff, entry.run) as diff:
                publishing.load_undo(diff, entry.run.undoes, images, with_deletes=with_deletes)
        else:
            _load(services, entry, publishing, review.diff, with_deletes=with_deletes)
        entry.pulse.moved()
        undo = _keep_before_images(services, publishing, entry, review)
        entry.pulse.moved()
        publication = publishing.apply(entry.run, review, undo)
        _require_few_deletions(publication, review)
        _require_none_overtaken(services, entry, review)
        # The last thing before the commit: who was taken for dead, or called off, publishes nothing.
        entry.require_running()
    return publication


def _load(services: Services, entry: Entry, publishing: Publishing, diff: Pointer, *, with_deletes: bool) -> None:
    """Load the diff and the rows that it asks for."""
    artifacts = rows_artifacts(services, entry.run.id)
    with intact_file(services, diff, entry.run) as file:
        needed = publishing.load(file, with_deletes=with_deletes)
    for shard, seq in needed:
        if (shard, seq) not in artifacts:
            raise RedoNeeded(f"the rows of shard {shard}, chunk {seq}, were lost and are not made again yet", shard=shard)
        with intact(services, artifacts[shard, seq], entry.run) as rows:
            publishing.load_rows(shard, seq, rows)
        entry.pulse.moved()


def _require_few_deletions(publication: Publication, review: Review) -> None:
    """Raise `ApprovalVoid` unless no more is deleted than was let through; what is not committed has not happened."""
    deleted, allowed = publication.counts.get(Outcome.DELETED, 0), review.deletions_allowed
    if deleted > allowed:
        raise ApprovalVoid(f"{deleted:,} objects would be deleted, and review {review.id} lets {allowed:,} through")


def _keep_before_images(services: Services, publishing: Publishing, entry: Entry, review: Review) -> Pointer:
    """Store the before-images under the target's lock, so that they are exactly what is overwritten."""
    expires_at = services.clock.now() + entry.policy.artifact_ttl
    with temporary_file() as images:
        number = publishing.before_images(images)
        ref = ArtifactRef(sync=review.sync, run=review.run, kind=ArtifactKind.UNDO)
        undo = services.artifacts.put_file(ref, images, records=number, expires_at=expires_at)
    services.pointers.add(undo, entry.run.token)
    log.info(log_events.UNDO_STORED, artifact=undo.key, records=number)
    return undo


def _close_dead_letters(services: Services, entry: Entry, spec: SyncSpec, shards: list[Shard], arrived: list[Shard]) -> None:
    """Close the dead letters of objects that came right; and of those that are not there any more, where the run can tell."""
    run, keys = entry.run, {shard.key for shard in arrived}
    if run.mode is Mode.REDRIVE:
        close_redriven(services, run, spec, keys)
        return
    close_letters(services, run, keys, entry.pulse.moved)
    if run.asks_for_all and spec.tells_absence and len(arrived) == len(shards):
        services.dead_letters.close_absent(run)


def _advance_watermarks(services: Services, run: Run, spec: SyncSpec, arrived: list[Shard]) -> None:
    """Let incremental fetching go on behind what is published now; not for a failed shard, nor past what a window left out.

    What asks no supplier tells nothing of it.
    """
    if run.window is not None or run.mode not in SYNC_MODES or not spec.can_increment:
        return
    moved = _moved(mark_order(spec), services.watermarks.of(run.sync), arrived)
    if moved:
        services.watermarks.advance(run.sync, moved, run)


def _moved(order: MarkOrder | None, held: Mapping[ShardKey, str], arrived: list[Shard]) -> dict[ShardKey, str]:
    """Return the marks that are higher than those held; without an order, such as that of files, those that differ."""
    seen = {shard.key: shard.high_mark for shard in arrived if shard.high_mark is not None}
    if order is None:
        return {key: mark for key, mark in seen.items() if held.get(key) != mark}
    sound = {key: mark for key, mark in held.items() if order.is_mark(mark)}
    return {key: mark for key, mark in seen.items() if key not in sound or order.higher(sound[key], mark) != sound[key]}
