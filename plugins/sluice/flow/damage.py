"""Damaged artifacts: a pointer goes in; its bytes come out, or the step that stored them is marked to be done again.

What is missing, differs from its sha-256 or cannot be read is never passed on. `RedoNeeded` says that a mark was made: whoever
goes on from there does first what is due again. A store that cannot be reached is no damage, and passes as it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

import structlog

from sluice import log_events
from sluice.errors import ArtifactCorrupt, RedoNeeded
from sluice.guard.temporary_files import temporary_file
from sluice.model import metric
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import ShardStatus
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.ports import Holder, Services

log: Final = structlog.get_logger()

_MAPPED: Final = (ArtifactKind.ROWS, ArtifactKind.REJECTS)


@contextmanager
def intact(services: Services, pointer: Pointer, holder: Holder) -> Iterator[bytes]:
    """Yield the bytes of an artifact. Where they or what the block finds in them is damaged, mark it and raise `RedoNeeded`."""
    with _marked(services, pointer, holder):
        yield services.artifacts.get(pointer)


@contextmanager
def intact_file(services: Services, pointer: Pointer, holder: Holder) -> Iterator[BinaryIO]:
    """Yield an artifact as `intact` does, in a file that only this process sees: for what grows with the table."""
    with _marked(services, pointer, holder), temporary_file() as file:
        services.artifacts.get_file(pointer, file)
        yield file


@contextmanager
def _marked(services: Services, pointer: Pointer, holder: Holder) -> Iterator[None]:
    try:
        yield
    except ArtifactCorrupt as error:
        _mark(services, pointer, holder, error)
        services.metrics.count(metric.REBUILDS, reason=metric.RebuildReason.BYTES_DAMAGED)
        raise RedoNeeded(f"{error.message}; it is made again", artifact=pointer.key, kind=str(pointer.ref.kind)) from error


def note(services: Services, pointer: Pointer, error: ArtifactCorrupt) -> None:
    """Count and log an artifact that was lost or damaged."""
    services.metrics.count(metric.ARTIFACT_CORRUPT, kind=str(pointer.ref.kind))
    log.warning(log_events.ARTIFACT_CORRUPT, artifact=pointer.key, kind=str(pointer.ref.kind), message=error.message)


def require_chunks(services: Services, shard: Shard, kind: ArtifactKind, holder: Holder, found: Iterable[int]) -> None:
    """Raise `RedoNeeded`, and mark the shard, unless an artifact of that kind was found for each of its chunks.

    Pointers go when their time is over. What was fetched so long ago would else be taken for all that there is.
    """
    missing = sorted(set(range(shard.chunks)) - set(found))
    if not missing:
        return
    message = f"shard {shard.key} of run {shard.run} has lost the {kind} artifacts of {len(missing)} chunks"
    services.metrics.count(metric.ARTIFACT_CORRUPT, len(missing), kind=str(kind))
    log.warning(log_events.ARTIFACT_CORRUPT, shard=shard.key, kind=str(kind), chunks=missing, message=message)
    if kind is ArtifactKind.RAW:
        services.redos.fetch_again(shard.key, holder)
    else:
        services.redos.map_again(shard.key, missing, holder)
    services.metrics.count(metric.REBUILDS, reason=metric.RebuildReason.POINTERS_GONE)
    raise RedoNeeded(f"{message}; they are made again", shard=shard.key, kind=str(kind))


def is_void(services: Services, review: Review) -> bool:
    """Whether the diff of a review counts no more: what was decided about it then counts for nothing."""
    return review.diff.ref not in {pointer.ref for pointer in services.pointers.of(review.run, ArtifactKind.DIFF)}


def _mark(services: Services, pointer: Pointer, holder: Holder, error: ArtifactCorrupt) -> None:
    """Mark the step that stored the artifact, or raise the error again where no step stores it anew."""
    note(services, pointer, error)
    shard, kind = pointer.ref.shard, pointer.ref.kind
    if kind is ArtifactKind.RAW and shard is not None:
        services.redos.fetch_again(shard, holder)
    elif kind in _MAPPED and shard is not None:
        for key, chunks in _damaged_chunks(services, pointer, holder).items():
            services.redos.map_again(key, sorted(chunks), holder)
    elif kind is ArtifactKind.DIFF and isinstance(holder, Run):
        services.redos.review_again(holder)
    else:
        raise error


def _damaged_chunks(services: Services, found: Pointer, holder: Holder) -> dict[ShardKey, set[int]]:
    """Return all chunks whose rows or rejects are damaged: where one is, others may be, and are best made again at once."""
    chunks: dict[ShardKey, set[int]] = defaultdict(set)
    for pointer in _mapped_beside(services, holder):
        if pointer == found or not _is_intact(services, pointer):
            chunks[ShardKey(pointer.ref.shard or "")].add(pointer.ref.seq)
    return chunks


def _mapped_beside(services: Services, holder: Holder) -> list[Pointer]:
    """Return the rows and rejects that the holder may mark: those of its shard, or of all shards that came in."""
    if isinstance(holder, Shard):
        return _mapped(services, holder.run, holder.key)
    arrived = {shard.key for shard in services.shards.of(holder.id) if shard.status is ShardStatus.SUCCEEDED}
    return [pointer for pointer in _mapped(services, holder.id, None) if pointer.ref.shard in arrived]


def _mapped(services: Services, run: RunId, shard: ShardKey | None) -> list[Pointer]:
    return [pointer for kind in _MAPPED for pointer in services.pointers.of(run, kind, shard)]


def _is_intact(services: Services, pointer: Pointer) -> bool:
    try:
        services.artifacts.get(pointer)
    except ArtifactCorrupt as error:
        note(services, pointer, error)
        return False
    return True
