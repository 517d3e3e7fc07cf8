"""Throw-away servers for one test session: Postgres, an S3 API and the demo supplier, all on free ports of 127.0.0.1."""

import json
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import urllib3
from psycopg import sql

from sluice.adapters.s3_client import s3_client
from sluice.cli.local import keeping, processes
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from sluice.model.connections import ARTIFACTS, STATE
from sluice.ports import ConnectionInfo

PROJECT = Path(__file__).parents[2]
PREFIX = "sluice-test-"
MEMORY = Path("/dev/shm")  # noqa: S108 - what is made there has a name of its own, as in any folder for temporary files
ROOM = 2 << 30
"""Bytes that must be free in memory before a server's data lies there: many times what it needs."""
TEMPLATE = "sluice_template"


def quickest_place() -> Path:
    """Return where files are made and removed quickest: in memory where there is plenty of it, else where temporary files are.

    Each database is some hundred files, and a disk's file system takes ever longer to find room for those of the next one.
    """
    try:
        has_room = shutil.disk_usage(MEMORY).free >= ROOM and available_memory() >= ROOM
    except OSError:
        has_room = False
    return MEMORY if has_room else Path(tempfile.gettempdir())


def available_memory() -> int:
    """Return the bytes of memory that can be had without taking them from anybody."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].removesuffix("kB")) << 10


@contextmanager
def session_folder(place: Path | None = None) -> Iterator[Path]:
    """Yield a folder that the servers' users can reach; end and remove what killed sessions have left.

    It lies in `place`, or where temporary files are.
    """
    for left in (*Path(tempfile.gettempdir()).glob(f"{PREFIX}*"), *MEMORY.glob(f"{PREFIX}*")):
        if is_abandoned(left) and left.stat().st_uid == os.geteuid():
            clear(left)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    folder.chmod(0o711)
    own = processes.stat(os.getpid())
    (folder / "owner.json").write_text(json.dumps({"pid": os.getpid(), "started": own.started if own else 0}))
    try:
        yield folder
    finally:
        clear(folder)


def is_abandoned(folder: Path) -> bool:
    """Whether the session that made the folder has ended."""
    try:
        owner = json.loads((folder / "owner.json").read_text())
    except (OSError, ValueError):
        return False
    now = processes.stat(owner["pid"])
    return now is None or now.started != owner["started"]


def clear(folder: Path) -> None:
    """End the servers that still run in a session's folder, and remove it."""
    PostgresServer(folder / "postgres").stop_leftover()
    S3Server(folder / "s3", "unused").stop_leftover()
    for record in [folder / "supplier" / "pid.json", *folder.rglob("pids/*.json")]:
        processes.stop_recorded(record)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres(folder: Path) -> Iterator[PostgresServer]:
    """Yield a running server without fsync."""
    server = PostgresServer(folder / "postgres", durable=False)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def s3(folder: Path) -> Iterator[S3Server]:
    """Yield a running S3 API."""
    server = S3Server(folder / "s3", "first-bucket")
    server.start()
    try:
        yield server
    finally:
        server.stop()


def new_bucket(server: S3Server, name: str) -> ConnectionInfo:
    """Create a bucket; return the connection to it."""
    _client(server).create_bucket(Bucket=name)
    return server.connection(ARTIFACTS, name)


@cache
def _client(server: S3Server) -> Any:
    """Return one client for all buckets of a server: to make one takes longer than to make a bucket."""
    return s3_client(server.connection(ARTIFACTS), attempts=5, connect_seconds=10, read_seconds=60)


@contextmanager
def throw_away_database(server: PostgresServer, template: str = "template1") -> Iterator[ConnectionInfo]:
    """Yield a connection to a new database, which is dropped in the end."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server.uri("postgres"), autocommit=True) as session:
        # As files, which is quicker than through the log, the server's own choice.
        copying = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        session.execute(copying.format(sql.Identifier(name), sql.Identifier(template)))
        try:
            yield server.connection(STATE, name)
        finally:
            session.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def migrated_template(server: PostgresServer) -> str:
    """Return the name of a database in which both schemas have been migrated."""
    from sluice.adapters.migrate import upgrade

    server.ensure_database(TEMPLATE)
    info = server.connection(STATE, TEMPLATE)
    upgrade(info, "sluice_state")
    upgrade(info, "sluice_ledger")
    return TEMPLATE


class Supplier:
    """The demo supplier in a child process."""

    def __init__(self, folder: Path, state: Path | None = None) -> None:
        self._http = urllib3.PoolManager(retries=False, timeout=10)
        self.port = keeping.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        words = ["--port", str(self.port), *(["--state", str(state)] if state else [])]
        self._process = processes.launch(
            [sys.executable, PROJECT / "include" / "demo" / "supplier.py", *words],
            record=folder / "supplier" / "pid.json",
            log=folder / "supplier" / "supplier.log",
            env=dict(os.environ),
            cwd=PROJECT,
        )
        self._http.request("GET", f"{self.url}/_control", retries=urllib3.Retry(total=12, backoff_factor=0.02, backoff_max=1.0))

    @property
    def connection(self) -> ConnectionInfo:
        """The Airflow connection to it."""
        return ConnectionInfo("demo_supplier", "http", "127.0.0.1", self.port, None, None, "http", {})

    def control(self, **settings: Any) -> dict[str, Any]:
        """Set what it shall do from now on; return all its settings."""
        return self._json("POST", "/_control", settings)

    def requests(self) -> list[str]:
        """Return the targets of the requests it has had since the last reset."""
        return [str(target) for target in self._json("GET", "/_requests")["requests"]]

    def reset(self) -> None:
        """Make it healthy, its data as at first, its list of requests empty."""
        self.control(reset=True)

    def stop(self) -> None:
        """End it."""
        self._process.stop(patience=5.0)

    def _json(self, method: str, target: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = (
            self._http.request(method, self.url + target, json=body) if body else self._http.request(method, self.url + target)
        )
        assert answer.status == 200, answer.data.decode()
        return dict(answer.json())
