"""Files over HTTP from this process: contents by path in; a server that breaks off where it is told to out."""

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sluice.ports import ConnectionInfo
from tests.support.local_server import Conversation, LocalServer, running


class FileServer(LocalServer):
    """One server on a free port of 127.0.0.1."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(_Conversation)
        self.files = files
        self.has_ranges = True
        self.has_etags = True
        self.headers: dict[str, str] = {}
        """Sent with every answer."""
        self.redirect: str | None = None
        """Where every request is sent to, if anywhere."""
        self.breaks: list[int] = []
        """After how many bytes of their body the next answers of files break off."""
        self.at_break: Callable[[], None] = lambda: None
        """Called when an answer breaks off."""
        self.holds_after: int | None = None
        """After so many bytes of a body the answer stands still, and `held` is set; until `go_on` is."""
        self.held = threading.Event()
        self.go_on = threading.Event()
        self.asked: list[tuple[str, str | None]] = []
        """The path and the range of each request."""

    def connection(self, **changes: Any) -> ConnectionInfo:
        """Return the Airflow connection to it."""
        return self.info(**changes)

    def ranges(self) -> list[str | None]:
        """Return the ranges asked for, but for those that only look."""
        return [span for _, span in self.asked if span != "bytes=0-0"]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of those who hang up in the middle."""


class _Conversation(Conversation):
    server: FileServer

    def do_GET(self) -> None:
        """Answer with a file, or a part of it."""
        asked = self.headers.get("Range")
        self.server.asked.append((self.path, asked))
        if self.server.redirect is not None:
            self._answer(302, {"Location": self.server.redirect}, b"")
            return
        content = self.server.files.get(self.path)
        if content is None:
            self._answer(404, {}, b"no such file")
            return
        etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        headers = {"ETag": etag} if self.server.has_etags else {}
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", asked or "") if self.server.has_ranges else None
        if span is None or self.headers.get("If-Range", etag) != etag:
            self._answer(200, headers, content)
            return
        start, end = int(span[1]), min(int(span[2] or len(content)), len(content) - 1)
        if start >= len(content):
            self._answer(416, {"Content-Range": f"bytes */{len(content)}"}, b"")
            return
        headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
        self._answer(206, headers, content[start : end + 1])

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, **self.server.headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.server.breaks and self.headers.get("Range") != "bytes=0-0":
            self.wfile.write(body[: self.server.breaks.pop(0)])
            self.server.at_break()
            self.close_connection = True
            return
        hold = self.server.holds_after
        if hold is not None and len(body) > hold:
            self.wfile.write(body[:hold])
            self.server.held.set()
            self.server.go_on.wait(60)
            body = body[hold:]
        self.wfile.write(body)


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[FileServer]:
    """Yield a running server; in the end it is gone."""
    with running(FileServer(files)) as server:
        try:
            yield server
        finally:
            server.go_on.set()
