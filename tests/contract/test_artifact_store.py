"""What every `ArtifactStore` does, on the fake and on a real S3 API."""

import hashlib
from datetime import UTC, datetime
from typing import cast

import pytest

from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.errors import ArtifactCorrupt
from sluice.model.artifact import ArtifactKind, ArtifactRef
from sluice.model.base import RunId, ShardKey
from sluice.ports import ArtifactStore, ConnectionInfo
from tests.unit.fakes.artifact_store import MemoryArtifactStore

REF = ArtifactRef(
    sync="hotels", run=RunId("manual__2024-01-01T00:00:00+00:00"), kind=ArtifactKind.RAW, shard=ShardKey("Île/../x")
)


@pytest.fixture(params=["fake", "s3"])
def store(request: pytest.FixtureRequest) -> ArtifactStore:
    """An empty store."""
    if request.param == "fake":
        return MemoryArtifactStore()
    return S3ArtifactStore(cast(ConnectionInfo, request.getfixturevalue("artifacts")))


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 20_000], ids=["empty", "byte", "5 MB"])
def test_gives_back_what_it_was_given(store: ArtifactStore, data: bytes) -> None:
    """The pointer says all about the bytes, and leads to the same bytes."""
    expires_at = datetime(2030, 1, 1, tzinfo=UTC)
    pointer = store.put(REF, data, records=7, expires_at=expires_at)
    assert (pointer.ref, pointer.bytes, pointer.records, pointer.expires_at) == (REF, len(data), 7, expires_at)
    assert pointer.sha256 == hashlib.sha256(data).hexdigest()
    assert store.get(pointer) == data


def test_putting_again_changes_nothing(store: ArtifactStore) -> None:
    """The same ref and bytes give the same pointer."""
    first = store.put(REF, b"data", records=1, expires_at=None)
    assert store.put(REF, b"data", records=1, expires_at=None) == first
    assert store.get(first) == b"data"


def test_refs_do_not_meet(store: ArtifactStore) -> None:
    """Whatever differs in a ref keeps its bytes apart."""
    refs = [
        REF,
        REF.model_copy(update={"seq": 1}),
        REF.model_copy(update={"variant": "v2"}),
        REF.model_copy(update={"shard": ShardKey("Île")}),
        REF.model_copy(update={"shard": None}),
        REF.model_copy(update={"kind": ArtifactKind.ROWS}),
        REF.model_copy(update={"run": RunId("other")}),
    ]
    pointers = [store.put(ref, str(place).encode(), records=0, expires_at=None) for place, ref in enumerate(refs)]
    assert [store.get(pointer) for pointer in pointers] == [str(place).encode() for place in range(len(refs))]


def test_missing_bytes_are_corrupt(store: ArtifactStore) -> None:
    """A pointer that leads nowhere is `ArtifactCorrupt`, naming the key."""
    pointer = store.put(REF, b"data", records=1, expires_at=None).model_copy(update={"key": "hotels/nowhere"})
    with pytest.raises(ArtifactCorrupt, match="hotels/nowhere"):
        store.get(pointer)


@pytest.mark.parametrize("other", [b"longer than before", b"dat0"], ids=["length", "bytes"])
def test_other_bytes_are_corrupt(store: ArtifactStore, other: bytes) -> None:
    """A pointer whose bytes were replaced is `ArtifactCorrupt`, naming the key."""
    pointer = store.put(REF, b"data", records=1, expires_at=None)
    store.put(REF, other, records=1, expires_at=None)
    with pytest.raises(ArtifactCorrupt) as caught:
        store.get(pointer)
    assert pointer.key in caught.value.message
