"""Thousands of shards of a few objects each: how long planning, claiming, bringing in, review and publication take.

    .venv/bin/python bench/shards.py [SHARDS]

Planning is of shards that a supplier lists. Claiming is what workers of Airflow do: each takes the next pending shard; half of
them are claimed, the others are left to the run. The run is in one process. Postgres and S3 run on this machine and are thrown
away at the end.
"""

import json
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
import yaml

from sluice.adapters.migrate import upgrade
from sluice.cli.account import account_of
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from sluice.flow.admission import admit
from sluice.flow.fetcher import fetch
from sluice.flow.gate import hold
from sluice.flow.publisher import publish
from sluice.flow.reviewer import review
from sluice.flow.settlement import settle
from sluice.flow.sharder import plan_shards
from sluice.flow.transformer import transform
from sluice.model.base import RunId, ShardKey
from sluice.model.run import Origin, RunRequest
from sluice.model.shard import ShardPlan
from sluice.ports import ConnectionInfo, Page, PageRequest, Services, ShardQuestion
from sluice.settings import Settings
from sluice.wiring import open_services

OBJECTS = 3
"""Of each shard."""
CITIES = {"kind": "rest", "connection": "none", "path": "/cities", "cursor": {"kind": "none"}}
SPEC = {
    "sync": "items",
    "stage": "bench",
    "source": {"kind": "rest", "connection": "none", "path": "/{{ shard.city }}", "cursor": {"kind": "none"}},
    "shards": {"kind": "listed", "name": "city", "value": "id", "source": CITIES},
    "object": {"key": ["id"]},
    "fields": [{"name": "id", "type": "text"}, {"name": "city", "type": "text"}],
    "review": {"first_load": "auto-approve"},
    "target": {"table": "public.items"},
}


@dataclass(frozen=True)
class Supplier:
    """Makes its cities and their objects up."""

    shards: int

    def find(self, _question: ShardQuestion, moved: Callable[[], None]) -> list[ShardPlan]:
        """List the cities."""
        moved()
        names = [f"city-{number:05d}" for number in range(self.shards)]
        return [ShardPlan(key=ShardKey(name), params={"city": name}) for name in names]

    def now(self) -> None:
        """Tell no time."""

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the only page of a shard."""
        city = request.shard["city"]
        records = [{"id": f"{city}-{number}", "city": city} for number in range(OBJECTS)]
        yield Page(json.dumps(records).encode(), len(records), None)


@contextmanager
def timed(what: str, each: int = 0) -> Iterator[None]:
    """Print what the block took, and what that is for each of so many."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    print(f"{what}: {took:.2f} s" + (f", {took / each * 1000:.2f} ms each" if each else ""), flush=True)


def measure(services: Services, shards: int) -> None:
    """Take one run to its end."""
    run = RunId("run")
    admit(services, RunRequest(sync="items", origin=Origin()), run)
    with timed("plan", shards):
        planned = plan_shards(services, run)
    with timed("plan again", shards):
        plan_shards(services, run)
    with timed("claim the next of half of them", shards // 2):
        for _ in range(shards // 2):
            services.shards.claim_next(run)
    with timed("fetch", shards):
        for shard in planned:
            fetch(services, run, shard.key)
    with timed("transform", shards):
        for shard in planned:
            transform(services, run, shard.key)
    with timed("review", shards):
        review(services, run)
    hold(services, run)
    with timed("publish", shards):
        publish(services, run)
    with timed("settle", shards):
        print(settle(services, run).status)
    with timed("account, as `sluice show` and the run's page read it", shards):
        account_of(services, services.runs.get(run))


def main() -> None:
    """Set everything up, measure, clear away."""
    shards = int(sys.argv[1] if len(sys.argv) > 1 else "2000")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
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
        database, artifacts = postgres.connection("sluice_state", "bench"), s3.connection("sluice_artifacts", "bench")
        upgrade(database, "sluice_state")
        upgrade(database, "sluice_ledger")

        class Known:
            def get(self, conn_id: str) -> ConnectionInfo:
                return artifacts if conn_id == "sluice_artifacts" else database

        print(f"{shards:,} shards of {OBJECTS} objects", flush=True)
        supplier = Supplier(shards)
        with open_services(Settings(include=folder / "include", cache=folder / "cache"), Known()) as services:
            made_up = replace(services, source=lambda _spec, _policy: supplier, shard_finder=lambda _spec, _policy: supplier)
            measure(made_up, shards)
    finally:
        s3.stop()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
