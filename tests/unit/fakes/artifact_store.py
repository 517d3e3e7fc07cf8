"""An `ArtifactStore` in memory."""

import hashlib
from datetime import datetime
from typing import BinaryIO

from sluice.errors import ArtifactCorrupt
from sluice.model.artifact import ArtifactRef, Pointer


class MemoryArtifactStore:
    """Bytes by key; tests may look at `objects`, and damage them."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        key = f"{ref.sync}|{ref.run}|{ref.kind}|{ref.shard!r}|{ref.seq}|{ref.variant}"
        self.objects[key] = data
        digest = hashlib.sha256(data).hexdigest()
        return Pointer(ref=ref, key=key, bytes=len(data), sha256=digest, records=records, expires_at=expires_at)

    def put_file(self, ref: ArtifactRef, file: BinaryIO, records: int, expires_at: datetime | None) -> Pointer:
        file.seek(0)
        return self.put(ref, file.read(), records, expires_at)

    def get_file(self, pointer: Pointer, file: BinaryIO) -> None:
        file.write(self.get(pointer))
        file.seek(0)

    def remove(self, pointer: Pointer) -> None:
        self.objects.pop(pointer.key, None)

    def get(self, pointer: Pointer) -> bytes:
        data = self.objects.get(pointer.key)
        if data is None:
            raise ArtifactCorrupt(f"artifact {pointer.key} is missing", key=pointer.key)
        if len(data) != pointer.bytes or hashlib.sha256(data).hexdigest() != pointer.sha256:
            raise ArtifactCorrupt(f"artifact {pointer.key} does not match its pointer", key=pointer.key)
        return data
