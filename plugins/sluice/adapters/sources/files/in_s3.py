"""Files in a bucket of anything that speaks S3: a key or a pattern in, what is known of the files and their bytes out."""

import fnmatch
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeVar

from sluice.adapters.s3_client import s3_client, store_errors
from sluice.adapters.sources.files.storage import StoredFile
from sluice.adapters.sources.telling import told
from sluice.errors import CursorExpired, ShardsUnusable, SluiceError, SupplierRefused, SupplierUnavailable
from sluice.guard.restraint import Restraint
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo

T = TypeVar("T")

_PART: Final = 64 * 1024
_MOST_KEYS: Final = 1_000_000
_CREDENTIALS: Final = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "401", "403"}
)
_GONE: Final = (404, 412, 416)
"""No such key, another ETag, fewer bytes."""
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500


class S3Files:
    """The files of one bucket."""

    def __init__(
        self, info: ConnectionInfo, bucket: str, policy: StagePolicy, restraint_of: Callable[[str], Restraint]
    ) -> None:
        """Read the connection (type aws); nothing is contacted yet."""
        self._bucket = bucket
        self._conn_id = info.conn_id
        self._where = str(info.extra.get("endpoint_url") or "AWS")
        timeouts = policy.timeouts
        self._client = s3_client(
            info,
            attempts=policy.retry.attempts,
            connect_seconds=timeouts.connect.total_seconds(),
            read_seconds=timeouts.read.total_seconds(),
        )
        self._restraint = restraint_of(re.sub(r"^https?://", "", self._where))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def matching(self, pattern: str) -> list[StoredFile]:
        """Return the objects whose keys a pattern stands for: * is anything, and a last / all that is below."""
        pattern = f"{pattern}*" if pattern.endswith("/") else pattern
        if "*" not in pattern:
            return [self.look(pattern)]
        is_meant = re.compile(fnmatch.translate(re.sub(r"([\[?])", r"[\1]", pattern))).match
        found: list[StoredFile] = []
        for entry in self._listed(pattern.partition("*")[0]):
            key = entry["Key"]
            if is_meant(key) and not key.endswith("/"):
                found.append(StoredFile(key, entry["Size"], entry.get("ETag"), entry.get("LastModified"), has_ranges=True))
            if len(found) > _MOST_KEYS:
                raise ShardsUnusable(f"source.files: {pattern!r} stands for more than {_MOST_KEYS:,} objects")
        return sorted(found, key=lambda file: file.name)

    def look(self, name: str) -> StoredFile:
        """Ask what is known of an object."""
        head = self._asked(name, lambda: self._client.head_object(Bucket=self._bucket, Key=name))
        return StoredFile(name, head["ContentLength"], head.get("ETag"), head.get("LastModified"), has_ranges=True)

    @contextmanager
    def open(self, file: StoredFile, start: int, end: int | None) -> Iterator[Iterator[bytes]]:
        """Yield the bytes in parts."""
        asked: dict[str, str] = {"IfMatch": file.etag} if file.etag else {}
        if start or end is not None:
            asked["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        try:
            answer = self._asked(file.name, lambda: self._client.get_object(Bucket=self._bucket, Key=file.name, **asked))
        except SupplierRefused as error:
            if error.facts.get("status") not in _GONE:
                raise
            raise CursorExpired(
                f"{file.name} is not the object any more that was begun with, so it is read from its beginning"
            ) from error
        with answer["Body"] as body:
            yield self._parts(body, file.name)

    def _parts(self, body: Any, name: str) -> Iterator[bytes]:
        while True:
            with self._translated(name):
                part = body.read(_PART)
            if not part:
                return
            yield bytes(part)

    def _listed(self, prefix: str) -> Iterator[Any]:
        token: dict[str, str] = {}
        while True:
            asked = {"Bucket": self._bucket, "Prefix": prefix, **token}
            answer = self._asked(prefix, lambda asked=asked: self._client.list_objects_v2(**asked))  # type: ignore[misc]
            yield from answer.get("Contents", ())
            if not answer.get("IsTruncated"):
                return
            token = {"ContinuationToken": answer["NextContinuationToken"]}

    def _asked(self, name: str, call: Callable[[], T]) -> T:
        def once() -> T:
            with told("S3", f"{self._bucket}/{name}"), self._translated(name):
                return call()

        return self._restraint.ask(once)

    def _translated(self, name: str) -> AbstractContextManager[None]:
        return store_errors(
            self._conn_id,
            self._where,
            names=f"bucket {self._bucket!r}, its region or the key {name!r}",
            unavailable=SupplierUnavailable,
            told=lambda response: self._told_by(response, name),
        )

    def _told_by(self, response: Any, name: str) -> SluiceError:
        code = str(response.get("Error", {}).get("Code", ""))
        status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        what = f"{name!r} in bucket {self._bucket!r} at {self._where} (connection {self._conn_id})"
        if status >= _SERVER_ERROR or status == _TOO_MANY or code in ("SlowDown", "RequestTimeout", "Throttling"):
            return SupplierUnavailable(f"{what}: the object store is not able to answer now ({code})", status=status)
        mend = "check login, password and bucket" if code in _CREDENTIALS else "check source.files and source.bucket"
        return SupplierRefused(f"{what}: the object store refuses ({code or status}): {mend}", status=status)
