"""A supplier that answers each request with the next of a list of answers, byte for byte; it notes what it was asked."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sluice.ports import ConnectionInfo

RESET = b""
"""An answer that is none: the connection closes."""


def answer(body: bytes | Any, status: str = "200 OK", **headers: str) -> bytes:
    """Return an answer; what is not bytes is sent as JSON. `Content_Length` and the like override."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"Content-Type": "application/json", "Content-Length": str(len(payload))}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + payload


class ScriptedSupplier(socketserver.ThreadingTCPServer):
    """One server on a free port of 127.0.0.1."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, answers: list[bytes], *, hang: threading.Event | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.answers = list(answers)
        self.asked: list[str] = []
        self.methods: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.hang = hang
        """Set by the test; until then an answer that is due when the script is over does not come."""

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def connection(self, **changes: Any) -> ConnectionInfo:
        """Return the Airflow connection to it."""
        fields = {"host": "127.0.0.1", "port": self.port, "login": None, "password": None, "schema": "http", "extra": {}}
        return ConnectionInfo("shop", "http", **(fields | changes))


class _Conversation(socketserver.StreamRequestHandler):
    server: ScriptedSupplier

    def handle(self) -> None:
        self.server.connections += 1
        while line := self.rfile.readline():
            method, target, _ = line.decode().split(" ")
            self.server.methods.append(method)
            self.server.asked.append(target)
            headers = {}
            while (field := self.rfile.readline().decode("latin-1").strip()) != "":
                name, _, value = field.partition(":")
                headers[name.lower()] = value.strip()
            self.server.headers.append(headers)
            self.server.bodies.append(self.rfile.read(int(headers.get("content-length", "0"))))
            if not self.server.answers and self.server.hang is not None:
                self.server.hang.wait(30)
                return
            sent = self.server.answers.pop(0) if self.server.answers else RESET
            self.wfile.write(sent)
            self.wfile.flush()
            if sent == RESET or _is_short(sent):
                return


def _is_short(sent: bytes) -> bool:
    """Whether the connection has to close for the answer to end."""
    head, _, body = sent.partition(b"\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return not lengths or int(lengths[0].split(b":")[1]) > len(body)


@contextmanager
def scripted(*answers: bytes, hang: threading.Event | None = None) -> Iterator[ScriptedSupplier]:
    """Yield a running server; in the end it is gone, with its connections."""
    with ScriptedSupplier(list(answers), hang=hang) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
