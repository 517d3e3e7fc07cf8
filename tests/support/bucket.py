"""A bucket of the tests' S3, with objects of the test's own: its connection in, objects in it out."""

from sluice.adapters.s3_client import s3_client
from sluice.ports import ConnectionInfo


class Bucket:
    """One bucket, as a supplier's."""

    def __init__(self, info: ConnectionInfo) -> None:
        self.info = ConnectionInfo("shop", "aws", None, None, info.login, info.password, None, info.extra)
        self.name = str(info.extra["bucket"])
        self._client = s3_client(info, attempts=1, connect_seconds=5, read_seconds=5)

    def put(self, key: str, content: bytes) -> None:
        """Store an object."""
        self._client.put_object(Bucket=self.name, Key=key, Body=content)
