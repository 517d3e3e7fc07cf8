"""Artifacts in S3: in go a ref and bytes, out comes their pointer; and from the pointer the same bytes, or a named error."""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import cached_property, partial
from io import SEEK_END
from typing import Any, BinaryIO, Final

from sluice.adapters.artifacts.keys import checked_prefix, key_of
from sluice.adapters.artifacts.worker import Stored, worker_id
from sluice.adapters.s3_client import DEFAULT_REGION, extra_text, s3_client, store_errors
from sluice.errors import ArtifactCorrupt, ArtifactsUnavailable, ConnectionInvalid
from sluice.model.artifact import ArtifactRef, Pointer
from sluice.model.loss_window import Writing
from sluice.ports import ConnectionInfo

_ATTEMPTS: Final = 4
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 60
_DIGEST: Final = "sha256"
_WRITER: Final = "writer"
_BLOCK: Final = 1 << 20
WRITING: Final = Writing(retries=_ATTEMPTS - 1, timeout=timedelta(seconds=_CONNECT_SECONDS + _READ_SECONDS))
"""How long a put may drag on."""

_REFUSED: Final = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "401", "403"}
)
_MISSING: Final = "NoSuchKey"
_NOTHING_THERE: Final = 404
"""Without `NoSuchKey`: the answer to a HEAD, which has no body, or that of something which stands before the store."""
_BUSY: Final = frozenset({"RequestTimeout", "SlowDown", "Throttling", "ThrottlingException", "OperationAborted"})
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500


class S3ArtifactStore:
    """Bytes in one bucket of anything that speaks S3, below the connection's prefix."""

    def __init__(self, info: ConnectionInfo) -> None:
        """Read the connection (type aws); nothing is contacted before the first use."""
        self._info = info
        self._bucket = extra_text(info, "bucket")
        if not self._bucket:
            raise ConnectionInvalid(f"connection {info.conn_id}: name the bucket in the extra, as `bucket`")
        self._endpoint = extra_text(info, "endpoint_url") or None
        self._region = extra_text(info, "region_name") or DEFAULT_REGION
        self._prefix = checked_prefix(info.conn_id, info.extra.get("prefix") or "")

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        """Store and verify the bytes, and return their pointer. Idempotent: the key derives from `ref` alone.

        The store itself refuses bytes damaged on their way (Content-MD5); a HEAD then shows that they are there.
        """
        pointer = Pointer(
            ref=ref,
            key=key_of(ref, self._prefix),
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            records=records,
            expires_at=expires_at,
        )
        return self._put(pointer, data, hashlib.md5(data, usedforsecurity=False).digest())

    def put_file(self, ref: ArtifactRef, file: BinaryIO, records: int, expires_at: datetime | None) -> Pointer:
        """Store and verify all that a file holds, as `put` does; it is read several times, and little of it at a time."""
        pointer = Pointer(
            ref=ref,
            key=key_of(ref, self._prefix),
            bytes=file.seek(0, SEEK_END),
            sha256=_digest_of(file, hashlib.sha256).hex(),
            records=records,
            expires_at=expires_at,
        )
        md5 = _digest_of(file, partial(hashlib.md5, usedforsecurity=False))
        file.seek(0)
        return self._put(pointer, file, md5)

    def _put(self, pointer: Pointer, body: bytes | BinaryIO, md5: bytes) -> Pointer:
        key = pointer.key
        with self._translated(key):
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=body,
                ContentMD5=b64encode(md5).decode(),
                Metadata={_DIGEST: pointer.sha256, _WRITER: worker_id()},
            )
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
        with self._translated(key):
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
        with self._translated(pointer.key):
            answer = self._client.get_object(Bucket=self._bucket, Key=pointer.key)
            with answer["Body"] as body:
                _require_length(pointer, answer["ContentLength"])
                yield from iter(partial(body.read, _BLOCK), b"")

    def remove(self, pointer: Pointer) -> None:
        """Remove the bytes; nothing happens if they are gone."""
        with self._translated(pointer.key):
            self._client.delete_object(Bucket=self._bucket, Key=pointer.key)

    def ensure_bucket(self) -> None:
        """Create the bucket if it is missing, for a store that belongs to Sluice alone."""
        with self._translated(""):
            if self._bucket not in {bucket["Name"] for bucket in self._client.list_buckets()["Buckets"]}:
                self._client.create_bucket(Bucket=self._bucket)

    @cached_property
    def _client(self) -> Any:
        return s3_client(self._info, attempts=_ATTEMPTS, connect_seconds=_CONNECT_SECONDS, read_seconds=_READ_SECONDS)

    def _translated(self, key: str) -> AbstractContextManager[None]:
        return store_errors(
            self._info.conn_id,
            self._where,
            names=f"bucket `{self._bucket}` or region `{self._region}`",
            unavailable=ArtifactsUnavailable,
            told=lambda response: self._told_by(response, key),
        )

    def _told_by(self, response: Any, key: str) -> Exception:
        code = str(response.get("Error", {}).get("Code", ""))
        status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        conn_id = self._info.conn_id
        if code == "NoSuchBucket":
            return ConnectionInvalid(
                f"there is no bucket `{self._bucket}` at {self._where}: create it, or correct `bucket` in the extra of "
                f"connection {conn_id}",
                code=code,
            )
        if code == _MISSING:
            return ArtifactCorrupt(f"artifact {key} is missing in bucket `{self._bucket}` at {self._where}", key=key)
        if status == _NOTHING_THERE:
            return ArtifactsUnavailable(
                f"{self._where} says that {key} is not there, but not as an object store does: look at it, and at endpoint_url "
                f"in the extra of connection {conn_id}",
                key=key,
            )
        if code in _REFUSED:
            return ConnectionInvalid(
                f"the object store at {self._where} refuses the credentials of connection {conn_id} ({code}): correct its "
                f"login (access key) and password (secret), or allow them bucket `{self._bucket}`",
                code=code,
            )
        if status >= _SERVER_ERROR or status == _TOO_MANY or code in _BUSY:
            return ArtifactsUnavailable(f"the object store at {self._where} is not able to answer now ({code})", code=code)
        return ConnectionInvalid(
            f"the object store at {self._where} refuses what was asked of bucket `{self._bucket}` ({code or status}): check "
            f"endpoint_url, region_name and bucket in the extra of connection {conn_id}",
            code=code,
        )

    @property
    def _where(self) -> str:
        return self._endpoint or f"AWS, region {self._region}"


def _digest_of(file: BinaryIO, algorithm: Callable[[], Any]) -> bytes:
    file.seek(0)
    digest = algorithm()
    for block in iter(partial(file.read, _BLOCK), b""):
        digest.update(block)
    return bytes(digest.digest())


def _require_length(pointer: Pointer, length: int) -> None:
    if length != pointer.bytes:
        what = f"artifact {pointer.key} has {length} bytes; its pointer says {pointer.bytes}"
        raise ArtifactCorrupt(what, key=pointer.key)


def _require_right(pointer: Pointer, digest: str) -> None:
    if digest != pointer.sha256:
        what = f"the bytes of artifact {pointer.key} are not those its pointer was made for (sha-256)"
        raise ArtifactCorrupt(what, key=pointer.key)
