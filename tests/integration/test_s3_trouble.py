"""S3ArtifactStore where the store is wrong, busy, locked or away."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
import urllib3

from sluice.adapters.artifacts import bucket
from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.artifacts.worker import worker_id
from sluice.errors import ArtifactsUnavailable, ConnectionInvalid, SluiceError
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import RunId
from sluice.ports import ConnectionInfo
from tests.support.scripted_supplier import answer, scripted

REF = ArtifactRef(sync="hotels", run=RunId("r1"), kind=ArtifactKind.SPEC)
SECRET = "canary-secret-4711"


def changed(info: ConnectionInfo, **extra: Any) -> ConnectionInfo:
    """The connection with another extra."""
    return replace(info, extra={**info.extra, **extra})


def put(info: ConnectionInfo) -> Pointer:
    """Store something."""
    return S3ArtifactStore(info).put(REF, b"{}", records=1, expires_at=None)


def nowhere(endpoint: str) -> ConnectionInfo:
    """A connection to any address."""
    extra = {"endpoint_url": endpoint, "bucket": "artifacts"}
    return ConnectionInfo("sluice_artifacts", "aws", None, None, "key", SECRET, None, extra)


@contextmanager
def told(error: type[SluiceError], message: str) -> Iterator[None]:
    """Expect an error, and no secret in it."""
    with pytest.raises(error, match=message) as caught:
        yield
    assert SECRET not in f"{caught.value!r}{caught.value.facts}"


def test_the_object_lies_where_the_ref_says(artifacts: ConnectionInfo) -> None:
    """Below the prefix, with its digest and its writer as metadata that any tool can read."""
    store = S3ArtifactStore(changed(artifacts, prefix="/team/sluice/"))
    pointer = store.put(REF, b"{}", records=1, expires_at=None)
    assert pointer.key == "team/sluice/hotels/r1/spec/-/000000.json"
    head = store._client.head_object(Bucket=artifacts.extra["bucket"], Key=pointer.key)
    assert (head["ContentLength"], head["Metadata"]) == (2, {"sha256": pointer.sha256, "writer": worker_id()})


def test_makes_sure_of_its_bucket(artifacts: ConnectionInfo) -> None:
    """A missing bucket is named with its mend; `ensure_bucket` makes it, and again changes nothing."""
    info = changed(artifacts, bucket=f"{artifacts.extra['bucket']}-2")
    with told(
        ConnectionInvalid, f"no bucket `{info.extra['bucket']}`.*create it, or correct `bucket` in the extra of connection"
    ):
        put(info)
    for _ in range(2):
        S3ArtifactStore(info).ensure_bucket()
    assert S3ArtifactStore(info).get(put(info)) == b"{}"


def test_wrong_credentials(artifacts: ConnectionInfo) -> None:
    """A wrong secret or key is `ConnectionInvalid`, says what to correct, and shows neither."""
    for wrong in ({"password": SECRET}, {"login": SECRET}):
        with told(ConnectionInvalid, r"refuses the credentials of connection sluice_artifacts \(\w+\): correct its login"):
            put(replace(artifacts, **wrong))


def test_a_connection_that_cannot_be_used() -> None:
    """What is missing or wrong in a connection is named before anything is sent."""
    for extra, message in (
        ({}, "name the bucket in the extra"),
        ({"bucket": 5}, "`bucket` in the extra must be text"),
        ({"bucket": "b", "endpoint_url": "no url"}, "`endpoint_url` in the extra is no URL"),
        ({"bucket": "No Bucket", "endpoint_url": "http://127.0.0.1:1"}, "is not a valid name"),
    ):
        info = ConnectionInfo("sluice_artifacts", "aws", None, None, "key", SECRET, None, extra)
        with told(ConnectionInvalid, message):
            put(info)


def test_a_store_that_is_away() -> None:
    """A closed port is `ArtifactsUnavailable` after bounded tries, naming address and connection."""
    with scripted() as server:
        endpoint = f"http://127.0.0.1:{server.port}"
    with told(ArtifactsUnavailable, rf"at {endpoint} \(connection sluice_artifacts\) cannot be reached"):
        put(nowhere(endpoint))


def test_a_busy_store_is_asked_again() -> None:
    """SlowDown is tried again, and is `ArtifactsUnavailable` in the end."""
    busy = answer(
        b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>later</Message></Error>",
        "503 Slow Down",
        Content_Type="application/xml",
    )
    with scripted(*[busy] * 9) as server:
        with told(ArtifactsUnavailable, r"not able to answer now \(SlowDown\)"):
            put(nowhere(f"http://127.0.0.1:{server.port}"))
        assert len(server.asked) == bucket.ATTEMPTS


def test_a_store_that_forgets_is_noticed() -> None:
    """A store that takes bytes and holds others gets no pointer."""
    head = answer(b"", Content_Length="7", x_amz_meta_sha256="0" * 64)
    with scripted(answer(b""), head) as server, told(ArtifactsUnavailable, "does not hold what was just written"):
        put(nowhere(f"http://127.0.0.1:{server.port}"))


@pytest.mark.parametrize("tag", ['"99914b932bd37a50b983c5e7c90ae93b"', '"of-something-else"', ""])
def test_a_store_is_asked_what_it_holds_unless_its_answer_tells(tag: str) -> None:
    """A tag that is the MD5 of what was sent verifies it; after any other one, or none, a HEAD does. Bytes go at once."""
    head = answer(b"", Content_Length="2", x_amz_meta_sha256=sha256(b"{}").hexdigest())
    with scripted(answer(b"", ETag=tag), head) as server:
        assert put(nowhere(f"http://127.0.0.1:{server.port}")).bytes == len(b"{}")
    assert server.methods == (["PUT"] if tag.startswith('"9') else ["PUT", "HEAD"])
    assert server.bodies[0] == b"{}"
    assert "expect" not in server.headers[0]


def test_an_answer_cut_short() -> None:
    """A connection that breaks within an artifact is `ArtifactsUnavailable`, not a damaged artifact."""
    pointer = Pointer(ref=REF, key="k", bytes=100, sha256="0" * 64, records=0)
    with scripted(answer(b"ten bytes.", Content_Length="100")) as server, told(ArtifactsUnavailable, "cannot be reached"):
        S3ArtifactStore(nowhere(f"http://127.0.0.1:{server.port}")).get(pointer)


def test_something_before_the_store_that_knows_nothing_of_it() -> None:
    """A 404 that S3 did not give says nothing about the artifact: it is not taken for damage."""
    pointer = Pointer(ref=REF, key="k", bytes=100, sha256="0" * 64, records=0)
    page = answer(b"<html>no such page</html>", "404 Not Found", Content_Type="text/html")
    with scripted(page) as server, told(ArtifactsUnavailable, "not as an object store does"):
        S3ArtifactStore(nowhere(f"http://127.0.0.1:{server.port}")).get(pointer)


def test_damage_on_the_way_in_is_refused(artifacts: ConnectionInfo) -> None:
    """The store compares what arrives with the digest that was sent, so damaged bytes never become an artifact."""
    store = S3ArtifactStore(artifacts)
    url = store._client.generate_presigned_url(
        "put_object", Params={"Bucket": artifacts.extra["bucket"], "Key": "k", "ContentMD5": "AAAAAAAAAAAAAAAAAAAAAA=="}
    )
    refused = urllib3.request("PUT", url, body=b"{}", headers={"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="})
    assert refused.status == 400
