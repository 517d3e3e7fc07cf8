"""Transforming: an exhausted shard comes in; each raw chunk becomes rows, keys, hashes and rejects; the shard has succeeded.

A chunk is done once its rows have a pointer, which is therefore the last thing written of it; what is done is not mapped again.
A `Permanent` error fails the shard. So does what passes by but is the shard's own, as an outage behind the team's function is:
whoever looks is told, and the next try goes on. Any other leaves the shard running.
"""

from typing import Final

import structlog
from structlog.contextvars import bound_contextvars

from sluice import log_events
from sluice.errors import Fenced, NoProgress, Permanent, RedoNeeded, ShardsFailed, TransformUnavailable
from sluice.flow.by_hand import left_by_hand
from sluice.flow.damage import intact, require_chunks
from sluice.flow.digest import content_digest
from sluice.flow.entering import entered_for_a_shard, heartbeat_of
from sluice.flow.measuring import measured
from sluice.flow.pinned_spec import spec_of
from sluice.flow.rejects import keep_rejects
from sluice.flow.reuse import reused
from sluice.flow.rows_artifacts import variant_of
from sluice.guard.heartbeat import Heartbeat
from sluice.guard.log_level import logged_from
from sluice.guard.memory import lack_of_memory_told
from sluice.mapping.columns import high_mark_of
from sluice.mapping.mapper import MappedChunk, Mapper
from sluice.mapping.watermarks import mark_order
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import ShardStatus, Step
from sluice.model.run import Failure, Run
from sluice.model.shard import Shard
from sluice.ports import Services

log: Final = structlog.get_logger()

_DONE: Final = (ShardStatus.SUCCEEDED, ShardStatus.SKIPPED)


def transform(services: Services, run_id: RunId, shard_key: ShardKey) -> Shard:
    """Map every chunk of the shard that has not been mapped yet. Running it again changes nothing.

    Raises `ShardsFailed`, and leaves the shard as it is, if it has not been fetched to its end; `RedoNeeded` where stored bytes
    were lost.
    """
    shard = services.shards.get(run_id, shard_key)
    if shard.status in _DONE:
        return shard
    if not shard.exhausted:
        why = f" ({shard.failure.error}: {shard.failure.message})" if shard.failure else ""
        raise ShardsFailed(f"shard {shard_key} is {shard.status} and not fetched to its end{why}", shard=shard_key)
    run = entered_for_a_shard(services, run_id, Step.TRANSFORM)
    policy = services.policy(run.stage)
    bound = bound_contextvars(**run.log_context, shard=shard_key, step=str(Step.TRANSFORM))
    with bound, logged_from(policy.log_level):
        shard = services.shards.claim(run_id, shard_key)
        if shard.status is not ShardStatus.RUNNING:
            return shard
        pulse = heartbeat_of(services, run, shard, Step.TRANSFORM, policy)
        try:
            return _transform_claimed(services, run, shard, pulse)
        except Fenced as fenced:
            left = left_by_hand(services, shard, fenced)
            if left.status is ShardStatus.SKIPPED:
                return left
            raise RedoNeeded(f"shard {shard_key} was begun again by hand", shard=shard_key) from fenced


def _transform_claimed(services: Services, run: Run, shard: Shard, pulse: Heartbeat) -> Shard:
    try:
        with measured(services, run.stage, Step.TRANSFORM), lack_of_memory_told(), pulse:
            return _transform(services, run, shard, pulse)
    except (Permanent, TransformUnavailable, NoProgress) as error:
        services.shards.fail(shard, Failure.of(error))
        log.warning(log_events.SHARD_FAILED, error=type(error).__name__, message=error.message)
        raise


def _transform(services: Services, run: Run, shard: Shard, pulse: Heartbeat) -> Shard:
    spec, version = spec_of(services, run, shard), shard.version_in(run)
    mapper = Mapper(spec, shard.until, shard.supplied_at, services.transform(spec, shard.key), pulse.moved)
    made_by, ledger = variant_of(version, mapper.reading), services.ledger(spec)
    order = mark_order(spec)
    done = {pointer.ref.seq: pointer for pointer in services.pointers.of(run.id, ArtifactKind.ROWS, shard.key)}
    mark: str | None = None
    raws = services.pointers.of(run.id, ArtifactKind.RAW, shard.key)
    require_chunks(services, shard, ArtifactKind.RAW, shard, [raw.ref.seq for raw in raws])
    for raw in raws:
        chunk_mark = None
        if raw.ref.seq not in done:
            if (rows := reused(services, run, shard, raw, made_by)) is not None:
                chunk_mark = high_mark_of(rows)
            else:
                with intact(services, raw, shard) as chunk:
                    mapped = mapper.map_chunk(
                        services.codec.pages(chunk),
                        raw.key,
                        lambda keys: ledger.remembered(run.sync, version, keys),
                    )
                _store(services, run, shard, raw, mapped=mapped, made_by=made_by)
                chunk_mark = mapped.high_mark
        elif order is not None:
            with intact(services, done[raw.ref.seq], shard) as rows:
                chunk_mark = high_mark_of(rows)
        if order is not None:
            mark = order.higher(mark, chunk_mark)
        pulse.moved()
    # Without a watermark among the fields, the mark is what fetching has set: the state of the files.
    shard = services.shards.succeed(shard if order is None else shard.model_copy(update={"high_mark": mark}))
    log.info(
        log_events.SHARD_TRANSFORMED,
        chunks=shard.chunks,
        records=shard.records,
        high_mark=shard.high_mark,
        transformer_version=version,
    )
    return shard


def _store(services: Services, run: Run, shard: Shard, raw: Pointer, *, mapped: MappedChunk, made_by: str) -> None:
    """Keep what a chunk was mapped to: artifacts first, the pointer of the rows last."""
    # Rows depend on what the ledger remembers at the moment, so their bytes are part of their name. Rejects depend on the raw
    # chunk alone, which is another one once its shard has begun again.
    variant = f"{made_by}{content_digest(mapped.rows)}"
    rows = _put(services, _ref(run, raw, ArtifactKind.ROWS, variant), mapped.rows, mapped.objects, raw)
    keep_rejects(services, run, shard, raw, mapped.rejects, variant=f"{made_by}{raw.ref.variant}")
    services.pointers.add(rows, shard.token)
    log.info(
        log_events.CHUNK_TRANSFORMED,
        chunk=raw.ref.seq,
        objects=mapped.objects,
        mapped=mapped.mapped,
        rejected=len(mapped.rejects),
        postdated=mapped.postdated.objects if mapped.postdated else 0,
    )


def _put(services: Services, ref: ArtifactRef, data: bytes, records: int, raw: Pointer) -> Pointer:
    """Store an artifact that is kept as long as the raw chunk it comes from."""
    pointer = services.artifacts.put(ref, data, records=records, expires_at=raw.expires_at)
    log.info(log_events.ARTIFACT_STORED, artifact=pointer.key, kind=str(ref.kind), bytes=pointer.bytes, records=records)
    return pointer


def _ref(run: Run, raw: Pointer, kind: ArtifactKind, variant: str) -> ArtifactRef:
    return ArtifactRef(sync=run.sync, run=run.id, kind=kind, shard=raw.ref.shard, seq=raw.ref.seq, variant=variant)
