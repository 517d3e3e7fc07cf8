"""A receiver of webhooks: it notes what it is sent, drops what it knows by its key, and answers as it is told to."""

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sluice.ports import ConnectionInfo


@dataclass(frozen=True)
class Delivery:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: Any

    @property
    def key(self) -> str:
        """The idempotency key it came with."""
        return self.headers["idempotency-key"]


@dataclass(frozen=True)
class Reply:
    """An answer."""

    status: int = 200
    body: bytes = b"thank you"
    headers: dict[str, str] = field(default_factory=dict)


SILENCE = None
"""No answer: the request is received, and then nothing comes."""


class Receiver(ThreadingHTTPServer):
    """One server on a free port of 127.0.0.1. It gives one of `replies` after the other, and then 200 for good."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *replies: Reply | None) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.replies = list(replies)
        self.deliveries: list[Delivery] = []
        self.arrivals: queue.Queue[Delivery] = queue.Queue()
        """The same, for whoever waits for one."""
        self.over = threading.Event()

    @property
    def effects(self) -> list[Any]:
        """What it has acted on: each key once."""
        return list({delivery.key: delivery.body for delivery in self.deliveries}.values())

    def connection(self, **changes: Any) -> ConnectionInfo:
        """Return the Airflow connection to it."""
        place = {"host": "127.0.0.1", "port": self.server_address[1], "login": None, "password": None, "schema": "http"}
        return ConnectionInfo("shop", "http", **(place | {"extra": {}} | changes))


class _Conversation(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        delivery = Delivery(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        reply = self.server.replies.pop(0) if self.server.replies else Reply()
        self.server.deliveries.append(delivery)
        self.server.arrivals.put(delivery)
        if reply is SILENCE:
            self.server.over.wait(60)
            return
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def receiving(*replies: Reply | None) -> Iterator[Receiver]:
    """Yield a running receiver; in the end it is gone."""
    with Receiver(*replies) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()
