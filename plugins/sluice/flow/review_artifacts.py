"""What belongs to a review: its bytes in; an artifact of its run, and the pointer to it, out."""

from datetime import datetime
from typing import Final

import structlog

from sluice import log_events
from sluice.flow.digest import content_digest
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.run import Run
from sluice.ports import Services

log: Final = structlog.get_logger()


def stored(
    services: Services, run: Run, kind: ArtifactKind, data: bytes, *, records: int, expires_at: datetime | None, of: str = ""
) -> Pointer:
    """Store an artifact that nothing points to yet; `of` is the variant of its diff, where there may be several."""
    ref = ArtifactRef(sync=run.sync, run=run.id, kind=kind, variant=of + content_digest(data))
    pointer = services.artifacts.put(ref, data, records=records, expires_at=expires_at)
    log.info(log_events.ARTIFACT_STORED, artifact=pointer.key, kind=str(kind), bytes=pointer.bytes, records=records)
    return pointer


def keep(
    services: Services, run: Run, kind: ArtifactKind, data: bytes, *, records: int, expires_at: datetime | None, of: str = ""
) -> Pointer:
    """Store an artifact as `stored` does, and let the run point to it."""
    pointer = stored(services, run, kind, data, records=records, expires_at=expires_at, of=of)
    services.pointers.add(pointer, run.token)
    return pointer
