"""The embedded services answer, keep their data, and recover from a kill."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest

from sluice.cli.local import keeping, processes
from sluice.cli.local.layout import Layout
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from sluice.errors import StackFailed, StackRunning
from sluice.ports import ConnectionInfo
from tests.support import servers

STARTER = """
import os, signal, sys
from pathlib import Path
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
PostgresServer(Path(sys.argv[1]) / "postgres").start()
S3Server(Path(sys.argv[1]) / "s3", "kept").start()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the servers' users can reach; what still runs there in the end is ended."""
    with servers.session_folder() as path:
        yield path


def connect(info: ConnectionInfo, password: str | None = None) -> "psycopg.Connection[tuple[Any, ...]]":
    return psycopg.connect(
        host=info.host, port=info.port, user=info.login, password=password or info.password, dbname=info.schema
    )


def client_of(info: ConnectionInfo, secret: str | None = None) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=info.extra["endpoint_url"],
        region_name="us-east-1",
        aws_access_key_id=info.login,
        aws_secret_access_key=secret or info.password,
    )


def test_databases_are_apart(empty_database: ConnectionInfo, database: ConnectionInfo) -> None:
    """Tests get databases of their own; one of them has Sluice's schemas."""
    schemas = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'sluice%' ORDER BY nspname"
    with connect(empty_database) as empty, connect(database) as migrated:
        assert empty.execute(schemas).fetchall() == []
        assert migrated.execute(schemas).fetchall() == [("sluice_ledger",), ("sluice_state",)]


def test_postgres_asks_for_the_password(empty_database: ConnectionInfo) -> None:
    """A wrong password is refused, and nothing listens but 127.0.0.1."""
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        connect(empty_database, password="wrong")
    with connect(empty_database) as session:
        assert session.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)


def test_s3_asks_for_the_secret(artifacts: ConnectionInfo) -> None:
    """A bucket can be used with the secret alone."""
    client_of(artifacts).put_object(Bucket=artifacts.extra["bucket"], Key="a", Body=b"1")
    with pytest.raises(Exception, match="SignatureDoesNotMatch"):
        client_of(artifacts, secret="wrong").list_buckets()


def test_data_and_ports_outlive_a_kill(folder: Path) -> None:
    """Servers whose starter was killed run on; the next start ends them and finds the data, the ports and the secrets."""
    killed = subprocess.run([sys.executable, "-c", STARTER, folder], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    left = [json.loads((folder / name / "pid.json").read_text())["pid"] for name in ("postgres", "s3")]
    ports = {name: (folder / name / "ports.json").read_text() for name in ("postgres", "s3")}

    postgres, s3 = PostgresServer(folder / "postgres"), S3Server(folder / "s3", "kept")
    postgres.start()
    s3.start()
    try:
        assert all((now := processes.stat(pid)) is None or not now.is_alive for pid in left)
        assert {name: (folder / name / "ports.json").read_text() for name in ("postgres", "s3")} == ports
        assert postgres.ensure_database("new") is True
        client_of(s3.connection("x")).put_object(Bucket="kept", Key="a", Body=b"1")
    finally:
        s3.stop()
        postgres.stop()

    postgres.start()
    s3.start()
    try:
        assert postgres.ensure_database("new") is False
        assert client_of(s3.connection("x")).get_object(Bucket="kept", Key="a")["Body"].read() == b"1"
    finally:
        s3.stop()
        postgres.stop()


def test_s3_moves_to_other_ports_with_its_data(folder: Path) -> None:
    """If somebody else took its ports meanwhile, the server starts on others and still has the data."""
    s3 = S3Server(folder / "s3", "kept")
    s3.start()
    client_of(s3.connection("x")).put_object(Bucket="kept", Key="a", Body=b"1")
    s3.stop()
    ports = keeping.read_ports(folder / "s3" / "ports.json")
    with socket.create_server(("127.0.0.1", ports["master"])), socket.create_server(("127.0.0.1", ports["s3"])):
        s3.start()
    try:
        assert s3.port != ports["s3"]
        assert client_of(s3.connection("x")).get_object(Bucket="kept", Key="a")["Body"].read() == b"1"
        client_of(s3.connection("x")).put_object(Bucket="kept", Key="b", Body=b"2")
    finally:
        s3.stop()


def test_a_server_that_cannot_start_says_why(folder: Path) -> None:
    """The error holds the end of the server's log."""
    server = PostgresServer(folder / "postgres", durable=False)
    server.start()
    server.stop()
    (folder / "postgres" / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(StackFailed, match="database files are incompatible with server"):
        server.start()


def test_a_reused_pid_is_left_alone(tmp_path: Path) -> None:
    """A record whose process started at another time is of a process that has ended long ago."""
    record = tmp_path / "pid.json"
    record.write_text(f'{{"pid": {os.getpid()}, "started": 1}}')
    assert processes.stop_recorded(record) is False
    assert not record.exists()


def test_the_end_of_a_process_is_the_end_of_its_session(tmp_path: Path) -> None:
    """What a child has started goes down with it, though it ignores SIGTERM."""
    script = "trap '' TERM; (trap '' TERM; echo $BASHPID; exec sleep 600) & wait"
    log = tmp_path / "log"
    child = processes.launch(["bash", "-c", script], record=tmp_path / "pid.json", log=log, env=dict(os.environ), cwd=tmp_path)
    with (tmp_path / "log").open() as output:
        while not (line := output.readline()).endswith("\n"):
            assert child.exit_code() is None
    child.stop(patience=0.2)
    now = processes.stat(int(line))
    assert now is None or not now.is_alive


def test_a_folder_holds_one_stack(tmp_path: Path) -> None:
    """A second stack is refused while the first runs, and welcome afterwards."""
    layout = Layout(tmp_path)
    with layout.held(), pytest.raises(StackRunning, match="runs for"), Layout(tmp_path).held():
        pass
    with layout.held():
        assert (tmp_path / ".sluice" / "logs").stat().st_mode & 0o777 == 0o700


def test_secrets_are_kept_and_private(tmp_path: Path) -> None:
    """A secret is made up once, and only its owner can read it."""
    first = keeping.kept_secret(tmp_path / "secret")
    assert keeping.kept_secret(tmp_path / "secret") == first
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
