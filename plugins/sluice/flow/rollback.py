"""The review of a rollback: a run that takes a publication back comes in; what it would restore, for a person, goes out."""

from typing import BinaryIO, Final

import structlog

from sluice import log_events
from sluice.checks.policy import Judgement, judge
from sluice.errors import ArtifactCorrupt, NotUndoable
from sluice.flow.before_images import before_images, undone_publication
from sluice.flow.damage import is_void, note
from sluice.flow.digest import review_digest
from sluice.flow.entering import Entry, entered
from sluice.flow.packet import with_packet
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.review_artifacts import keep, stored_file
from sluice.flow.turned_down import end_superseded
from sluice.guard.temporary_files import temporary_file
from sluice.model.artifact import ArtifactKind
from sluice.model.base import ReviewId, RunId
from sluice.model.evidence import Evidence, Profile, cut
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, Step, Verdict
from sluice.model.quality import Quality
from sluice.model.review import Figures, Review
from sluice.model.spec import SyncSpec
from sluice.model.undo import Conflict
from sluice.ports import Services, Undo

log: Final = structlog.get_logger()

_CONFLICTS_NAMED: Final = 5
"""So many stand among the reasons; `conflicts_of` has all of them."""


def review_rollback(services: Services, run_id: RunId) -> Review:
    """Hold what the run is to take back against what became of it since, and keep the review, which a person has to answer.

    Where nothing is left to restore there is nothing to answer, either. Raises `NotUndoable`, and `TargetMismatch` if the table
    has lost columns that the publication had written.
    """
    with entered(services, run_id, Step.REVIEW) as entry:
        run = entry.run
        latest = services.reviews.latest(run_id)
        if run.status is RunStatus.SUCCEEDED and latest is not None:
            return latest
        spec = pinned_spec(services, run)
        if latest is not None and not is_void(services, latest) and services.ledger(spec).publication_of(latest.id) is not None:
            return latest
        if run.undoes is None:
            raise NotUndoable(f"run {run_id} takes no publication back")
        undone = undone_publication(services, spec, run.undoes)
        with temporary_file() as diff:
            with before_images(services, undone) as images:
                undo = services.target(spec).undo_of(undone.id, images, diff)
            entry.pulse.moved()
            return _keep(services, entry, spec, undo, diff)


def conflicts_of(services: Services, review: Review) -> list[Conflict]:
    """Return the objects that the review of a rollback leaves alone; none, if what names them was lost."""
    for pointer in services.pointers.of(review.run, ArtifactKind.CONFLICTS):
        if pointer.ref.variant.startswith(review.diff.ref.variant) and pointer.records == review.figures.conflicts:
            try:
                return [Conflict.model_validate_json(line) for line in services.artifacts.get(pointer).splitlines()]
            except ArtifactCorrupt as error:
                note(services, pointer, error)
    return []


def _keep(services: Services, entry: Entry, spec: SyncSpec, undo: Undo, file: BinaryIO) -> Review:
    run, expires_at = entry.run, services.clock.now() + entry.policy.artifact_ttl
    figures = Figures(
        seen=undo.objects,
        unchanged=0,
        live_before=undo.live_before,
        conflicts=len(undo.conflicts),
        outcomes={Outcome.ROLLED_BACK: undo.restored} if undo.restored else {},
    )
    judgement = judge(spec.review, figures, run) if undo.restored else Judgement(Verdict.AUTO_APPROVED)
    reasons = (*judgement.reasons, *_left_alone(undo)) if undo.restored else ()
    diff = stored_file(services, run, ArtifactKind.DIFF, file, records=undo.restored, expires_at=expires_at)
    services.pointers.add(diff, run.token)
    if undo.conflicts:
        lines, named = "\n".join(conflict.model_dump_json() for conflict in undo.conflicts).encode(), len(undo.conflicts)
        keep(services, run, ArtifactKind.CONFLICTS, lines, records=named, expires_at=expires_at, of=diff.ref.variant)
    found = _evidence(spec, undo)
    data = found.model_dump_json().encode()
    evidence = keep(services, run, ArtifactKind.EVIDENCE, data, records=len(found.samples), expires_at=expires_at)
    digest = review_digest(run, diff, (), 0, reasons)
    made = Review(
        id=ReviewId(f"{run.id}.{digest[:8]}"),
        run=run.id,
        sync=run.sync,
        digest=digest,
        figures=figures,
        reasons=reasons,
        verdict=judgement.verdict,
        diff=diff,
        evidence=evidence,
        created_at=services.clock.now(),
    )
    kept = services.reviews.save(with_packet(services, spec, run, made, evidence=found, shards=()), run)
    end_superseded(services, kept)
    log.info(
        log_events.ROLLBACK_REVIEWED,
        review=kept.id,
        publication=run.undoes,
        restored=undo.restored,
        conflicts=len(undo.conflicts),
    )
    return kept


def _left_alone(undo: Undo) -> tuple[str, ...]:
    if not undo.conflicts:
        return ()
    named = "; ".join(f"{cut(conflict.key)}: {conflict.why}" for conflict in undo.conflicts[:_CONFLICTS_NAMED])
    more = f"; and {len(undo.conflicts) - _CONFLICTS_NAMED:,} more" if len(undo.conflicts) > _CONFLICTS_NAMED else ""
    return (f"{len(undo.conflicts):,} of {undo.objects:,} objects were changed since, and are left alone: {named}{more}",)


def _evidence(spec: SyncSpec, undo: Undo) -> Evidence:
    """Return what a person decides by: the fields and some of the objects; there is no data that could have drifted."""
    suite = spec.review.expectations
    return Evidence(
        changes=tuple(undo.changes),
        samples=tuple(undo.samples),
        profile=Profile(rows=undo.live_after, looked_at=0, fields=()),
        baseline=None,
        drifts=(),
        shards=(),
        shards_in_all=0,
        quality=None if suite is None else Quality(suite=suite, not_run="it puts back what was published before"),
    )
