"""Cold copies in S3: what is about to be removed goes in; the same bytes, in a place where nothing is removed, come out.

Below the cold prefix an artifact keeps its key; beside it are rows of state, `<prefix>/<sync>/<run>/<name>.jsonl.zst`, as JSON.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterable
from typing import Any, BinaryIO, Final

import zstandard

from sluice.adapters.artifacts.bucket import Bucket, read_into
from sluice.adapters.artifacts.keys import checked_prefix, encode
from sluice.adapters.s3_client import extra_text
from sluice.errors import ArtifactCorrupt, ArtifactsUnavailable, ConnectionInvalid
from sluice.guard.temporary_files import temporary_file
from sluice.model.artifact import Pointer, StoredObject
from sluice.model.base import RunId
from sluice.ports import ConnectionInfo

_DIGEST: Final = "sha256"


def cold_store(info: ConnectionInfo) -> "S3ColdStore | None":
    """Return where the connection wants cold copies, by `cold_prefix` and `cold_bucket` in its extra; None: it wants none."""
    bucket = extra_text(info, "cold_bucket")
    prefix = checked_prefix(info.conn_id, info.extra.get("cold_prefix") or "", "cold_prefix")
    if not bucket and not prefix:
        return None
    place = Bucket(info)
    if not prefix and bucket == place.name:
        raise ConnectionInvalid(
            f"connection {info.conn_id}: `cold_bucket` in the extra is the bucket of the artifacts: name a `cold_prefix`, too"
        )
    return S3ColdStore(place, bucket or place.name, prefix)


class S3ColdStore:
    """Copies in one bucket, below one prefix. Nothing is ever read or removed there."""

    def __init__(self, source: Bucket, bucket: str, prefix: str) -> None:
        self._source = source
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""

    def copy(self, artifact: Pointer | StoredObject) -> bool:
        """Copy the bytes within the object store, and verify their number and checksum; return False if there are none."""
        key, client = f"{self._prefix}{artifact.key}", self._source.client
        with self._source.errors(artifact.key):
            listed = client.list_objects_v2(Bucket=self._source.name, Prefix=artifact.key, MaxKeys=1).get("Contents", [])
        if not listed or listed[0]["Key"] != artifact.key:
            return False
        there = {"Bucket": self._source.name, "Key": artifact.key}
        with self._source.errors(artifact.key):
            copied = client.copy_object(Bucket=self._bucket, Key=key, CopySource=there, ChecksumAlgorithm="SHA256")
            head = client.head_object(Bucket=self._bucket, Key=key)
        digest = artifact.sha256 if isinstance(artifact, Pointer) else head["Metadata"].get(_DIGEST, "")
        if head["ContentLength"] != artifact.bytes or not _is_same(listed[0], copied["CopyObjectResult"], digest):
            raise ArtifactCorrupt(f"artifact {artifact.key} has no cold copy: its bytes are not those it should have", key=key)
        return True

    def write(self, sync: str, run: RunId, name: str, rows: Iterable[str]) -> None:
        """Store rows as compressed lines, and verify them; however many they are, few of them are in memory at a time."""
        parts = [*([self._source.prefix] if self._source.prefix else []), encode(sync), encode(run), f"{name}.jsonl.zst"]
        key = self._prefix + "/".join(parts)
        with temporary_file() as file:
            with zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False) as lines:
                for row in rows:
                    lines.write(f"{row}\n".encode())
            self._put(key, file)

    def _put(self, key: str, file: BinaryIO) -> None:
        md5 = hashlib.md5(usedforsecurity=False)
        size = read_into(file, md5)
        with self._source.errors(key):
            client = self._source.client
            client.put_object(Bucket=self._bucket, Key=key, Body=file, ContentMD5=b64encode(md5.digest()).decode())
            head = client.head_object(Bucket=self._bucket, Key=key)
        if head["ContentLength"] != size:
            raise ArtifactsUnavailable(f"the object store does not hold what was just written to {key}", key=key)


def _is_same(source: Any, copy: Any, digest: str) -> bool:
    """Whether a copy has this sha-256, where the store reckons it; or else the tag of its source, which is its MD5."""
    if reckoned := copy.get("ChecksumSHA256"):
        return bool(reckoned == b64encode(bytes.fromhex(digest)).decode())
    return bool(source["ETag"].strip('"') == copy["ETag"].strip('"'))
