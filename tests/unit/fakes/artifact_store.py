"""An `ArtifactStore` in memory."""

import hashlib
from datetime import UTC, datetime
from typing import BinaryIO

from sluice.errors import ArtifactCorrupt
from sluice.model.artifact import ArtifactRef, Listing, Pointer, StoredObject
from sluice.model.base import RunId


class MemoryArtifactStore:
    """Bytes by key; tests may look at `objects`, and damage them."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.stored_at = datetime.now(UTC)
        """When all of it was put."""

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        key = f"{ref.sync}|{ref.run}|{ref.kind}|{ref.shard!r}|{ref.seq}|{ref.variant}"
        self.objects[key] = data
        digest = hashlib.sha256(data).hexdigest()
        return Pointer(ref=ref, key=key, bytes=len(data), sha256=digest, records=records, expires_at=expires_at)

    def put_file(self, ref: ArtifactRef, file: BinaryIO, records: int, expires_at: datetime | None) -> Pointer:
        file.seek(0)
        data = file.read()
        return self.put(ref.of_content(hashlib.sha256(data).hexdigest()), data, records, expires_at)

    def get_file(self, pointer: Pointer, file: BinaryIO) -> None:
        file.write(self.get(pointer))
        file.seek(0)

    def remove(self, artifact: Pointer | StoredObject) -> None:
        self.objects.pop(artifact.key, None)

    def listed(self, after: str) -> Listing:
        """Return the next two."""
        left = sorted(key for key in self.objects if key > after)
        page = left[:2]
        found = [
            StoredObject(sync=sync, run=RunId(run), key=key, bytes=len(self.objects[key]), stored_at=self.stored_at)
            for key, (sync, run, *_) in ((key, key.split("|")) for key in page)
        ]
        return Listing(objects=tuple(found), after=page[-1] if len(left) > len(page) else None)

    def get(self, pointer: Pointer) -> bytes:
        data = self.objects.get(pointer.key)
        if data is None:
            raise ArtifactCorrupt(f"artifact {pointer.key} is missing", key=pointer.key)
        if len(data) != pointer.bytes or hashlib.sha256(data).hexdigest() != pointer.sha256:
            raise ArtifactCorrupt(f"artifact {pointer.key} does not match its pointer", key=pointer.key)
        return data
