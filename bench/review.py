"""Review and publication of 1,000,000 objects of which 1% changed, beside a plain upsert of all of them: time, memory, WAL.

    .venv/bin/python bench/review.py [OBJECTS]

The plain one is COPY into a temporary table and INSERT ... ON CONFLICT DO UPDATE of the whole set, into a table of the same
columns and rows. Each step runs in a process of its own, whose peak memory is shown; WAL is what the server wrote meanwhile,
after a checkpoint and without autovacuum. Postgres and S3 run on this machine and are thrown away at the end.
"""

import csv
import json
import logging
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import structlog
import yaml

from sluice.adapters.migrate import upgrade
from sluice.adapters.postgres import conninfo
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from sluice.flow.admission import admit
from sluice.flow.fetcher import fetch
from sluice.flow.publisher import publish
from sluice.flow.reviewer import review
from sluice.flow.settlement import settle
from sluice.flow.sharder import plan_shards
from sluice.flow.transformer import transform
from sluice.model.base import RunId
from sluice.model.run import Mode, Origin, RunRequest
from sluice.ports import ConnectionInfo, Page, PageRequest, Services
from sluice.settings import Settings
from sluice.wiring import open_services

SHARDS = 4
PAGE = 1_000
CHANGED = 100
"""Of so many objects one changes between the two runs."""
FIELDS = {
    "id": "text",
    "name": "text",
    "city": "text",
    "country": "text",
    "stars": "integer",
    "rating": "double precision",
    "price": "numeric(10,2)",
    "latitude": "numeric(9,6)",
    "active": "boolean",
    "opened": "date",
    "tags": "json",
    "description": "text",
    "updated_at": "timestamptz",
}
SPEC = {
    "sync": "items",
    "stage": "bench",
    "source": {
        "kind": "rest",
        "connection": "none",
        "path": "/{{ shard.part }}",
        "cursor": {"path": "next", "parameter": "cursor"},
    },
    "shards": {"kind": "values", "name": "part", "values": [str(part) for part in range(SHARDS)]},
    "object": {"key": ["id"], "version": "updated_at"},
    "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()],
    "review": {"first_load": "auto-approve", "auto_approve": {"changed": "100%", "drift": 1000}},
    "target": {"table": "public.items"},
}


@dataclass(frozen=True)
class Place:
    """Where everything is; known to each process."""

    folder: Path
    database: ConnectionInfo
    artifacts: ConnectionInfo
    objects: int

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return a connection."""
        return self.artifacts if conn_id == "sluice_artifacts" else self.database


@dataclass(frozen=True)
class Taken:
    """What a step took."""

    seconds: float
    megabytes: float
    wal: int


def item(number: int, day: int) -> list[Any]:
    """Return the values of an object, in the order of the fields; on the second day some of them are others."""
    draw = number * 2_654_435_761 % 2**32
    later = day if number % CHANGED == 0 else 0
    return [
        f"item-{number:09d}",
        f"House {draw % 9973} at {draw % 613} Long Street",
        f"city {draw % 211}",
        ("AT", "CH", "DE", "FR", "PT")[draw % 5],
        draw % 6 or None,
        draw % 1000 / 100,
        f"{draw % 50_000 / 100 + later:.2f}",
        f"{draw % 90_000_000 / 1e6:.6f}",
        draw % 3 > 0,
        f"{1950 + draw % 70}-{1 + draw % 12:02d}-{1 + draw % 28:02d}",
        json.dumps([f"tag {draw % 17}", f"tag {draw % 19}"]),
        f"{draw:08x} " * (10 + draw % 20),
        f"2026-01-{1 + later:02d}T{draw % 24:02d}:00:00Z",
    ]


class Supplier:
    """Makes its pages up."""

    def __init__(self, objects: int, day: int) -> None:
        self._objects, self._day = objects, day

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages of a shard."""
        mine = range(int(request.shard["part"]), self._objects, SHARDS)
        for numbers in (mine[start : start + PAGE] for start in range(0, len(mine), PAGE)):
            records = [dict(zip(FIELDS, item(number, self._day), strict=True)) for number in numbers]
            for record in records:
                record["tags"] = json.loads(record["tags"])
            is_last = numbers[-1] + SHARDS >= self._objects
            yield Page(json.dumps(records).encode(), len(records), None if is_last else numbers[-1])


