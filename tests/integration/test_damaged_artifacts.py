"""Artifacts that are lost or damaged in the object store in the middle of a run: made again, and the target is right."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import psycopg
import pytest
import yaml

from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.postgres import conninfo
from sluice.cli.local.postgres import PostgresServer
from sluice.errors import ArtifactsUnavailable, NotFound, RedoNeeded
from sluice.flow.gate import decide
from sluice.flow.inline import resume_inline, run_inline
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.lifecycle import RunStatus, Verdict
from sluice.model.review import Review
from sluice.model.run import Mode, Origin, ReviewMode, Run, RunRequest
from sluice.ports import ArtifactStore, ConnectionInfo, Page, Services
from sluice.settings import Settings
from sluice.wiring import open_services
from tests.support import servers
from tests.support.nouns import a_decision
from tests.unit.fakes.metrics import MemoryMetrics
from tests.unit.fakes.source import RegionalSource

SPEC = {
    "sync": "places",
    "stage": "places",
    "source": {
        "kind": "rest",
        "connection": "shop",
        "path": "/places",
        "query": {"region": "{{ shard.region }}", "since": "{{ watermark }}"},
        "cursor": {"path": "next", "parameter": "cursor"},
        "records": "places",
        "watermark": "at",
    },
    "shards": {"kind": "values", "name": "region", "values": ["north", "south"]},
    "object": {"key": ["id"]},
    "fields": [
        {"name": "id", "type": "text"},
        {"name": "rooms", "type": "integer"},
        {"name": "at", "type": "timestamptz"},
    ],
    "review": {
        "first_load": "auto-approve",
        "auto_approve": {"rejected": "100%", "changed": "100%", "created": "100%", "deleted": "100%"},
    },
    "target": {"table": "public.places"},
}
STAGES = {"stages": {"places": {"chunk_bytes": 1, "local_cache": {"age": "0s"}}}}

KINDS = (ArtifactKind.SPEC, ArtifactKind.RAW, ArtifactKind.ROWS, ArtifactKind.REJECTS, ArtifactKind.DIFF)

Harm = Callable[["Bucket", str], None]


def page(number: int, *places: tuple[str, object], is_last: bool = False) -> Page:
    """A page of places, given by id and number of rooms."""
    listed = [{"id": key, "rooms": rooms, "at": f"2024-05-0{number}T00:00:00Z"} for key, rooms in places]
    body = json.dumps({"places": listed, "next": None if is_last else number}).encode()
    return Page(body, len(places), None if is_last else number)


def supplied(more: int = 0) -> RegionalSource:
    """A supplier of two regions, with an object on each page that cannot be taken in; `more` rooms than usual."""
    return RegionalSource(
        north=[page(1, ("a", 1 + more), ("bad 1", "many")), page(2, ("b", 2 + more), ("bad 2", "more"), is_last=True)],
        south=[page(1, ("c", 3 + more), ("bad 3", "lots"), is_last=True)],
    )


@dataclass
class Bucket:
    """What somebody who may write to it can do to artifacts."""

    store: S3ArtifactStore

    def read(self, key: str) -> bytes:
        """Return what lies there."""
        return bytes(self.store._client.get_object(Bucket=self.store._bucket, Key=key)["Body"].read())

    def write(self, key: str, data: bytes) -> None:
        """Put something else in its place."""
        self.store._client.put_object(Bucket=self.store._bucket, Key=key, Body=data)

    def delete(self, key: str) -> None:
        """Let it be missing."""
        self.store._client.delete_object(Bucket=self.store._bucket, Key=key)

    def flip(self, key: str) -> None:
        """Change one bit."""
        data = bytearray(self.read(key))
        data[len(data) // 2] ^= 1
        self.write(key, bytes(data))


class HarmedStore:
    """The object store, in which each artifact of one kind comes to harm after it was put: the first time, or always."""

    def __init__(self, store: ArtifactStore, bucket: Bucket, kind: ArtifactKind, harm: Harm, *, always: bool = False) -> None:
        self._store, self._bucket, self._kind, self._harm, self._always = store, bucket, kind, harm, always
        self.harmed: list[str] = []

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        """Put it, and harm it."""
        return self._harmed(self._store.put(ref, data, records, expires_at))

    def put_file(self, ref: ArtifactRef, file: BinaryIO, records: int, expires_at: datetime | None) -> Pointer:
        """Put it, and harm it."""
        return self._harmed(self._store.put_file(ref, file, records, expires_at))

    def get_file(self, pointer: Pointer, file: BinaryIO) -> None:
        """Get it."""
        self._store.get_file(pointer, file)

    def _harmed(self, pointer: Pointer) -> Pointer:
        if pointer.ref.kind is self._kind and (self._always or pointer.key not in self.harmed):
            self.harmed.append(pointer.key)
            self._harm(self._bucket, pointer.key)
        return pointer

    def get(self, pointer: Pointer) -> bytes:
        """Get it."""
        return self._store.get(pointer)


class Bench:
    """A deployment with a bucket and a database of its own."""

    def __init__(self, services: Services, database: ConnectionInfo, artifacts: ConnectionInfo, metrics: MemoryMetrics) -> None:
        self.bucket = Bucket(S3ArtifactStore(artifacts))
        self.metrics = metrics
        self.source = supplied()
        self._services = services
        self._database = database

    @property
    def services(self) -> Services:
        """What steps are given."""
        return replace(self._services, source=lambda _spec, _policy: self.source)

    def run(self, services: Services | None = None, **changes: Any) -> Run:
        """Run the sync inline."""
        request = RunRequest(sync="places", origin=Origin(), **{"mode": Mode.FULL, **changes})
        return run_inline(services or self.services, request)

    def waiting(self) -> tuple[Run, Review]:
        """Run it until a person is asked, who approves."""
        run = self.run(review=ReviewMode.ALWAYS)
        review = self.services.reviews.latest(run.id)
        assert review is not None
        return run, decide(self.services, review.id, a_decision())

    def harm(self, run: Run, kind: ArtifactKind, harm: Harm = Bucket.delete) -> None:
        """Harm all artifacts of one kind."""
        for pointer in self.services.pointers.of(run.id, kind):
            harm(self.bucket, pointer.key)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return what the database says."""
        with psycopg.connect(conninfo(self._database)) as connection:
            return connection.execute(query).fetchall()

    def picture(self) -> dict[str, Any]:
        """Return all that anybody can see of what was synced, without the names and moments of runs."""
        queries = {
            "table": "select to_jsonb(t) from public.places t order by id",
            "ledger": """select key, shard, encode(row_hash, 'hex'), encode(raw_hash, 'hex'), state
                from sluice_ledger.object order by key""",
            "events": "select key, outcome, encode(new_hash, 'hex'), shard from sluice_ledger.object_event order by 1, 2",
            "publications": "select counts from sluice_ledger.publication order by id",
            "letters": "select object_key, shard, error, attempts, status from sluice_state.dead_letter order by 1",
            "watermarks": "select shard, value from sluice_state.watermark order by 1",
            "shards": "select key, status, exhausted, chunks, pages, records, high_mark from sluice_state.shard order by 1",
            "runs": "select status, failure_error from sluice_state.run",
        }
        return {name: self.rows(query) for name, query in queries.items()}

    def journal(self, event: str) -> list[str]:
        """Return what an event has happened to, by name."""
        return [name for (name,) in self.rows(f"select name from sluice_state.event where event = '{event}' order by seq")]

    def dangling(self, run: Run) -> list[str]:
        """Return the pointers of a run that count and whose bytes are not there."""
        pointers = [pointer for kind in ArtifactKind for pointer in self.services.pointers.of(run.id, kind)]
        return [pointer.key for pointer in pointers if not self._is_there(pointer)]

    def _is_there(self, pointer: Pointer) -> bool:
        try:
            return len(self.bucket.store.get(pointer)) == pointer.bytes
        except Exception:  # noqa: BLE001  whatever is wrong with it
            return False


