"""The local cache before a real S3 API: what is asked of whom, what is counted, and two stages that keep differently."""

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from sluice.adapters.artifacts import s3
from sluice.adapters.artifacts.cache import LocalCache
from sluice.adapters.artifacts.cached import CachedArtifactStore
from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.errors import ArtifactCorrupt
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import RunId
from sluice.model.stage import CachePolicy
from sluice.ports import ConnectionInfo, Connections, Services
from sluice.settings import Settings
from sluice.wiring import open_services
from tests.support.command_line import copy_project
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.metrics import MemoryMetrics


def ref_of(sync: str, seq: int = 0) -> ArtifactRef:
    """Return a ref of some rows."""
    return ArtifactRef(sync=sync, run=RunId("r1"), kind=ArtifactKind.ROWS, seq=seq)


@dataclass
class Bench:
    """A worker with a cache, and the bucket."""

    store: S3ArtifactStore
    place: Path
    metrics: MemoryMetrics = field(default_factory=MemoryMetrics)

    def __post_init__(self) -> None:
        cache = LocalCache(self.place, "hotel-content", CachePolicy(), FakeClock())
        self.cached = CachedArtifactStore(self.store, lambda _: cache, self.metrics)

    def put(self, data: bytes) -> Pointer:
        """Store something."""
        return self.cached.put(ref_of("hotels"), data, records=1, expires_at=None)

    def lose_copies(self) -> None:
        """Let all copies be gone."""
        for file in self.place.glob("*/*/*"):
            file.unlink()

    def damage_copies(self) -> None:
        """Let all copies be wrong."""
        for file in self.place.glob("*/*/*"):
            file.write_bytes(b"?" * file.stat().st_size)

    def counted(self) -> dict[tuple[str, str], int]:
        """Return what was counted, by result and whether it was written here."""
        found = {}
        for (name, labels), number in self.metrics.counts.items():
            assert name == "artifact_cache"
            facts = dict(labels)
            found[facts["result"], facts["written_here"]] = number
        return found


@pytest.fixture
def bench(artifacts: ConnectionInfo, tmp_path: Path) -> Bench:
    """A worker whose cache is empty."""
    return Bench(S3ArtifactStore(artifacts), tmp_path / "cache")


def test_what_was_written_here_is_not_asked_for(bench: Bench) -> None:
    """It is in the store first of all, and read from the copy."""
    pointer = bench.put(b"rows")
    assert bench.store.get(pointer) == b"rows"
    bench.store._client.delete_object(Bucket=bench.store._bucket, Key=pointer.key)
    assert bench.cached.get(pointer) == b"rows"
    assert bench.counted() == {("hit", "true"): 1}


def test_every_put_reaches_the_store(bench: Bench) -> None:
    """The cache is never the truth: what is there already is put again all the same."""
    pointer = bench.put(b"rows")
    bench.store._client.delete_object(Bucket=bench.store._bucket, Key=pointer.key)
    assert bench.put(b"rows") == pointer
    assert bench.store.get(pointer) == b"rows"


@pytest.mark.parametrize("harm", [Bench.lose_copies, Bench.damage_copies])
def test_lost_or_damaged_copies_are_read_from_the_store(bench: Bench, harm: object) -> None:
    """A miss, known to be this worker's own; the next time it is at hand again."""
    pointer = bench.put(b"rows")
    assert callable(harm)
    harm(bench)
    assert (bench.cached.get(pointer), bench.cached.get(pointer)) == (b"rows", b"rows")
    assert bench.counted() == {("miss", "true"): 1, ("hit", "true"): 1}


