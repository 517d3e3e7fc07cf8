"""How a supplier is served in a test's own process: what it says in; a running server, and the connection to it, out."""

import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

from sluice.ports import ConnectionInfo

S = TypeVar("S", bound=socketserver.BaseServer)


class LocalServer(ThreadingHTTPServer):
    """One server on a free port of 127.0.0.1; a conversation that hangs keeps nobody waiting at the end."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, conversation: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), conversation)

    def info(self, conn_id: str = "shop", **changes: Any) -> ConnectionInfo:
        """Return an Airflow connection to it."""
        fields = {"host": "127.0.0.1", "port": int(self.server_address[1]), "login": None, "password": None, "schema": "http"}
        return ConnectionInfo(conn_id, "http", **(fields | {"extra": {}} | changes))


class Conversation(BaseHTTPRequestHandler):
    """What one client asks, and is answered, over a connection that is kept; nothing is written down."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def say(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Answer with JSON, unless the headers say otherwise; to a HEAD without the body."""
        self.send_response(status)
        fields = {"Content-Type": "application/json", **(headers or {}), "Content-Length": str(len(body))}
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def running(server: S) -> Iterator[S]:
    """Yield the server while it runs; in the end it is gone."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