def opened(place: Place, act: Callable[[Services], Any]) -> Any:
    """Do something with all services."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with open_services(Settings(include=place.folder / "include", cache=place.folder / "cache"), place) as services:
        return act(services)


def bring_in(place: Place, run: RunId, day: int) -> None:
    """Take a run up to its review."""

    def act(services: Services) -> None:
        services = replace(services, source=lambda _spec, _policy: Supplier(place.objects, day))
        admit(services, RunRequest(sync="items", mode=Mode.FULL, origin=Origin()), run)
        for shard in plan_shards(services, run):
            fetch(services, run, shard.key)
            transform(services, run, shard.key)

    opened(place, act)


def review_run(place: Place, run: RunId) -> None:
    """Review the run."""
    opened(place, lambda services: review(services, run))


def publish_run(place: Place, run: RunId) -> None:
    """Publish the run."""
    opened(place, lambda services: publish(services, run))


def settle_run(place: Place, run: RunId) -> None:
    """End the run."""
    opened(place, lambda services: settle(services, run))


def upsert_all(place: Place, table: Path) -> None:
    """Upsert everything in one transaction, as one would by hand."""
    columns = ", ".join(FIELDS)
    changes = ", ".join(f"{name} = excluded.{name}" for name in FIELDS if name != "id")
    with psycopg.connect(conninfo(place.database)) as connection, connection.cursor() as cursor:
        cursor.execute("create temporary table incoming (like plain) on commit drop")
        with cursor.copy(f"copy incoming ({columns}) from stdin (format csv)") as copy, table.open("rb") as file:
            while data := file.read(1 << 20):
                copy.write(data)
        cursor.execute(f"insert into plain select * from incoming on conflict (id) do update set {changes}")  # noqa: S608


def measured(place: Place, step: Callable[..., None], *arguments: Any) -> Taken:
    """Run a step in a process of its own, and return what it took."""
    with psycopg.connect(conninfo(place.database), autocommit=True) as connection:
        connection.execute("checkpoint")
        (before,) = connection.execute("select pg_current_wal_lsn()").fetchone() or ("0/0",)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            seconds, megabytes = process.submit(timed, place, step, *arguments).result()
        (wal,) = connection.execute("select pg_wal_lsn_diff(pg_current_wal_lsn(), %s)::bigint", (before,)).fetchone() or (0,)
    return Taken(seconds, megabytes, wal)


def timed(place: Place, step: Callable[..., None], *arguments: Any) -> tuple[float, float]:
    """Run a step; return its seconds and the peak memory of this process."""
    began = time.monotonic()
    step(place, *arguments)
    return time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def write_tables(place: Place) -> list[Path]:
    """Write what the plain upsert loads, as of either day."""
    tables = [place.folder / f"day-{day}.csv" for day in (0, 1)]
    for day, table in enumerate(tables):
        with table.open("w", newline="") as file:
            csv.writer(file).writerows(item(number, day) for number in range(place.objects))
    return tables


def show(what: str, taken: Taken, plain: Taken | None = None) -> None:
    """Print a line; with ratios to the plain upsert."""
    line = f"{what}: {taken.seconds:.1f} s, peak {taken.megabytes:,.0f} MB, WAL {taken.wal / 1e6:,.1f} MB"
    if plain:
        line += f" ({taken.seconds / plain.seconds:.2f} of its time, {taken.wal / plain.wal:.3f} of its WAL)"
    print(line, flush=True)


def compare(place: Place) -> None:
    """Measure both ways, after a first load of each."""
    first, second = RunId("first"), RunId("second")
    tables = write_tables(place)
    with psycopg.connect(conninfo(place.database), autocommit=True) as connection:
        connection.execute("alter system set autovacuum = off")
        connection.execute("select pg_reload_conf()")
        columns = ", ".join(f"{name} {kind}" for name, kind in FIELDS.items()).replace(" json", " jsonb")
        connection.execute(f"create table plain ({columns}, primary key (id))")
    measured(place, bring_in, first, 0)
    show("first load, review", measured(place, review_run, first))
    show("first load, publish", measured(place, publish_run, first))
    settle_run(place, first)
    show("first load, plain upsert", measured(place, upsert_all, tables[0]))
    measured(place, bring_in, second, 1)
    with psycopg.connect(conninfo(place.database), autocommit=True) as connection:
        connection.execute("vacuum analyze")
    plain = measured(place, upsert_all, tables[1])
    show("1% changed, plain upsert of all", plain)
    reviewed = measured(place, review_run, second)
    show("1% changed, review", reviewed, plain)
    published = measured(place, publish_run, second)
    show("1% changed, publish", published, plain)
    both = Taken(
        reviewed.seconds + published.seconds, max(reviewed.megabytes, published.megabytes), reviewed.wal + published.wal
    )
    show("1% changed, review and publish", both, plain)


def main() -> None:
    """Set everything up, measure, clear away."""
    objects = int(sys.argv[1] if len(sys.argv) > 1 else "1000000")
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    folder.chmod(0o711)
    (folder / "include/syncs").mkdir(parents=True)
    (folder / "include/syncs/items.yaml").write_text(yaml.safe_dump(SPEC, sort_keys=False))
    (folder / "include/stages.yaml").write_text(yaml.safe_dump({"stages": {"bench": {}}}))
    postgres, s3 = PostgresServer(folder / "postgres"), S3Server(folder / "s3", "bench")
    try:
        postgres.start()
        s3.start()
        postgres.ensure_database("bench")
        database = postgres.connection("sluice_state", "bench")
        upgrade(database, "sluice_state")
        upgrade(database, "sluice_ledger")
        print(f"{objects:,} objects of {len(FIELDS)} fields, {objects // CHANGED:,} of them changed", flush=True)
        compare(Place(folder, database, s3.connection("sluice_artifacts", "bench"), objects))
    finally:
        s3.stop()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
