"""Whole runs of a sync of files: what lies in a store in, what becomes of the table out."""

import gzip
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from sluice.adapters.metrics import LoggedMetrics
from sluice.adapters.postgres import conninfo
from sluice.cli.local.s3 import S3Server
from sluice.flow.inline import run_inline
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Origin, Redrive, Run, RunRequest
from sluice.ports import ConnectionInfo, Services
from sluice.settings import Settings
from sluice.wiring import open_services
from tests.support import servers
from tests.support.bucket import Bucket
from tests.support.command_line import CommandLineHere
from tests.support.file_server import FileServer, serving

SPEC: dict[str, Any] = {
    "sync": "hotels",
    "stage": "hotel-content",
    "source": {"kind": "files", "connection": "shop", "files": ["/a.jsonl", "/b.jsonl"], "format": "jsonl", "size": 10},
    "object": {"key": ["id"]},
    "fields": [{"name": "id", "type": "bigint"}, {"name": "name", "type": "text"}],
    "review": {"first_load": "auto-approve", "auto_approve": {"created": "100%", "changed": "100%", "rejected": "50%"}},
    "target": {"table": "hotels"},
}


def lines(*numbers: int, name: str = "inn") -> bytes:
    """Write hotels as lines of JSON."""
    return b"".join(b'{"id": %d, "name": "%s"}\n' % (number, name.encode()) for number in numbers)


