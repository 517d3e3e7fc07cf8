"""A supplier that answers each request as a function says, several at a time; it notes what it was asked."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sluice.ports import ConnectionInfo
from tests.support.local_server import Conversation, LocalServer, running


@dataclass(frozen=True)
class Reply:
    """What is answered."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Respond = Callable[[str, dict[str, str]], Reply]
"""Says what is answered to a path and its query."""


class AnsweringSupplier(LocalServer):
    """One supplier on a free port of 127.0.0.1."""

    def __init__(self, respond: Respond) -> None:
        super().__init__(_Conversation)
        self.respond = respond
        self.asked: list[str] = []
        self.bodies: list[Any] = []

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def connection(self) -> ConnectionInfo:
        """The Airflow connection to it."""
        return self.info()


class _Conversation(Conversation):
    server: AnsweringSupplier

    def do_GET(self) -> None:
        """Answer."""
        self.server.asked.append(self.path)
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length", 0))
        self.server.bodies.append(json.loads(self.rfile.read(length)) if length else None)
        reply = self.server.respond(parts.path, dict(parse_qsl(parts.query)))
        body = json.dumps(reply.body).encode()
        self.say(reply.status, body, reply.headers)

    def do_POST(self) -> None:
        """Answer, having read the body."""
        self.do_GET()


@contextmanager
def answering(respond: Respond) -> Iterator[AnsweringSupplier]:
    """Yield a running supplier; in the end it is gone."""
    with running(AnsweringSupplier(respond)) as supplier:
        yield supplier
