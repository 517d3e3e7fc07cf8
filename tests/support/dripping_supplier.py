"""A supplier that answers every request with a body that never ends: a byte now and then, each in time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sluice.ports import ConnectionInfo

_SECONDS_BETWEEN_BYTES = 0.1


class _Conversation(BaseHTTPRequestHandler):
    is_over: threading.Event

    def do_GET(self) -> None:
        """Begin to answer."""
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        with suppress(OSError):
            while not self.is_over.wait(_SECONDS_BETWEEN_BYTES):
                self.wfile.write(b" ")

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class' name
        """Say nothing."""


@contextmanager
def dripping() -> Iterator[ConnectionInfo]:
    """Run one on a free port of 127.0.0.1; yield the connection to it."""
    is_over = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), type("_Told", (_Conversation,), {"is_over": is_over})) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield ConnectionInfo("demo_supplier", "http", "127.0.0.1", server.server_address[1], None, None, "http", {})
        finally:
            is_over.set()
            server.shutdown()
            thread.join()