def test_what_another_worker_wrote(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told from this worker's own at the first reading, and at every later one."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(s3, "worker_id", lambda: "another")
        pointer = bench.store.put(ref_of("hotels"), b"rows", records=1, expires_at=None)
    assert [bench.cached.get(pointer) for _ in range(3)] == [b"rows"] * 3
    assert bench.counted() == {("miss", "false"): 1, ("hit", "false"): 2}


def test_an_artifact_without_a_writer(bench: Bench) -> None:
    """What an earlier release has stored belongs to nobody here."""
    pointer = bench.store.put(ref_of("hotels"), b"rows", records=1, expires_at=None)
    bench.store._client.put_object(Bucket=bench.store._bucket, Key=pointer.key, Body=b"rows")
    assert bench.cached.get(pointer) == b"rows"
    assert bench.counted() == {("miss", "false"): 1}


def test_a_damaged_artifact_is_not_kept(bench: Bench) -> None:
    """Without a copy of the right bytes there is no answer, now and later."""
    pointer = bench.put(b"rows")
    bench.lose_copies()
    bench.store._client.put_object(Bucket=bench.store._bucket, Key=pointer.key, Body=b"r0ws")
    for _ in range(2):
        with pytest.raises(ArtifactCorrupt):
            bench.cached.get(pointer)
    assert bench.counted() == {}


class Known(Connections):
    """Two connections."""

    def __init__(self, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
        self._known = {"sluice_state": database, "sluice_artifacts": artifacts}

    def get(self, conn_id: str) -> ConnectionInfo:
        return self._known[conn_id]


@dataclass
class Deployment:
    """A project whose sync `hotels` is of one stage, and `rates` of another."""

    project: Path
    connections: Known

    def govern(self, **stages: object) -> None:
        """Give both stages their policies."""
        declared = {"stages": {name.replace("_", "-"): policy for name, policy in stages.items()}}
        (self.project / "include/stages.yaml").write_text(yaml.safe_dump(declared))
        hotels = (self.project / "include/syncs/hotels.yaml").read_text()
        rates = hotels.replace("sync: hotels", "sync: rates").replace("stage: hotel-content", "stage: hotel-rates")
        (self.project / "include/syncs/rates.yaml").write_text(rates)

    def opened(self) -> AbstractContextManager[Services]:
        """Open the services, as a worker does."""
        settings = Settings(include=self.project / "include", cache=self.project / "cache")
        return open_services(settings, self.connections)

    def kept(self, stage: str) -> int:
        """Return how many copies there are of a stage's artifacts."""
        return len(list((self.project / "cache" / str(os.geteuid()) / stage).glob("*")))


@pytest.fixture
def deployment(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Deployment:
    """A project of two stages."""
    return Deployment(copy_project(tmp_path), Known(database, artifacts))


@pytest.mark.parametrize(
    ("policy", "kept"),
    [({"size": "5kB"}, 2), ({"size": "1MB"}, 5), ({"age": "1h"}, 5), ({"age": "0s"}, 0)],
    ids=str,
)
def test_each_stage_keeps_as_its_policy_says(deployment: Deployment, policy: dict[str, str], kept: int) -> None:
    """Artifacts of one stage are bounded by its own size and age, whatever the other one keeps."""
    deployment.govern(hotel_content={"local_cache": {"size": "10kB", "age": "1d"}}, hotel_rates={"local_cache": policy})
    with deployment.opened() as services:
        for seq in range(5):
            for sync in ("hotels", "rates"):
                data = sync.encode() + bytes([seq]) * 1990
                services.artifacts.put(ref_of(sync, seq), data, records=1, expires_at=None)
    assert (deployment.kept("hotel-content"), deployment.kept("hotel-rates")) == (5, kept)


def test_each_stage_forgets_as_its_policy_says(deployment: Deployment) -> None:
    """A copy that is too old for one stage is still good for another."""
    deployment.govern(hotel_content={"local_cache": {"age": "1d"}}, hotel_rates={"local_cache": {"age": "1m"}})
    with deployment.opened() as services:
        for sync in ("hotels", "rates"):
            services.artifacts.put(ref_of(sync), sync.encode(), records=1, expires_at=None)
        for file in (deployment.project / "cache").glob("*/*/*"):
            came = file.stat().st_mtime - timedelta(minutes=5).total_seconds()
            os.utime(file, (came, came))
    with deployment.opened() as services:
        for sync in ("hotels", "rates"):
            services.artifacts.put(ref_of(sync, seq=1), b"later", records=1, expires_at=None)
    assert (deployment.kept("hotel-content"), deployment.kept("hotel-rates")) == (2, 1)


def test_a_sync_whose_yaml_is_gone_is_read_all_the_same(deployment: Deployment) -> None:
    """No stage says what to keep of it, so nothing is kept."""
    deployment.govern(hotel_content={}, hotel_rates={})
    with deployment.opened() as services:
        pointer = services.artifacts.put(ref_of("rates"), b"rates", records=1, expires_at=None)
    (deployment.project / "include/syncs/rates.yaml").unlink()
    with deployment.opened() as services:
        assert services.artifacts.get(pointer) == b"rates"
        services.artifacts.put(ref_of("rates", seq=1), b"more", records=1, expires_at=None)
    assert deployment.kept("hotel-rates") == 1
