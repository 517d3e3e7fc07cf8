"""A supplier of cities: it lists them, has two hotels in each, and all of those in a file; some it can be told to be out of."""

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sluice.ports import ConnectionInfo
from tests.support.local_server import Conversation, LocalServer, running

HOTELS = 2
"""In each city."""


class Cities(LocalServer):
    """One server on a free port of 127.0.0.1."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(_Conversation)
        self.names = names
        self.out_of: set[str] = set()
        """Cities whose hotels are answered with 404."""
        self.asked: list[str] = []

    @property
    def connection(self) -> ConnectionInfo:
        """The Airflow connection to it."""
        return self.info("cities")


class _Conversation(Conversation):
    server: Cities

    def do_GET(self) -> None:
        """Answer with cities, or with the hotels of some."""
        self.server.asked.append(self.path)
        asked = urlsplit(self.path)
        if asked.path == "/cities":
            self._answer(200, [{"name": name} for name in self.server.names])
            return
        if asked.path == "/hotels.jsonl":
            lines = [json.dumps(hotel) for hotel in _hotels(self.server.names)]
            self._send(200, "\n".join(lines).encode())
            return
        wanted = parse_qs(asked.query)["city"][0].split(",")
        if self.server.out_of & set(wanted):
            self._answer(404, {"error": "no such city"})
            return
        self._answer(200, _hotels(wanted))

    def do_HEAD(self) -> None:
        """Answer as to a GET, without a body."""
        self.do_GET()

    def _answer(self, status: int, content: Any) -> None:
        self._send(status, json.dumps(content).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.say(status, body, {"ETag": f'"{zlib.crc32(body)}"'})


def _hotels(of: list[str]) -> list[dict[str, str]]:
    return [{"id": f"{city}-{number}", "city": city} for city in of for number in range(HOTELS)]


@contextmanager
def cities(number: int) -> Iterator[Cities]:
    """Yield a running server; in the end it is gone."""
    with running(Cities([f"city-{place:04d}" for place in range(number)])) as server:
        yield server
