"""Proxies that spoil things on the way: in goes a connection, out comes one that leads through a proxy.

`PostgresProxy` reads what clients send, message by message, and cuts a conversation at the message that a test has chosen.
`S3Proxy` answers chosen requests with 503 SlowDown, as S3 does when it is asked too much, or breaks off in the middle of them.
"""

import http.client
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import urlsplit

from sluice.ports import ConnectionInfo

_STARTUP = struct.Struct(">II")
_MESSAGE = struct.Struct(">cI")
_PROTOCOL_3 = 3 << 16
_COPY_DATA = b"d"
_PATIENCE = 60.0

_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class CopyCut:
    """Cuts the first conversation that copies into a table, in the middle of the first rows it sends."""

    def __init__(self, table: str) -> None:
        self._statement = f'copy "{table}" '.encode()
        self._is_copying = False

    def keeps(self, kind: bytes, body: bytes) -> int | None:
        """Return how many bytes of a message to pass on before all is over; None: it passes."""
        if kind in (b"Q", b"P"):
            self._is_copying = self._statement in body
        return len(body) // 2 if kind == _COPY_DATA and self._is_copying else None


class CommitAnswerCut:
    """Cuts the first conversation that commits after it has sent some text: the server commits, and nobody hears of it."""

    def __init__(self, after: str) -> None:
        self._after = after.encode()
        self._is_due = False

    def keeps(self, kind: bytes, body: bytes) -> int | None:
        """Return how many bytes of a message to pass on before all is over; None: it passes."""
        self._is_due = self._is_due or self._after in body
        return len(body) if self._is_due and kind == b"Q" and body.upper().startswith(b"COMMIT") else None


class CopyHeld:
    """Holds the first conversation that copies into a table, before the first rows it sends, until it may go on."""

    def __init__(self, table: str) -> None:
        self.reached = threading.Event()
        self.may_go_on = threading.Event()
        self._statement = f'copy "{table}" '.encode()
        self._is_copying = False

    def keeps(self, kind: bytes, body: bytes) -> None:
        """Wait, where it is due; every message passes."""
        if kind in (b"Q", b"P"):
            self._is_copying = self._statement in body
        if kind == _COPY_DATA and self._is_copying and not self.reached.is_set():
            self.reached.set()
            self.may_go_on.wait(_PATIENCE)


class Cut(Protocol):
    """What may happen to a conversation with a database."""

    def keeps(self, kind: bytes, body: bytes) -> int | None:
        """Return how many bytes of a message to pass on before all is over; None: it passes."""


class PostgresProxy(socketserver.ThreadingTCPServer):
    """Passes conversations on to a server until `cut` has struck, once."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, info: ConnectionInfo, cut: Callable[[], Cut]) -> None:
        super().__init__(("127.0.0.1", 0), _PostgresConversation)
        self.server = (str(info.host), int(info.port or 0))
        self.connection = replace(info, port=int(self.server_address[1]))
        self.new_cut = cut
        self.has_struck = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: conversations that end in the middle are what this is for."""


class _PostgresConversation(socketserver.BaseRequestHandler):
    server: PostgresProxy

    def handle(self) -> None:
        """Pass messages of the client on, one by one, and what the server says as it comes."""
        with socket.create_connection(self.server.server) as upstream:
            for end in (self.request, upstream):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_pour, args=(upstream, self.request), daemon=True).start()
            self._talk(upstream)
            with suppress(OSError):
                self.request.shutdown(socket.SHUT_RDWR)

    def _talk(self, upstream: socket.socket) -> None:
        client = self.request.makefile("rb")
        while True:
            head = client.read(_STARTUP.size)
            length, protocol = _STARTUP.unpack(head)
            upstream.sendall(head + client.read(length - _STARTUP.size))
            if protocol == _PROTOCOL_3:  # what came before asked for encryption, and was told that there is none
                break
        cut = self.server.new_cut()
        while len(head := client.read(_MESSAGE.size)) == _MESSAGE.size:
            kind, length = _MESSAGE.unpack(head)
            body = client.read(length - 4)
            keeps = None if self.server.has_struck.is_set() else cut.keeps(kind, body)
            if keeps is not None:
                self.server.has_struck.set()
                with suppress(OSError):
                    self.request.shutdown(socket.SHUT_RDWR)  # the client first: it shall hear no answer
                upstream.sendall(head + body[:keeps])
                upstream.shutdown(socket.SHUT_WR)
                while upstream.recv(1 << 16):  # until the server has ended the session, too
                    pass
                return
            upstream.sendall(head + body)


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


class Spoil(Enum):
    """What becomes of a request to the object store."""

    SLOW_DOWN = "503 SlowDown"
    BREAK_OFF = "the connection breaks in the middle of the answer"


class S3Proxy(ThreadingHTTPServer):
    """Passes requests on to an S3 API, but for those that `spoils` picks."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, info: ConnectionInfo, spoils: Callable[[str], Spoil | None]) -> None:
        super().__init__(("127.0.0.1", 0), _S3Conversation)
        parts = urlsplit(str(info.extra["endpoint_url"]))
        self.upstream = (str(parts.hostname), int(parts.port or 80))
        self.connection = replace(info, extra={**info.extra, "endpoint_url": f"http://127.0.0.1:{self.server_address[1]}"})
        self.spoils = spoils
        self.spoiled = 0

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


class _S3Conversation(BaseHTTPRequestHandler):
    server: S3Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Pass a request on, headers and all: its signature covers the host that the client has asked."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        spoil = self.server.spoils(self.command)
        if spoil is not None:
            self.server.spoiled += 1
        if spoil is Spoil.SLOW_DOWN:
            self._answer(503, {"Content-Type": "application/xml"}, _SLOW_DOWN)
            return
        upstream = http.client.HTTPConnection(*self.server.upstream, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            upstream.putheader(name, value)
        upstream.endheaders(body)
        answer = upstream.getresponse()
        data = answer.read()
        upstream.close()
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in ("connection", "transfer-encoding")}
        self._answer(answer.status, kept, data, is_cut=spoil is Spoil.BREAK_OFF)

    do_PUT = do_HEAD = do_GET

    def _answer(self, status: int, headers: dict[str, str], data: bytes, *, is_cut: bool = False) -> None:
        self.send_response_only(status)
        length = {} if self.command == "HEAD" else {"Content-Length": str(len(data))}
        for name, value in {**headers, **length}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if is_cut else data)
        if is_cut:
            self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""


@contextmanager
def serving(proxy: Any) -> Iterator[Any]:
    """Let a proxy serve for the time of the context."""
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
