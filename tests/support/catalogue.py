"""A supplier that lists its records and tells of each by itself; it notes what it was asked, and can be told to fail."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from sluice.ports import ConnectionInfo
from tests.support.local_server import Conversation, LocalServer, running

PAGE = 4
"""Records on a page of the list."""


class Catalogue(LocalServer):
    """One server on a free port of 127.0.0.1: `/list?cursor=` and `/records/<id>`."""

    def __init__(self, records: dict[str, Any]) -> None:
        super().__init__(_Conversation)
        self.records = records
        self.listed: list[Any] = [{"id": key, "self": {"name": key}} for key in records]
        self.trouble: Callable[[str], tuple[int, bytes] | None] = lambda _: None
        """Called before each answer with the path: what it returns is answered. It may take its time."""
        self.asked: list[str] = []
        self.lock = threading.Lock()
        self.busy = 0
        self.most_busy = 0

    @property
    def connection(self) -> ConnectionInfo:
        """The Airflow connection to it."""
        return self.info()

    def details_asked(self) -> list[str]:
        """Return the ids whose details were asked for."""
        return [path.removeprefix("/records/") for path in self.asked if path.startswith("/records/")]

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, bytes]:
        """Return status and body."""
        if (trouble := self.trouble(path)) is not None:
            return trouble
        if path == "/list":
            offset = int(query.get("cursor", ["0"])[0])
            following = offset + PAGE
            page = {"items": self.listed[offset:following], "next": following if following < len(self.listed) else None}
            return 200, json.dumps(page).encode()
        record = self.records.get(path.removeprefix("/records/"))
        return (404, b"{}") if record is None else (200, record if isinstance(record, bytes) else json.dumps(record).encode())


class _Conversation(Conversation):
    server: Catalogue

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        with self.server.lock:
            self.server.asked.append(path)
            self.server.busy += 1
            self.server.most_busy = max(self.server.most_busy, self.server.busy)
        try:
            status, body = self.server.answer(path, parse_qs(parts.query))
        finally:
            with self.server.lock:
                self.server.busy -= 1
        self.say(status, body)


@contextmanager
def catalogue(records: dict[str, Any]) -> Iterator[Catalogue]:
    """Yield a running server; in the end it is gone."""
    with running(Catalogue(records)) as server:
        yield server
