"""Cold copies, orphans and dead runs in a real Postgres and a real S3 API, with collectors and workers that are killed."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import zstandard

from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.postgres import conninfo
from sluice.flow.inline import run_inline
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId
from sluice.model.garbage import Heap, Holding
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Mode, Origin, RunRequest
from sluice.ports import ConnectionInfo, Services
from sluice.upkeep.collection import collect
from tests.integration.test_collection import OLD, PAST, count, ended, let_pass, stored
from tests.support.nouns import MINUTE, POLICY, a_run
from tests.support.servers import Supplier
from tests.support.small_project import small_project
from tests.unit.fakes.metrics import MemoryMetrics

Open = Callable[[], AbstractContextManager[Services]]


@pytest.fixture
def opened(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> Open:
    """Open the services of a process, with cold copies in the same bucket."""
    cold = replace(artifacts, extra={**artifacts.extra, "cold_prefix": "cold"})
    folders = iter(range(9))

    def open_one() -> AbstractContextManager[Services]:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        return small_project(folder, database, cold, supplier, MemoryMetrics())

    return open_one


@pytest.fixture
def services(opened: Open) -> Iterator[Services]:
    """The services of this process."""
    with opened() as services:
        yield services


@pytest.fixture
def rows(database: ConnectionInfo) -> Iterator[psycopg.Connection]:
    """A look behind the stores."""
    with psycopg.connect(conninfo(database), autocommit=True) as connection:
        yield connection


class Bucket:
    """A look at what is stored."""

    def __init__(self, info: ConnectionInfo) -> None:
        self._client, self._name = S3ArtifactStore(info)._client, info.extra["bucket"]

    def below(self, prefix: str = "") -> set[str]:
        """Return the keys below a prefix."""
        found = self._client.list_objects_v2(Bucket=self._name, Prefix=prefix).get("Contents", [])
        return {one["Key"] for one in found}

    def read(self, key: str) -> bytes:
        """Return the bytes of an object."""
        return bytes(self._client.get_object(Bucket=self._name, Key=key)["Body"].read())

    def write(self, key: str, data: bytes) -> None:
        """Put an object beside Sluice."""
        self._client.put_object(Bucket=self._name, Key=key, Body=data)

    def tables(self, key: str) -> list[str]:
        """Return the tables of a cold copy of state, one for each row."""
        lines = zstandard.ZstdDecompressor().stream_reader(self.read(key)).read().splitlines()
        return [json.loads(line)["table"] for line in lines]


@pytest.fixture
def bucket(artifacts: ConnectionInfo) -> Bucket:
    """The bucket of the test."""
    return Bucket(artifacts)


class Later:
    """A clock that is ahead: objects cannot be made older than they are."""

    def __init__(self, services: Services, days: int) -> None:
        self._clock, self._ahead = services.clock, timedelta(days=days)

    def now(self) -> datetime:
        """Return the time then."""
        return self._clock.now() + self._ahead


class Deadly:
    """Kills its process, as SIGKILL does, once one method was called so often."""

    def __init__(self, inner: Any, method: str, left: int) -> None:
        self._inner, self._method, self._left = inner, method, left

    def __getattr__(self, name: str) -> Any:
        """Return what does as the other does, and dies behind that when it is time."""

        def called(*arguments: Any, **named: Any) -> Any:
            answer = getattr(self._inner, name)(*arguments, **named)
            if name == self._method:
                self._left -= 1
                if self._left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return called


def killed(opened: Open, what: Callable[[Services], object]) -> None:
    """Do something in a process of its own, which is killed over it."""
    process = os.fork()
    if process == 0:
        with opened() as services:
            what(services)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL


def later(services: Services, days: int) -> Services:
    """Return the services some days from now, for objects that are old by then."""
    clock: Any = Later(services, days)
    return replace(services, clock=clock)


@pytest.mark.parametrize(
    "death", [("cold", "copy", 2), ("artifacts", "remove", 2), ("cold", "write", 1), ("cold", "write", 2)], ids=str
)
def test_a_collector_that_is_killed_loses_nothing(
    opened: Open, services: Services, rows: psycopg.Connection, bucket: Bucket, death: tuple[str, str, int]
) -> None:
    """Wherever it dies, the next one ends with a cold copy of each object and row, and with nothing else."""
    port, method, left = death
    ended(services)
    keys = {stored(services, OLD, seq).key for seq in range(3)}
    told = count(rows, "event")
    let_pass(rows, "366 days")

    def dying(mine: Services) -> None:
        deadly: Any = Deadly(getattr(mine, port), method, left)
        collect(replace(mine, **{port: deadly}), dry_run=False)

    killed(opened, dying)
    garbage = collect(services, dry_run=False)
    assert (garbage.kept, garbage.runs, garbage.task["shard"]) == ({}, 1, 1)
    assert [count(rows, table) for table in ("run", "shard", "artifact", "event")] == [0] * 4
    assert bucket.below() - bucket.below("cold/") == set()
    (state,) = bucket.below("cold/hotels/old/state-")
    (events,) = bucket.below("cold/hotels/old/events-")
    assert bucket.below("cold/") == {f"cold/{key}" for key in keys} | {state, events}
    assert {bucket.read(f"cold/{key}") for key in keys} == {b"some bytes"}
    assert bucket.tables(state) == ["run", "shard"]
    assert bucket.tables(events) == ["event"] * told
    assert collect(services, dry_run=False).copied == Heap()


def test_two_collectors_do_not_hinder_each_other(
    opened: Open, services: Services, rows: psycopg.Connection, bucket: Bucket
) -> None:
    """Both end well, and all is gone, with its copies."""
    ended(services)
    for seq in range(20):
        stored(services, OLD, seq)
    let_pass(rows, "366 days")
    with opened() as other, ThreadPoolExecutor() as pool:
        garbage = list(pool.map(lambda one: collect(one, dry_run=False), (services, other)))
    assert sum(one.runs for one in garbage) == 1
    assert sum(one.artifacts for one in garbage) == 20
    assert len(bucket.below("cold/hotels/old/raw/")) == 20
    assert count(rows, "run") == 0


def test_what_is_damaged_stays_and_is_told(services: Services, bucket: Bucket) -> None:
    """There is no right copy of it; what is gone needs none."""
    ended(services)
    damaged, gone = stored(services, OLD), stored(services, OLD, 1)
    bucket.write(damaged.key, b"other")
    services.artifacts.remove(gone)
    garbage = collect(services, dry_run=False)
    assert (garbage.artifacts, garbage.copied) == (1, Heap())
    assert garbage.held == {Holding.DAMAGED: Heap(objects=1, bytes=10)}
    assert damaged.key in bucket.below()


def test_the_orphan_of_a_killed_worker_goes_once_its_run_is_over(
    opened: Open, services: Services, rows: psycopg.Connection, bucket: Bucket
) -> None:
    """A dead run is ended after a week without a sign of life; what nothing points to goes a week after that, not before."""
    bucket.write("hotels/unknown/raw/-/000000.chunk", b"of another state")
    bucket.write("hotels/notes.txt", b"nothing of ours")

    def dying(mine: Services) -> None:
        deadly: Any = Deadly(mine.artifacts, "put", 3)  # behind spec and run: the first chunk
        run_inline(replace(mine, artifacts=deadly), RunRequest(sync="hotels", origin=Origin()))

    killed(opened, dying)
    (orphan,) = {key for key in bucket.below() if "/raw/" in key} - {"hotels/unknown/raw/-/000000.chunk"}
    (run,) = services.runs.recent(None, list(RunStatus), 9)
    garbage = collect(later(services, 30), dry_run=False)
    assert (garbage.closed, garbage.orphans, garbage.strange) == (0, Heap(), Heap(objects=1, bytes=16))

    long_silent(rows)
    garbage = collect(later(services, 30), dry_run=False)
    assert (garbage.closed, garbage.orphans) == (1, Heap())
    assert services.runs.get(run.id).status is RunStatus.FAILED
    assert count(rows, "lease") == 0

    let_pass(rows, "8 days")
    assert collect(services, dry_run=False).orphans == Heap()  # it was put just now
    assert collect(later(services, 30), dry_run=True).orphans.objects == 1
    assert collect(later(services, 30), dry_run=False).orphans.objects == 1
    assert orphan not in bucket.below()
    assert f"cold/{orphan}" in bucket.below()
    assert {"hotels/unknown/raw/-/000000.chunk", "hotels/notes.txt"} <= bucket.below()
    again = run_inline(services, RunRequest(sync="hotels", origin=Origin()))
    assert again.status is RunStatus.SUCCEEDED


def long_silent(rows: psycopg.Connection) -> None:
    """Let all signs of life be ten days old."""
    let_pass(rows, "10 days")
    rows.execute("update sluice_state.event set at = at - interval '10 days'")


def test_a_run_that_waits_for_a_person_is_not_dead(services: Services, rows: psycopg.Connection) -> None:
    """Its review has a time of its own; one that is at work, and silent, is."""
    for name in ("waits", "works"):
        services.runs.open(a_run(RunId(name), request_key=name), POLICY)
        services.runs.enter(RunId(name), Step.REVIEW, MINUTE)
    services.runs.end(services.runs.get(RunId("waits")), RunEvent.PARK)
    long_silent(rows)
    assert collect(services, dry_run=True).closed == 1
    assert collect(services, dry_run=False).closed == 1
    assert [services.runs.get(RunId(name)).status for name in ("waits", "works")] == [RunStatus.WAITING, RunStatus.FAILED]


def test_an_old_publication_can_still_be_taken_back(services: Services, rows: psycopg.Connection, supplier: Supplier) -> None:
    """While its before-images live, the spec that it was made with stays, expired or not, though newer ones followed."""
    runs = []
    for _ in range(2):
        runs.append(run_inline(services, RunRequest(sync="hotels", mode=Mode.FULL, origin=Origin())))
        supplier.control(change=3)
    _, old = services.ledger(services.spec("hotels")).publications("hotels", 9)
    assert old.run == runs[0].id
    rows.execute("update sluice_state.artifact set expires_at = %s where kind <> 'undo'", (PAST,))
    garbage = collect(services, dry_run=False)
    assert garbage.held[Holding.UNDO].objects == 1
    assert [pointer.ref.kind for pointer in services.pointers.of(old.run, ArtifactKind.SPEC)] == [ArtifactKind.SPEC]
    request = RunRequest(sync="hotels", mode=Mode.ROLLBACK, undoes=old.id, origin=Origin())
    back = run_inline(services, request)
    assert (back.status, back.failure) == (RunStatus.WAITING, None)

    rows.execute("update sluice_state.artifact set expires_at = %s where run = %s", (PAST, old.run))
    assert collect(services, dry_run=False).artifacts == 0  # it is being taken back
