"""Artifacts with copies at hand: what is written goes to S3 and then to the copies, what is read comes from them if it can."""

from collections.abc import Callable
from datetime import datetime
from typing import BinaryIO

from sluice.adapters.artifacts.cache import LocalCache
from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.artifacts.worker import Stored
from sluice.model import metric
from sluice.model.artifact import ArtifactRef, Listing, Pointer, StoredObject
from sluice.ports import Metrics


class CachedArtifactStore:
    """The object store, which alone is the truth, behind the copies of this worker."""

    def __init__(self, store: S3ArtifactStore, cache_of: Callable[[str], LocalCache | None], metrics: Metrics) -> None:
        """`cache_of` returns the copies for the stage of a sync; None: none are kept of it."""
        self._store = store
        self._cache_of = cache_of
        self._metrics = metrics

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        """Store and verify the bytes, keep a copy, and return their pointer."""
        pointer = self._store.put(ref, data, records, expires_at)
        if cache := self._cache_of(ref.sync):
            cache.keep(pointer, Stored(data, written_here=True))
        return pointer

    def put_file(self, ref: ArtifactRef, file: BinaryIO, records: int, expires_at: datetime | None) -> Pointer:
        """Store and verify what a file holds. No copy is kept: it may be larger than all others together."""
        return self._store.put_file(ref, file, records, expires_at)

    def get_file(self, pointer: Pointer, file: BinaryIO) -> None:
        """Write the bytes into a file, straight from the object store."""
        self._store.get_file(pointer, file)

    def remove(self, artifact: Pointer | StoredObject) -> None:
        """Remove the bytes from the object store; a copy goes as others do."""
        self._store.remove(artifact)

    def listed(self, after: str) -> Listing:
        """Return the next artifacts in the object store."""
        return self._store.listed(after)

    def get(self, pointer: Pointer) -> bytes:
        """Return the bytes; raise `ArtifactCorrupt` if they are missing or do not match the pointer's sha-256."""
        cache = self._cache_of(pointer.ref.sync)
        stored = cache.find(pointer) if cache else None
        result = "miss" if stored is None else "hit"
        if stored is None:
            stored = self._store.read(pointer)
            if cache:
                cache.keep(pointer, stored)
        self._metrics.count(metric.ARTIFACT_CACHE, result=result, written_here=str(stored.written_here).lower())
        return stored.data
