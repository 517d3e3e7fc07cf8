"""Suppliers that others wrote: each is read by a short spec, killed in the middle, gone on with, and asked for what is new."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psycopg
import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.adapters.metrics import LoggedMetrics
from sluice.adapters.postgres import conninfo
from sluice.flow.inline import run_inline
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Origin, Run, RunRequest
from sluice.ports import ConnectionInfo, Services
from sluice.settings import Settings
from sluice.wiring import open_services
from tests.servers import running
from tests.servers.running import Hotel, Shelf
from tests.support.command_line import CommandLine

SPECS: Final = Path(__file__).parent / "specs"
STAGES: Final = """
stages:
  slow: {requests_per_second: 8, chunk_bytes: 1, lease_ttl: 2s, heartbeat: 0.5s, log_level: debug}
"""
LINES: Final = 40
PAGES: Final = 6
PER_PAGE: Final = 4
PATIENCE: Final = 60.0


def hotel(key: int, name: str | None = None, hour: int = 0) -> Hotel:
    """A hotel as its supplier has it."""
    return {
        "id": key,
        "name": name or f"Hôtel {key}",
        "stars": None if key % 5 == 0 else str(key % 5),
        "updated_at": f"2026-03-01T{hour:02}:{key % 60:02}:00Z",
    }


HOTELS: Final = [hotel(key) for key in range(1, PAGES * PER_PAGE)]


class PostgresShelf(Shelf):
    """A table of another database."""

    def put(self, hotels: Sequence[Hotel]) -> None:
        """Write rows."""
        with psycopg.connect(conninfo(self.connection), autocommit=True) as session:
            for values in hotels:
                session.execute(
                    "insert into hotels values (%(id)s, %(name)s, %(stars)s, %(updated_at)s) on conflict (id) do update set "
                    "name = excluded.name, stars = excluded.stars, updated_at = excluded.updated_at",
                    values,
                )


@contextmanager
def elsewhere(connection: ConnectionInfo) -> Iterator[PostgresShelf]:
    """Make a table in another database."""
    with psycopg.connect(conninfo(connection), autocommit=True) as session:
        session.execute("create table hotels (id bigint primary key, name text, stars text, updated_at timestamptz)")
    yield PostgresShelf(replace(connection, conn_id="elsewhere"))


@dataclass
class Sync:
    """A project with one sync, its supplier and its target."""

    name: str
    shelf: Shelf
    line: CommandLine
    services: Services
    database: ConnectionInfo

    def rows(self) -> dict[str, str]:
        """Return the names of the hotels the table holds, by id."""
        with psycopg.connect(conninfo(self.database)) as session:
            live = "select id::text, name from hotels where _sluice_deleted_at is null"
            return dict(session.execute(live).fetchall())

    def run(self) -> tuple[Run, int]:
        """Run the sync to its end; return the run, and how many pages it fetched."""
        with capture_logs() as entries:
            run = run_inline(self.services, RunRequest(sync=self.name, origin=Origin()))
        assert run.status is RunStatus.SUCCEEDED, run.failure
        return run, sum(entry["event"] == log_events.PAGE_FETCHED for entry in entries)

    def kill_in_the_middle(self) -> int:
        """Begin a run in a process of its own, kill it once it has a checkpoint, and return how many it had."""
        with (
            psycopg.connect(conninfo(self.database), autocommit=True) as session,
            self.line.start("run", self.name, "--inline") as process,
        ):
            deadline = time.monotonic() + PATIENCE
            while checkpoints(session) == 0:
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return checkpoints(session)


def checkpoints(session: psycopg.Connection) -> int:
    """Return how many chunks have been checkpointed."""
    (chunks,) = session.execute("select coalesce(sum(chunks), 0) from sluice_state.shard").fetchone() or (0,)
    return int(chunks)


Opener = Callable[[Path], AbstractContextManager[Shelf]]
OPENERS: Final[dict[str, Opener]] = {
    "datasette": running.datasette,
    "kinto": running.kinto,
    "json_server": running.json_server,
    "drf_page": running.rest_framework,
    "drf_offset": running.rest_framework,
    "drf_cursor": running.rest_framework,
}


LONG: Final = ("json_server", "drf_page", "drf_cursor")
"""Suppliers of kinds that the others have in part."""


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in (*OPENERS, "postgres")]
)
def sync(request: pytest.FixtureRequest, tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Sync]:
    """A project with the spec of one supplier, which is served and has hotels."""
    name = request.param
    include = tmp_path / "project/include"
    (include / "syncs").mkdir(parents=True)
    (include / "stages.yaml").write_text(STAGES)
    (include / f"syncs/{name}.yaml").write_text((SPECS / f"{name}.yaml").read_text())
    (folder := tmp_path / "server").mkdir()
    opened = OPENERS[name](folder) if name in OPENERS else elsewhere(request.getfixturevalue("empty_database"))
    with opened as shelf:
        shelf.put(HOTELS)
        known = {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts}
        known[shelf.connection.conn_id] = shelf.connection

        class Known:
            def get(self, conn_id: str) -> ConnectionInfo:
                return known[conn_id]

        settings = Settings(include=include, cache=tmp_path / "cache")
        with open_services(settings, Known(), LoggedMetrics()) as services:
            yield Sync(name, shelf, CommandLine(include.parent, known), services, database)


@pytest.mark.parametrize("spec", sorted(SPECS.glob("*.yaml")), ids=lambda spec: spec.stem)
def test_a_spec_is_short(spec: Path) -> None:
    """A supplier nobody here has seen takes fewer than forty lines."""
    assert len(spec.read_text().splitlines()) < LINES


def test_it_is_killed_and_gone_on_with_and_asked_for_what_is_new(sync: Sync) -> None:
    """Nothing that was checkpointed is fetched again, nothing is lost or doubled, and the next run asks for what changed."""
    at_checkpoint = sync.kill_in_the_middle()
    done, pages = sync.run()
    key = "h{}" if sync.name == "kinto" else "{}"
    expected = {key.format(item["id"]): item["name"] for item in HOTELS}
    assert sync.rows() == expected
    assert done.mode is Mode.INCREMENTAL
    assert 0 < at_checkpoint <= PAGES
    assert 0 < pages <= PAGES + 2 - at_checkpoint

    changed = [hotel(7, "Renamed", hour=9), hotel(99, "Brand new", hour=9)]
    sync.shelf.put(changed)
    _, pages = sync.run()
    assert sync.rows() == expected | {key.format(item["id"]): item["name"] for item in changed}
    assert 0 < pages <= 3


@pytest.mark.parametrize("sync", ["kinto"], indirect=True)
def test_a_tombstone_of_kinto_deletes(sync: Sync) -> None:
    """What its supplier says is gone is gone, in an incremental run."""
    sync.run()
    assert isinstance(sync.shelf, running.KintoShelf)
    sync.shelf.remove(3)
    sync.run()
    assert sorted(sync.rows()) == sorted(f"h{item['id']}" for item in HOTELS if item["id"] != 3)
