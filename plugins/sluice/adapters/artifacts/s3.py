"""Artifacts in S3: in go a ref and bytes, out comes their pointer; and from the pointer the same bytes, or a named error."""

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO, Final

from sluice.adapters.artifacts.bucket import BLOCK, Bucket, read_into
from sluice.adapters.artifacts.keys import key_of, owner_of
from sluice.adapters.artifacts.worker import Stored, worker_id
from sluice.errors import ArtifactCorrupt, ArtifactsUnavailable
from sluice.model.artifact import ArtifactRef, Listing, Pointer, StoredObject
from sluice.ports import ConnectionInfo

_DIGEST: Final = "sha256"
_WRITER: Final = "writer"
_AT_ONCE: Final = 1000


class S3ArtifactStore:
    """Bytes in one bucket of anything that speaks S3, below the connection's prefix."""

    def __init__(self, info: ConnectionInfo) -> None:
        """Read the connection (type aws); nothing is contacted before the first use."""
        self._place = Bucket(info)
        self._bucket = self._place.name

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        """Store and verify the bytes, and return their pointer. Idempotent: the key derives from `ref` alone.

        The store itself refuses bytes damaged on their way (Content-MD5). Its answer tells what it holds, by an entity tag that
        is the MD5 of that; where the tag is something else, as it is of encrypted objects, a HEAD shows that they are there.
        """
        pointer = Pointer(
            ref=ref,
            key=key_of(ref, self._place.prefix),
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            records=records,
            expires_at=expires_at,
        )
        return self._put(pointer, data, hashlib.md5(data, usedforsecurity=False).digest())

    def put_file(self, ref: ArtifactRef, file: BinaryIO, records: int, expires_at: datetime | None) -> Pointer:
        """Store and verify all that a file holds; it is read for its digests, and again to be sent, little of it at a time."""
        sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
        length = read_into(file, sha256, md5)
        named = ref.of_content(sha256.hexdigest())
        pointer = Pointer(
            ref=named,
            key=key_of(named, self._place.prefix),
            bytes=length,
            sha256=sha256.hexdigest(),
            records=records,
            expires_at=expires_at,
        )
        return self._put(pointer, file, md5.digest())

    def _put(self, pointer: Pointer, body: bytes | BinaryIO, md5: bytes) -> Pointer:
        key = pointer.key
        with self._place.errors(key):
            stored = self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=body,
                ContentMD5=b64encode(md5).decode(),
                Metadata={_DIGEST: pointer.sha256, _WRITER: worker_id()},
            )
            if stored.get("ETag", "").strip('"') == md5.hex():
                return pointer
            head = self._client.head_object(Bucket=self._bucket, Key=key)
        if head["ContentLength"] != pointer.bytes or head["Metadata"].get(_DIGEST) != pointer.sha256:
            raise ArtifactsUnavailable(
                f"the object store does not hold what was just written to {key}: {head['ContentLength']} bytes instead of "
                f"{pointer.bytes}, or another digest",
                key=key,
            )
        return pointer

    def get(self, pointer: Pointer) -> bytes:
        """Return the bytes; raise `ArtifactCorrupt` if they are missing or do not match the pointer's sha-256."""
        return self.read(pointer).data

    def read(self, pointer: Pointer) -> Stored:
        """Return the bytes and whose they are; raise as `get` does."""
        key = pointer.key
        with self._place.errors(key):
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
            with answer["Body"] as body:
                _require_length(pointer, answer["ContentLength"])
                data: bytes = body.read()
        _require_right(pointer, hashlib.sha256(data).hexdigest())
        return Stored(data, answer["Metadata"].get(_WRITER) == worker_id())

    def get_file(self, pointer: Pointer, file: BinaryIO) -> None:
        """Write the bytes into an empty file; raise as `get` does."""
        digest = hashlib.sha256()
        # What the disk does not take is no trouble of the store's.
        for block in self._blocks(pointer):
            digest.update(block)
            file.write(block)
        file.seek(0)
        _require_right(pointer, digest.hexdigest())

    def _blocks(self, pointer: Pointer) -> Iterator[bytes]:
        with self._place.errors(pointer.key):
            answer = self._client.get_object(Bucket=self._bucket, Key=pointer.key)
            with answer["Body"] as body:
                _require_length(pointer, answer["ContentLength"])
                yield from iter(partial(body.read, BLOCK), b"")

    def remove(self, artifact: Pointer | StoredObject) -> None:
        """Remove the bytes; nothing happens if they are gone."""
        with self._place.errors(artifact.key):
            self._client.delete_object(Bucket=self._bucket, Key=artifact.key)

    def listed(self, after: str) -> Listing:
        """Return the next artifacts below the prefix, in the order of their keys; what is no artifact is left out."""
        prefix = f"{self._place.prefix}/" if self._place.prefix else ""
        with self._place.errors(prefix):
            asked = {"Bucket": self._bucket, "Prefix": prefix, "StartAfter": after, "MaxKeys": _AT_ONCE}
            page = self._client.list_objects_v2(**asked)
        found = page.get("Contents", [])
        owned = ((one, owner_of(one["Key"], prefix)) for one in found)
        return Listing(
            objects=tuple(
                StoredObject(sync=owner[0], run=owner[1], key=one["Key"], bytes=one["Size"], stored_at=one["LastModified"])
                for one, owner in owned
                if owner is not None
            ),
            after=found[-1]["Key"] if page["IsTruncated"] else None,
        )

    def ensure_bucket(self) -> None:
        """Create the bucket if it is missing, for a store that belongs to Sluice alone."""
        with self._place.errors(""):
            if self._bucket not in {bucket["Name"] for bucket in self._client.list_buckets()["Buckets"]}:
                self._client.create_bucket(Bucket=self._bucket)

    @property
    def _client(self) -> Any:
        return self._place.client


def _require_length(pointer: Pointer, length: int) -> None:
    if length != pointer.bytes:
        what = f"artifact {pointer.key} has {length} bytes; its pointer says {pointer.bytes}"
        raise ArtifactCorrupt(what, key=pointer.key)


def _require_right(pointer: Pointer, digest: str) -> None:
    if digest != pointer.sha256:
        what = f"the bytes of artifact {pointer.key} are not those its pointer was made for (sha-256)"
        raise ArtifactCorrupt(what, key=pointer.key)
