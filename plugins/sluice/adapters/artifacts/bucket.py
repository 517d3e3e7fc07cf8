"""The bucket of a connection: an Airflow connection of type aws goes in; a client, and errors by name, come out."""

from contextlib import AbstractContextManager
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, BinaryIO, Final

from sluice.adapters.artifacts.keys import checked_prefix
from sluice.adapters.s3_client import DEFAULT_REGION, extra_text, s3_client, store_errors
from sluice.errors import ArtifactCorrupt, ArtifactsUnavailable, ConnectionInvalid
from sluice.model.loss_window import Writing
from sluice.ports import ConnectionInfo

ATTEMPTS: Final = 4
"""Tries of one request, the first included."""
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 60
WRITING: Final = Writing(retries=ATTEMPTS - 1, timeout=timedelta(seconds=_CONNECT_SECONDS + _READ_SECONDS))
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
BLOCK: Final = 1 << 20
"""Bytes that are read at a time of what may be large."""


class Bucket:
    """One bucket of anything that speaks S3, and the prefix of the connection in it."""

    def __init__(self, info: ConnectionInfo) -> None:
        """Read the connection; nothing is contacted before the first use."""
        self.info = info
        self.name = extra_text(info, "bucket")
        if not self.name:
            raise ConnectionInvalid(f"connection {info.conn_id}: name the bucket in the extra, as `bucket`")
        self.prefix = checked_prefix(info.conn_id, info.extra.get("prefix") or "")
        self._endpoint = extra_text(info, "endpoint_url") or None
        self._region = extra_text(info, "region_name") or DEFAULT_REGION

    @cached_property
    def client(self) -> Any:
        """The client, made when it is first asked for."""
        return s3_client(self.info, attempts=ATTEMPTS, connect_seconds=_CONNECT_SECONDS, read_seconds=_READ_SECONDS)

    def errors(self, key: str) -> AbstractContextManager[None]:
        """Turn what goes wrong with that key into Sluice's errors."""
        return store_errors(
            self.info.conn_id,
            self._where,
            names=f"bucket `{self.name}` or region `{self._region}`",
            unavailable=ArtifactsUnavailable,
            told=lambda response: self._told_by(response, key),
        )

    def _told_by(self, response: Any, key: str) -> Exception:
        code = str(response.get("Error", {}).get("Code", ""))
        status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        conn_id = self.info.conn_id
        if code == "NoSuchBucket":
            return ConnectionInvalid(
                f"there is no bucket `{self.name}` at {self._where}: create it, or correct `bucket` in the extra of "
                f"connection {conn_id}",
                code=code,
            )
        if code == _MISSING:
            return ArtifactCorrupt(f"artifact {key} is missing in bucket `{self.name}` at {self._where}", key=key)
        if status == _NOTHING_THERE:
            return ArtifactsUnavailable(
                f"{self._where} says that {key} is not there, but not as an object store does: look at it, and at endpoint_url "
                f"in the extra of connection {conn_id}",
                key=key,
            )
        if code in _REFUSED:
            return ConnectionInvalid(
                f"the object store at {self._where} refuses the credentials of connection {conn_id} ({code}): correct its "
                f"login (access key) and password (secret), or allow them bucket `{self.name}`",
                code=code,
            )
        if status >= _SERVER_ERROR or status == _TOO_MANY or code in _BUSY:
            return ArtifactsUnavailable(f"the object store at {self._where} is not able to answer now ({code})", code=code)
        return ConnectionInvalid(
            f"the object store at {self._where} refuses what was asked of bucket `{self.name}` ({code or status}): check "
            f"endpoint_url, region_name and bucket in the extra of connection {conn_id}",
            code=code,
        )

    @property
    def _where(self) -> str:
        return self._endpoint or f"AWS, region {self._region}"


def read_into(file: BinaryIO, *digests: Any) -> int:
    """Feed all that a file holds to digests, little at a time; leave it at its beginning, and return its length."""
    file.seek(0)
    for block in iter(partial(file.read, BLOCK), b""):
        for digest in digests:
            digest.update(block)
    length = file.tell()
    file.seek(0)
    return length
