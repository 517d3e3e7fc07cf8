"""What every `ArtifactStore` does: the fake, a real S3 API, and that one behind a cache which has lost everything."""

import hashlib
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import cast

import pytest

from sluice.adapters.artifacts.cache import LocalCache
from sluice.adapters.artifacts.cached import CachedArtifactStore
from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.errors import ArtifactCorrupt
from sluice.model.artifact import ArtifactKind, ArtifactRef, StoredObject
from sluice.model.base import RunId, ShardKey
from sluice.model.stage import CachePolicy
from sluice.ports import ArtifactStore, ConnectionInfo
from tests.unit.fakes.artifact_store import MemoryArtifactStore
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.metrics import MemoryMetrics

REF = ArtifactRef(
    sync="hotels", run=RunId("manual__2024-01-01T00:00:00+00:00"), kind=ArtifactKind.RAW, shard=ShardKey("Île/../x")
)


@pytest.fixture(params=["fake", "s3", "cached"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    """An empty store."""
    if request.param == "fake":
        return MemoryArtifactStore()
    store = S3ArtifactStore(cast(ConnectionInfo, request.getfixturevalue("artifacts")))
    if request.param == "s3":
        return store
    lost = tmp_path / "no-folder"
    lost.touch()
    cache = LocalCache(lost, "hotel-content", CachePolicy(), FakeClock())
    return CachedArtifactStore(store, lambda _: cache, MemoryMetrics())


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 20_000], ids=["empty", "byte", "5 MB"])
def test_gives_back_what_it_was_given(store: ArtifactStore, data: bytes) -> None:
    """The pointer says all about the bytes, and leads to the same bytes."""
    expires_at = datetime(2030, 1, 1, tzinfo=UTC)
    pointer = store.put(REF, data, records=7, expires_at=expires_at)
    assert (pointer.ref, pointer.bytes, pointer.records, pointer.expires_at) == (REF, len(data), 7, expires_at)
    assert pointer.sha256 == hashlib.sha256(data).hexdigest()
    assert store.get(pointer) == data


def test_files_and_bytes_are_the_same_artifacts(store: ArtifactStore) -> None:
    """What a file holds, wherever it stands, is stored as its bytes would be, under a key that is of them; it comes back so."""
    data = bytes(range(256)) * 20_000
    file, copy = BytesIO(data), BytesIO()
    file.seek(7)
    pointer = store.put_file(REF, file, records=7, expires_at=None)
    assert pointer == store.put(REF.of_content(pointer.sha256), data, records=7, expires_at=None)
    assert pointer.key != store.put_file(REF, BytesIO(data[1:]), records=7, expires_at=None).key
    store.get_file(pointer, copy)
    assert (copy.tell(), copy.read()) == (0, data)


@pytest.mark.parametrize("other", [b"dat", b"dat\xe1"], ids=["truncated", "flipped"])
def test_a_file_of_other_bytes_is_corrupt(store: ArtifactStore, other: bytes) -> None:
    """A pointer whose bytes were replaced fills no file in silence."""
    pointer = store.put(REF, b"data", records=1, expires_at=None)
    store.put(REF, other, records=1, expires_at=None)
    with pytest.raises(ArtifactCorrupt, match="artifact"):
        store.get_file(pointer, BytesIO())


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


@pytest.mark.parametrize("other", [b"", b"dat", b"data.", b"dat\xe1"], ids=["emptied", "truncated", "longer", "flipped"])
def test_other_bytes_are_corrupt(store: ArtifactStore, other: bytes) -> None:
    """A pointer whose bytes were replaced is `ArtifactCorrupt`, naming the key."""
    pointer = store.put(REF, b"data", records=1, expires_at=None)
    store.put(REF, other, records=1, expires_at=None)
    with pytest.raises(ArtifactCorrupt) as caught:
        store.get(pointer)
    assert pointer.key in caught.value.message


def test_swapped_bytes_are_corrupt(store: ArtifactStore) -> None:
    """Two artifacts in each other's place are as long as they should be, and neither is taken for the other."""
    refs = REF, REF.model_copy(update={"seq": 1})
    pointers = [store.put(ref, data, records=1, expires_at=None) for ref, data in zip(refs, (b"first", b"other"), strict=True)]
    for ref, data in zip(refs, (b"other", b"first"), strict=True):
        store.put(ref, data, records=1, expires_at=None)
    for pointer in pointers:
        with pytest.raises(ArtifactCorrupt, match="artifact"):
            store.get(pointer)


def test_all_artifacts_are_listed(store: ArtifactStore) -> None:
    """Page by page, each once, with whose it is, how large and how old; what was removed is not."""
    pointers = [store.put(REF.model_copy(update={"seq": seq}), bytes(seq), records=0, expires_at=None) for seq in range(5)]
    store.remove(pointers[2])
    found: list[StoredObject] = []
    after: str | None = ""
    while after is not None:
        page = store.listed(after)
        found += page.objects
        after = page.after
    left = sorted((pointer.key, pointer.bytes) for pointer in pointers if pointer is not pointers[2])
    assert [(one.key, one.bytes) for one in found] == left
    assert {(one.sync, one.run) for one in found} == {(REF.sync, REF.run)}
    assert all(abs((datetime.now(UTC) - one.stored_at).total_seconds()) < 3600 for one in found)
