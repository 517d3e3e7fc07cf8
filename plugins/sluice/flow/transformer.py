"""Transforming: an exhausted shard comes in; each raw chunk becomes rows, keys, hashes and rejects; the shard has succeeded."""

from typing import Final

import structlog
from structlog.contextvars import bound_contextvars

from sluice import log_events
from sluice.errors import Permanent, ShardsFailed
from sluice.flow.pinned_spec import pinned_spec
from sluice.mapping.columns import high_mark_of
from sluice.mapping.mapper import MappedChunk, Mapper
from sluice.mapping.watermarks import higher
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import ShardStatus, Step
from sluice.model.run import Failure, Run
from sluice.model.shard import Shard
from sluice.ports import Services

log: Final = structlog.get_logger()


def transform(services: Services, run_id: RunId, shard_key: ShardKey) -> Shard:
    """Map every chunk of the shard that has not been mapped yet. Running it again changes nothing.

    Raises `ShardsFailed` if the shard has not been fetched to its end.
    """
    run = services.runs.get(run_id)
    with bound_contextvars(**run.log_context, shard=shard_key, step=str(Step.TRANSFORM)):
        shard = services.shards.claim(run_id, shard_key)
        if shard.status is not ShardStatus.RUNNING:
            return shard
        if not shard.exhausted:
            raise ShardsFailed(f"shard {shard_key} of run {run_id} has not been fetched to its end", shard=shard_key)
        try:
            return _transform(services, run, shard)
        except Permanent as error:
            services.shards.fail(shard, Failure.of(error))
            log.warning(log_events.SHARD_FAILED, error=type(error).__name__, message=error.message)
            raise


def _transform(services: Services, run: Run, shard: Shard) -> Shard:
    spec = pinned_spec(services, run)
    mapper, ledger = Mapper(spec), services.ledger(spec)
    done = {pointer.ref.seq: pointer for pointer in services.pointers.of(run.id, ArtifactKind.ROWS, shard.key)}
    mark: str | None = None
    for raw in services.pointers.of(run.id, ArtifactKind.RAW, shard.key):
        if raw.ref.seq in done:
            chunk_mark = high_mark_of(services.artifacts.get(done[raw.ref.seq]))
        else:
            mapped = mapper.map_chunk(
                services.codec.pages(services.artifacts.get(raw)),
                raw.key,
                lambda keys: ledger.remembered(run.sync, run.transformer_version, keys),
            )
            _store(services, run, shard, raw, mapped)
            chunk_mark = mapped.high_mark
        if spec.source.watermark is not None:
            mark = higher(mark, chunk_mark, spec.field(spec.source.watermark).type)
    shard = services.shards.succeed(shard.model_copy(update={"high_mark": mark}))
    log.info(log_events.SHARD_TRANSFORMED, records=shard.records, high_mark=mark)
    return shard


def _store(services: Services, run: Run, shard: Shard, raw: Pointer, mapped: MappedChunk) -> None:
    """Keep what a chunk was mapped to; the pointer of its rows comes last, since it says that the chunk is done."""
    if mapped.rejects:
        _quarantine(services, run, shard, raw, mapped)
    rows = services.artifacts.put(
        _ref(run, raw, ArtifactKind.ROWS), mapped.rows, records=mapped.objects, expires_at=raw.expires_at
    )
    log.info(log_events.ARTIFACT_STORED, artifact=rows.key, kind=str(rows.ref.kind), bytes=rows.bytes)
    services.pointers.add(rows, shard.token)
    log.info(
        log_events.CHUNK_TRANSFORMED,
        chunk=raw.ref.seq,
        objects=mapped.objects,
        mapped=mapped.mapped,
        rejected=len(mapped.rejects),
    )


def _quarantine(services: Services, run: Run, shard: Shard, raw: Pointer, mapped: MappedChunk) -> None:
    """Keep the rejects of a chunk, one JSON line each, and open a dead letter for each."""
    lines = b"".join(reject.model_dump_json().encode() + b"\n" for reject in mapped.rejects)
    rejects = services.artifacts.put(
        _ref(run, raw, ArtifactKind.REJECTS), lines, records=len(mapped.rejects), expires_at=raw.expires_at
    )
    services.pointers.add(rejects, shard.token)
    services.dead_letters.record(run, shard.key, mapped.rejects)


def _ref(run: Run, raw: Pointer, kind: ArtifactKind) -> ArtifactRef:
    return ArtifactRef(
        sync=run.sync,
        run=run.id,
        kind=kind,
        shard=raw.ref.shard,
        seq=raw.ref.seq,
        variant=f"v{run.transformer_version}",
    )
