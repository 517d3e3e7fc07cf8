"""What belongs to a review: its bytes, or a file of them, in; an artifact of its run, and the pointer to it, out."""

from datetime import datetime
from typing import BinaryIO, Final

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
    return _told(pointer)


def stored_file(
    services: Services, run: Run, kind: ArtifactKind, file: BinaryIO, *, records: int, expires_at: datetime | None
) -> Pointer:
    """Store what a file holds, as `stored` does: what grows with the number of objects is never in memory as a whole."""
    ref = ArtifactRef(sync=run.sync, run=run.id, kind=kind)
    return _told(services.artifacts.put_file(ref, file, records=records, expires_at=expires_at))


def keep(
    services: Services, run: Run, kind: ArtifactKind, data: bytes, *, records: int, expires_at: datetime | None, of: str = ""
) -> Pointer:
    """Store an artifact as `stored` does, and let the run point to it."""
    pointer = stored(services, run, kind, data, records=records, expires_at=expires_at, of=of)
    services.pointers.add(pointer, run.token)
    return pointer


def _told(pointer: Pointer) -> Pointer:
    kind = str(pointer.ref.kind)
    log.info(log_events.ARTIFACT_STORED, artifact=pointer.key, kind=kind, bytes=pointer.bytes, records=pointer.records)
    return pointer
