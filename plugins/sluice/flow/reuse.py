"""A raw chunk that others have mapped, too, comes in; what it was mapped to goes out, if that is there, whole and undamaged.

Rows depend on what the ledger remembered at the time: an object that it knew is told by its hashes alone. Where it does not
know that any more, the review has the chunk mapped in full, as it does with rows of the run's own.
"""

from typing import Final

import structlog

from sluice import log_events
from sluice.errors import ArtifactCorrupt
from sluice.flow.damage import note
from sluice.flow.rejects import keep_rejects
from sluice.mapping.reject_lines import read
from sluice.model import metric
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.reject import Reject
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.ports import Services

log: Final = structlog.get_logger()


def reused(services: Services, run: Run, shard: Shard, raw: Pointer, made_by: str) -> bytes | None:
    """Let the run have the rows that another one has made of the very same chunk; None if there are none that it could have.

    `made_by` is how the variant of an artifact begins that was made by the same version, in the same way. The other's rejects
    are kept as if they were met here, each with its dead letter.
    """
    found = _reused(services, run, shard, raw, made_by)
    result = metric.CacheResult.MISS if found is None else metric.CacheResult.HIT
    services.metrics.count(metric.ROWS_CACHE, stage=run.stage, result=result)
    return found


def _reused(services: Services, run: Run, shard: Shard, raw: Pointer, made_by: str) -> bytes | None:
    rows = services.pointers.rows_elsewhere(raw, made_by)
    if rows is None:
        return None
    try:
        data, rejects = services.artifacts.get(rows), _rejects(services, rows, made_by)
    except ArtifactCorrupt as error:
        note(services, rows, error)
        return None
    if rows.records + len(rejects) != raw.records:
        return None
    keep_rejects(services, run, shard, raw, rejects, variant=f"{made_by}{raw.ref.variant}")
    ref = raw.ref.model_copy(update={"kind": ArtifactKind.ROWS, "run": run.id, "variant": rows.ref.variant})
    services.pointers.add(rows.model_copy(update={"ref": ref, "expires_at": raw.expires_at}), shard.token)
    log.info(log_events.CHUNK_REUSED, chunk=raw.ref.seq, objects=rows.records, rejected=len(rejects), made_in=rows.ref.run)
    return data


def _rejects(services: Services, rows: Pointer, made_by: str) -> list[Reject]:
    """Return what could not be taken in of the chunk."""
    found = services.pointers.of(rows.ref.run, ArtifactKind.REJECTS, rows.ref.shard)
    of_chunk = [pointer for pointer in found if pointer.ref.seq == rows.ref.seq and pointer.ref.variant.startswith(made_by)]
    return [reject for pointer in of_chunk for reject in read(services.artifacts.get(pointer))]