def project(folder: Path, source: dict[str, Any], **changes: Any) -> Path:
    """Write a project with one sync of files."""
    include = folder / "include"
    (include / "syncs").mkdir(parents=True)
    spec = {**SPEC, "source": {**SPEC["source"], **source}, **changes}
    (include / "syncs/hotels.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    stages = {"defaults": {"chunk_bytes": 20_000, "lease_ttl": "4s", "heartbeat": "1s"}, "stages": {"hotel-content": {}}}
    (include / "stages.yaml").write_text(yaml.safe_dump(stages))
    return include


class Depot:
    """One supplier of files, one sync, one table."""

    def __init__(self, services: Services, server: FileServer, database: ConnectionInfo) -> None:
        self.services = services
        self.server = server
        self.database = database

    def run(self, mode: Mode = Mode.INCREMENTAL) -> Run:
        """Run the sync once."""
        run = run_inline(self.services, RunRequest(sync="hotels", mode=mode, origin=Origin()))
        assert run.status is RunStatus.SUCCEEDED
        return run

    def shards(self, run: Run) -> list[str]:
        """Return the keys of a run's shards."""
        return [shard.key for shard in self.services.shards.of(run.id)]

    def table(self) -> dict[int, str]:
        """Return what the table holds."""
        return table_of(self.database)


def table_of(database: ConnectionInfo) -> dict[int, str]:
    """Return the names of the hotels that are not deleted."""
    with psycopg.connect(conninfo(database)) as connection:
        return dict(connection.execute("select id, name from hotels where _sluice_deleted_at is null").fetchall())


@contextmanager
def depot(
    folder: Path,
    database: ConnectionInfo,
    artifacts: ConnectionInfo,
    source: dict[str, Any] | None = None,
    shop: ConnectionInfo | None = None,
    **changes: Any,
) -> Iterator[Depot]:
    """Yield a depot of two files, or of what lies in `shop`."""
    include = project(folder, source or {}, **changes)
    with serving({"/a.jsonl": lines(1, 2), "/b.jsonl": lines(3)}) as server:

        class Known:
            def get(self, conn_id: str) -> ConnectionInfo:
                return {"sluice_artifacts": artifacts, "shop": shop or server.connection()}.get(conn_id, database)

        with open_services(Settings(include=include, cache=folder / "cache"), Known(), LoggedMetrics()) as services:
            yield Depot(services, server, database)


@pytest.fixture
def here(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Depot]:
    with depot(tmp_path, database, artifacts) as found:
        yield found


def test_each_run_brings_what_is_new(here: Depot) -> None:
    """First all files, then none, then the one that has changed; a full run sees what has gone, and all again."""
    assert here.shards(here.run()) == ["/a.jsonl", "/b.jsonl"]
    assert here.table() == {1: "inn", 2: "inn", 3: "inn"}
    here.server.asked.clear()
    assert here.shards(here.run()) == []
    assert here.server.ranges() == []
    here.server.files["/b.jsonl"] = lines(4, name="new")
    assert here.shards(here.run()) == ["/b.jsonl"]
    assert here.table() == {1: "inn", 2: "inn", 3: "inn", 4: "new"}
    assert here.shards(here.run()) == []
    full = here.services.runs.get(run_inline(here.services, RunRequest(sync="hotels", mode=Mode.FULL, origin=Origin())).id)
    assert here.shards(full) == ["/a.jsonl", "/b.jsonl"]
    review = here.services.reviews.latest(full.id)
    assert review is not None
    assert review.figures.vanished == 1


def test_a_file_of_a_failed_run_is_still_new(here: Depot) -> None:
    """Only a publication makes a file one that was published."""
    here.run()
    here.server.files["/a.jsonl"] = b'{"id": null}\n' * 9
    here.server.files["/b.jsonl"] = lines(3, name="better")
    run = run_inline(here.services, RunRequest(sync="hotels", mode=Mode.INCREMENTAL, origin=Origin()))
    assert run.status is not RunStatus.SUCCEEDED
    here.server.files["/a.jsonl"] = lines(1, name="mended")
    assert here.shards(here.run()) == ["/a.jsonl", "/b.jsonl"]
    assert here.table() == {1: "mended", 2: "inn", 3: "better"}


def test_a_damaged_line_is_a_dead_letter_and_nothing_else(here: Depot) -> None:
    """What stands around it comes in, and its own bytes can be found again."""
    here.server.files["/a.jsonl"] = lines(1) + b'{"id": 2, "name": "cut\n' + lines(3)
    here.server.files["/b.jsonl"] = lines(4) + b'{"id": 5, "name": "\xff"}\n' + b'{"id": 6, "name": NaN}\n' + lines(7)
    here.run(Mode.FULL)
    assert here.table() == dict.fromkeys((1, 3, 4, 7), "inn")
    letters = here.services.letter_desk.selected("hotels", Redrive(), 10)
    assert len(letters) == 3
    assert any("cut" in letter.reject.message for letter in letters)


def test_parts_of_one_file_are_one_table(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """Cut by bytes, fetched by shards, known by its ETag."""
    with depot(tmp_path, database, artifacts, {"files": ["/a.jsonl"]}, shards={"kind": "files", "split": 400}) as here:
        here.server.files["/a.jsonl"] = lines(*range(60))
        first = here.run()
        assert len(here.shards(first)) == len(lines(*range(60))) // 400 + 1
        assert here.table() == dict.fromkeys(range(60), "inn")
        assert here.shards(here.run()) == []


def test_a_file_that_changes_in_mid_run_is_begun_again(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo
) -> None:
    """Of what was fetched before nothing counts; and the state that is known afterwards is that which was read."""
    with depot(tmp_path, database, artifacts, {"files": ["/a.jsonl"]}) as here:
        here.server.files["/a.jsonl"] = lines(*range(5000))
        here.server.breaks = [100_000]
        here.server.at_break = lambda: here.server.files.update({"/a.jsonl": lines(*range(4000, 5000), name="new")})
        run = here.run()
        [shard] = here.services.shards.of(run.id)
        assert (shard.epoch, shard.records) == (1, 1000)
        assert here.table() == dict.fromkeys(range(4000, 5000), "new")
        assert here.shards(here.run()) == []


def test_new_objects_of_a_bucket_are_brought(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, s3: S3Server
) -> None:
    """Compressed or not, by pattern; a run brings those whose key or ETag is new."""
    bucket = Bucket(servers.new_bucket(s3, f"shop-{uuid.uuid4().hex}"))
    source = {"bucket": bucket.name, "files": ["daily/*.jsonl*"]}
    with depot(tmp_path, database, artifacts, source, shop=bucket.info) as here:
        bucket.put("daily/1.jsonl", lines(1, 2))
        assert here.shards(here.run()) == ["daily/1.jsonl"]
        bucket.put("daily/2.jsonl.gz", gzip.compress(lines(2, 3, name="two")))
        bucket.put("other/3.jsonl", lines(9))
        assert here.shards(here.run()) == ["daily/2.jsonl.gz"]
        assert here.table() == {1: "inn", 2: "two", 3: "two"}
        bucket.put("daily/1.jsonl", lines(1, name="one"))
        assert here.shards(here.run()) == ["daily/1.jsonl"]
        assert here.table() == {1: "one", 2: "two", 3: "two"}


def test_killed_in_mid_file_and_gone_on_with(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """Who goes on in another process asks for the bytes behind the last checkpoint, and the table has every record once."""
    content = lines(*range(8_000))
    with serving({"/a.jsonl": content}) as server:
        project(tmp_path, {"files": ["/a.jsonl"], "size": 500})
        known = {
            "sluice_state": database,
            "sluice_target": database,
            "sluice_artifacts": artifacts,
            "shop": server.connection(),
        }
        sluice = CommandLineHere(tmp_path, known)
        server.holds_after = len(content) // 2
        with sluice.start("run", "hotels", "--inline") as worker:
            assert server.held.wait(60)
            _await_checkpoint(database)
            worker.kill()
        server.holds_after = None
        server.go_on.set()
        server.asked.clear()

        class Known:
            def get(self, conn_id: str) -> ConnectionInfo:
                return known[conn_id]

        with open_services(
            Settings(include=tmp_path / "include", cache=tmp_path / "cache"), Known(), LoggedMetrics()
        ) as services:
            done = run_inline(services, RunRequest(sync="hotels", origin=Origin()))
        assert done.status is RunStatus.SUCCEEDED
        [span] = server.ranges()
        assert span is not None
        assert int(span.removeprefix("bytes=").removesuffix("-")) > len(content) // 4
        assert table_of(database) == dict.fromkeys(range(8_000), "inn")


def _await_checkpoint(database: ConnectionInfo) -> None:
    """Return once the shard is known to have come beyond a quarter of the file: the server holds it in the middle."""
    with psycopg.connect(conninfo(database), autocommit=True) as connection:
        for _ in range(600):
            row = connection.execute("select records from sluice_state.shard").fetchone()
            if row is not None and row[0] >= 3_000:
                return
            connection.execute("select pg_sleep(0.05)")
    raise AssertionError("no checkpoint was made")
