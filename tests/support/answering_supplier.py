"""A supplier that answers each request as a function says, several at a time; it notes what it was asked."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sluice.ports import ConnectionInfo


@dataclass(frozen=True)
class Reply:
    """What is answered."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Respond = Callable[[str, dict[str, str]], Reply]
"""Says what is answered to a path and its query."""


class AnsweringSupplier(ThreadingHTTPServer):
    """One supplier on a free port of 127.0.0.1."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, respond: Respond) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
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
        return ConnectionInfo("shop", "http", "127.0.0.1", int(self.server_address[1]), None, None, "http", {})


class _Conversation(BaseHTTPRequestHandler):
    server: AnsweringSupplier
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer."""
        self.server.asked.append(self.path)
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length", 0))
        self.server.bodies.append(json.loads(self.rfile.read(length)) if length else None)
        reply = self.server.respond(parts.path, dict(parse_qsl(parts.query)))
        body = json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Answer, having read the body."""
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def answering(respond: Respond) -> Iterator[AnsweringSupplier]:
    """Yield a running supplier; in the end it is gone."""
    with AnsweringSupplier(respond) as supplier:
        thread = threading.Thread(target=supplier.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield supplier
        finally:
            supplier.shutdown()
            thread.join()