@contextmanager
def benched(folder: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Bench]:
    """Yield a bench."""
    include = folder / "include"
    (include / "syncs").mkdir(parents=True)
    (include / "syncs/places.yaml").write_text(yaml.safe_dump(SPEC))
    (include / "stages.yaml").write_text(yaml.safe_dump(STAGES))

    class Known:
        def get(self, conn_id: str) -> ConnectionInfo:
            return artifacts if conn_id == "sluice_artifacts" else database

    metrics = MemoryMetrics()
    with open_services(Settings(include=include, cache=folder / "cache"), Known(), metrics) as services:
        yield Bench(services, database, artifacts, metrics)


@pytest.fixture
def bench(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Bench]:
    """A deployment of the test's own."""
    with benched(tmp_path, database, artifacts) as made:
        yield made


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, migrated_template: str, s3: Any
) -> dict[str, Any]:
    """The picture after a run that nothing has happened to."""
    with servers.throw_away_database(postgres, migrated_template) as database:
        bucket = servers.new_bucket(s3, "undisturbed-places")
        with benched(tmp_path_factory.mktemp("undisturbed"), database, bucket) as bench:
            assert bench.run().status is RunStatus.SUCCEEDED
            return bench.picture()


@pytest.mark.parametrize("harm", [Bucket.delete, Bucket.flip], ids=["deleted", "flipped"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_inline_run_makes_again_what_comes_to_harm(
    bench: Bench, undisturbed: dict[str, Any], kind: ArtifactKind, harm: Harm
) -> None:
    """Whatever becomes of every artifact of a kind right after it was stored, the run ends as one that nothing happened to."""
    store = HarmedStore(bench.services.artifacts, bench.bucket, kind, harm)
    run = bench.run(replace(bench.services, artifacts=store))
    assert store.harmed
    assert bench.picture() == undisturbed
    assert bench.dangling(run) == []
    assert bench.metrics.of("artifact_corrupt", kind=str(kind)) >= 1


@pytest.mark.parametrize("kind", [ArtifactKind.RAW, ArtifactKind.ROWS])
def test_artifacts_in_each_others_place(bench: Bench, undisturbed: dict[str, Any], kind: ArtifactKind) -> None:
    """Sound bytes of another artifact are as wrong as any."""
    run, _ = bench.waiting()
    first, second = bench.services.pointers.of(run.id, kind)[:2]
    swapped = bench.bucket.read(first.key), bench.bucket.read(second.key)
    bench.bucket.write(first.key, swapped[1])
    bench.bucket.write(second.key, swapped[0])
    if kind is ArtifactKind.RAW:
        bench.harm(run, ArtifactKind.ROWS)
    assert resume_inline(bench.services, run.id).status is RunStatus.SUCCEEDED
    assert bench.picture() == undisturbed
    assert bench.dangling(run) == []


@pytest.mark.parametrize("lost", [KINDS[:1], KINDS[2:3], KINDS[3:4], KINDS[4:], KINDS[2:], KINDS], ids="+".join)
def test_an_approval_outlives_what_is_made_again_as_it_was(
    bench: Bench, undisturbed: dict[str, Any], lost: tuple[ArtifactKind, ...]
) -> None:
    """Lost between approval and publication, and made again to the same bytes, the diff is the one that was approved."""
    run, approved = bench.waiting()
    for kind in lost:
        bench.harm(run, kind)
    assert resume_inline(bench.services, run.id).status is RunStatus.SUCCEEDED
    assert bench.picture() == undisturbed
    latest = bench.services.reviews.latest(run.id)
    assert latest is not None
    assert (latest.id, latest.verdict) == (approved.id, Verdict.APPROVED)


def test_an_approval_ends_with_what_cannot_be_made_again(bench: Bench) -> None:
    """The supplier says something else by now: the new diff waits for a person, and the approval of the lost one is void."""
    run, approved = bench.waiting()
    bench.source = supplied(more=10)
    for kind in (ArtifactKind.RAW, ArtifactKind.ROWS):
        bench.harm(run, kind)
    assert resume_inline(bench.services, run.id).status is RunStatus.WAITING
    assert bench.rows("select 1 from sluice_ledger.publication") == []
    assert bench.rows("select 1 from sluice_state.watermark") == []
    waiting = bench.services.reviews.latest(run.id)
    assert waiting is not None
    assert waiting.id != approved.id
    assert waiting.verdict is Verdict.NEEDS_HUMAN
    decide(bench.services, waiting.id, a_decision())
    assert resume_inline(bench.services, run.id).status is RunStatus.SUCCEEDED
    assert bench.rows("select id, rooms from public.places order by id") == [("a", 11), ("b", 12), ("c", 13)]


def test_each_mark_is_in_the_journal(bench: Bench) -> None:
    """Who looks at a run sees what was made again, and of what."""
    run, _ = bench.waiting()
    for kind in (ArtifactKind.RAW, ArtifactKind.ROWS, ArtifactKind.DIFF):
        bench.harm(run, kind)
    resume_inline(bench.services, run.id)
    assert bench.journal("review-again") == [run.id]
    assert sorted(bench.journal("redo")) == ["north", "south"]
    assert sorted(bench.journal("restart")) == ["north", "south"]
    assert {shard.epoch for shard in bench.services.shards.of(run.id)} == {1}


def test_what_is_lost_again_and_again_stops_the_run(bench: Bench) -> None:
    """It is not made for ever; a later run, once the store keeps what it is given, brings all of it."""
    store = HarmedStore(bench.services.artifacts, bench.bucket, ArtifactKind.ROWS, Bucket.delete, always=True)
    with pytest.raises(RedoNeeded, match="is missing"):
        bench.run(replace(bench.services, artifacts=store))
    assert bench.rows("select status from sluice_state.run") == [("failed",)]
    assert bench.rows("select 1 from sluice_ledger.publication") == []
    assert bench.run().status is RunStatus.SUCCEEDED
    assert len(bench.rows("select 1 from public.places")) == 3


def test_a_lost_spec_that_was_edited_since(bench: Bench, tmp_path: Path) -> None:
    """The run cannot go on, and says why; nothing is published by another spec than it was admitted with."""
    run, _ = bench.waiting()
    bench.harm(run, ArtifactKind.SPEC)
    edited = {**SPEC, "description": "edited"}
    (tmp_path / "include/syncs/places.yaml").write_text(yaml.safe_dump(edited))
    with pytest.raises(NotFound, match="put that back, or start a new run"):
        resume_inline(bench.services, run.id)
    assert bench.rows("select 1 from sluice_ledger.publication") == []


def test_a_store_that_is_away_is_no_damage(bench: Bench, undisturbed: dict[str, Any]) -> None:
    """Nothing is marked, and nothing made again, when the store comes back."""
    run, _ = bench.waiting()
    info = bench.bucket.store._place.info
    away = replace(info, extra={**info.extra, "endpoint_url": "http://127.0.0.1:9"})
    with pytest.raises(ArtifactsUnavailable):
        resume_inline(replace(bench.services, artifacts=S3ArtifactStore(away)), run.id)
    assert bench.metrics.of("artifact_corrupt", kind="diff") == 0
    assert bench.journal("review-again") == bench.journal("redo") == bench.journal("restart") == []
    assert resume_inline(bench.services, run.id).status is RunStatus.SUCCEEDED
    assert bench.picture() == undisturbed
