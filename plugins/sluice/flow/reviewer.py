"""The review: rows artifacts of a run come in; a diff against the ledger, figures and a verdict go out."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from sluice import log_events
from sluice.checks.policy import Judgement, asked_again, judge
from sluice.errors import NothingToReview
from sluice.flow.damage import intact, is_void, require_chunks
from sluice.flow.digest import review_digest
from sluice.flow.entering import Entry, entered
from sluice.flow.evidence import gather
from sluice.flow.overtaken import overtaken
from sluice.flow.packet import with_packet
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.quality import checked
from sluice.flow.rejects import keep_new_rejects, note_repeated, rejects_of
from sluice.flow.review_artifacts import keep, stored_file
from sluice.flow.rows_artifacts import rows_artifacts, staged_artifacts, variant_of
from sluice.flow.turned_down import end_superseded
from sluice.guard.temporary_files import temporary_file
from sluice.mapping.columns import postdated_of
from sluice.mapping.mapper import MappedChunk, Mapper
from sluice.model import metric
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import ObjectKey, ReviewId, RunId, ShardKey
from sluice.model.evidence import Evidence
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, ShardStatus, Step
from sluice.model.review import Figures, Review, told_by
from sluice.model.rows import Postdated
from sluice.model.run import Mode, Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.ports import DiffCounts, Diffing, DiffScope, Services

log: Final = structlog.get_logger()


def review(services: Services, run_id: RunId) -> Review:
    """Compare what came in with the ledger, judge it by the spec's policy, and keep the review.

    Raises `NothingToReview` if no shard came through, `TargetMismatch` if the result could not be published, and `RedoNeeded`
    where stored bytes were lost.
    """
    with entered(services, run_id, Step.REVIEW) as entry:
        run = entry.run
        latest = services.reviews.latest(run_id)
        if run.status is RunStatus.SUCCEEDED and latest is not None:
            return latest
        shards = services.shards.of(run_id)
        arrived = {shard.key: shard for shard in shards if shard.status is ShardStatus.SUCCEEDED}
        if not arrived:
            raise NothingToReview(f"run {run_id}: {NothingToReview.__doc__}")
        spec = pinned_spec(services, run)
        if latest is not None and _is_published(services, spec, latest, shards):
            return latest
        scope = DiffScope(
            complete=spec.tells_absence,
            transformer_version=run.transformer_version,
            versions=_other_versions(run, arrived.values()),
            newer=services.runs.newer_than(run) if run.mode is Mode.REPLAY else (),
            deletes=spec.target.deletes != "ignore",
        )
        target = services.target(spec)
        schema_changes = target.check()
        with target.diffing() as diffing:
            postdated = _stage(services, diffing, entry, arrived)
            keyless = _stage_rejected(services, diffing, entry, arrived)
            scope = replace(scope, complete=scope.complete and _is_complete(run, shards, keyless))
            diffing.leave_out(overtaken(services, run, spec, arrived))
            compare = partial(_compare, services, diffing, entry, spec, scope=scope, arrived=arrived)
            compare()
            counts = diffing.counts()
            quality = checked(services, diffing, entry, spec, arrived=arrived, counts=counts, again=compare)
            if quality is not None and quality.rejected:
                counts = diffing.counts()
            expires_at = services.clock.now() + entry.policy.artifact_ttl
            changes = sum(counts.outcomes.values())
            with temporary_file() as file:
                diffing.write_diff(file)
                diff = stored_file(services, run, ArtifactKind.DIFF, file, records=changes, expires_at=expires_at)
            told = {
                "schema_changes": schema_changes,
                "postdated": postdated,
                "quality": quality,
                "versions": counts.versions,
            }
            found = gather(services, diffing, entry, spec, arrived).model_copy(update=told)
        services.pointers.add(diff, run.token)
        data = found.model_dump_json().encode()
        evidence = keep(services, run, ArtifactKind.EVIDENCE, data, records=len(found.samples), expires_at=expires_at)
        figures = _figures(spec, run, counts, keyless, failed=len(shards) - len(arrived))
        judgement = judge(spec.review, figures, run, found.drifts, found.profile, quality=quality)
        made = _made(services, run, diff, figures=figures, judgement=judgement, found=found)
        earlier = services.reviews.of(run_id)
        if made.id not in {review.id for review in earlier}:
            unpublished = [review for review in earlier if services.ledger(spec).publication_of(review.id) is None]
            judgement = asked_again(judgement, unpublished)
            made = _made(services, run, diff, figures=figures, judgement=judgement, found=found)
        made = made.model_copy(update={"evidence": evidence})
        return _keep(services, run, with_packet(services, spec, run, made, evidence=found, shards=shards))


def _other_versions(run: Run, arrived: Iterable[Shard]) -> dict[ShardKey, int]:
    """Return the versions of the shards that were made by another one than most."""
    found = {shard.key: shard.version_in(run) for shard in arrived}
    return {key: version for key, version in found.items() if version != run.transformer_version}


def _is_published(services: Services, spec: SyncSpec, latest: Review, shards: list[Shard]) -> bool:
    """Whether all that came in was published by that review, so that there is nothing left to review."""
    published = latest.covers(shards) and not is_void(services, latest)
    return published and services.ledger(spec).publication_of(latest.id) is not None


def _stage(services: Services, diffing: Diffing, entry: Entry, arrived: Mapping[ShardKey, Shard]) -> Postdated | None:
    """Stage what came in; return what of it is dated after its fetch."""
    postdated: Postdated | None = None
    artifacts = rows_artifacts(services, entry.run.id)
    found: dict[ShardKey, list[int]] = defaultdict(list)
    for key, seq in artifacts:
        found[key].append(seq)
    for key, shard in arrived.items():
        require_chunks(services, shard, ArtifactKind.ROWS, entry.run, found[key])
    for (key, seq), pointer in artifacts.items():
        if key in arrived:
            with intact(services, pointer, entry.run) as rows:
                diffing.stage(key, seq, rows)
                found_ahead = postdated_of(rows)
            postdated = found_ahead if postdated is None else postdated.followed_by(found_ahead)
            entry.pulse.moved()
    if postdated is not None:
        log.warning(log_events.RECORDS_POSTDATED, records=postdated.objects)
    return postdated


def _stage_rejected(services: Services, diffing: Diffing, entry: Entry, arrived: Mapping[ShardKey, Shard]) -> int:
    """Stage what could not be taken in; return how many objects nobody can name."""
    keyless = 0

    def keys(shards: Container[ShardKey]) -> Iterator[ObjectKey]:
        nonlocal keyless
        for reject in rejects_of(services, entry.run, shards):
            if reject.key is None:
                keyless += 1
            else:
                yield reject.key

    for version in sorted({shard.version_in(entry.run) for shard in arrived.values()}):
        diffing.stage_rejected(keys({key for key, shard in arrived.items() if shard.version_in(entry.run) == version}), version)
    note_repeated(services, entry.run, arrived, entry.pulse.moved)
    return keyless


def _made(services: Services, run: Run, diff: Pointer, *, figures: Figures, judgement: Judgement, found: Evidence) -> Review:
    staged = staged_artifacts(services, run.id)
    checks = None if found.quality is None else found.quality.digest
    told = (*told_by(judgement.reasons, checks), *found.schema_changes)
    digest = review_digest(run, diff, staged, figures.shards_failed, told)
    return Review(
        id=ReviewId(f"{run.id}.{digest[:8]}"),
        run=run.id,
        sync=run.sync,
        digest=digest,
        figures=figures,
        reasons=judgement.reasons,
        checks=checks,
        verdict=judgement.verdict,
        diff=diff,
        created_at=services.clock.now(),
    )


def _keep(services: Services, run: Run, made: Review) -> Review:
    kept = services.reviews.save(made, run)
    end_superseded(services, kept)
    if kept.created_at == made.created_at:  # else it was there already
        for outcome, number in (*kept.figures.outcomes.items(), (metric.UNCHANGED, kept.figures.unchanged)):
            services.metrics.count(metric.OBJECTS_REVIEWED, number, stage=run.stage, outcome=outcome)
    log.info(
        log_events.REVIEW_MADE,
        review=kept.id,
        verdict=kept.verdict,
        seen=kept.figures.seen,
        writes=kept.figures.writes,
        outcomes=dict(kept.figures.outcomes),
    )
    return kept


def _compare(
    services: Services, diffing: Diffing, entry: Entry, spec: SyncSpec, *, scope: DiffScope, arrived: Mapping[ShardKey, Shard]
) -> None:
    """Hold what is staged against the ledger; chunks that lack a row for that are mapped again."""
    while lacking := diffing.compare(scope):
        for shard, seq in lacking:
            mapped = _map_again(services, entry, spec, arrived[shard], seq)
            diffing.unstage(shard, seq)
            diffing.stage(shard, seq, mapped.rows)
            rejected = [reject.key for reject in mapped.rejects if reject.key is not None]
            diffing.stage_rejected(rejected, arrived[shard].version_in(entry.run))
            entry.pulse.moved()
    entry.pulse.moved()


def _map_again(services: Services, entry: Entry, spec: SyncSpec, shard: Shard, seq: int) -> MappedChunk:
    """Map a chunk in full, since the ledger forgot meanwhile what the transformer left out for its sake.

    What of it cannot be taken in any more, for a team's function that was edited, say, is a reject as well, and not gone.
    """
    run = entry.run
    raw = next(raw for raw in services.pointers.of(run.id, ArtifactKind.RAW, shard.key) if raw.ref.seq == seq)
    with intact(services, raw, run) as chunk:
        meant = spec.as_version(shard.version_in(run))
        mapper = Mapper(meant, shard.until, shard.supplied_at, services.transform(meant, shard.key), entry.pulse.moved)
        mapped = mapper.map_chunk(services.codec.pages(chunk), raw.key, lambda _: {})
    variant = f"{variant_of(meant.version, mapper.reading, full=True)}{raw.ref.variant}"
    keep_new_rejects(services, run, shard, raw, mapped.rejects, variant=variant)
    ref = ArtifactRef(sync=run.sync, run=run.id, kind=ArtifactKind.ROWS, shard=shard.key, seq=seq, variant=variant)
    pointer = services.artifacts.put(ref, mapped.rows, records=mapped.objects, expires_at=raw.expires_at)
    services.pointers.add(pointer, shard.token)
    log.info(log_events.CHUNK_MAPPED_AGAIN, shard=shard.key, seq=seq)
    return mapped


def _is_complete(run: Run, shards: list[Shard], keyless: int) -> bool:
    """Whether an object that did not arrive is gone: only if all were asked for, and all that arrived could be named."""
    return run.asks_for_all and all(shard.status is ShardStatus.SUCCEEDED for shard in shards) and not keyless


def _figures(spec: SyncSpec, run: Run, counts: DiffCounts, keyless: int, failed: int) -> Figures:
    outcomes = dict(counts.outcomes)
    if keyless:
        outcomes[Outcome.REJECTED] = outcomes.get(Outcome.REJECTED, 0) + keyless
    return Figures(
        seen=counts.seen + keyless,
        unchanged=counts.unchanged,
        live_before=counts.live_before,
        # Where shards come with time, one of which the table holds nothing yet is an ordinary day, and no first load. Nor is it
        # one where what was bad of a shard comes right before anything else of it.
        first_loaded=0 if _is_used_to_new_shards(spec, run) and counts.live_before else counts.first_loaded,
        vanished=counts.vanished,
        moved=counts.moved,
        noted=counts.noted,
        outcomes=outcomes,
        shards_failed=failed,
    )


def _is_used_to_new_shards(spec: SyncSpec, run: Run) -> bool:
    return spec.shards_come_with_time or run.mode is Mode.REDRIVE
