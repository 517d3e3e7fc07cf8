"""A supplier in this process: things by region in, their pages out; it notes what it was asked, and can be told to fail."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sluice.ports import ConnectionInfo

PAGE = 3
"""Things on a page."""

Thing = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request for a page."""

    region: str
    since: str | None
    until: str | None
    offset: int


class Shop(ThreadingHTTPServer):
    """One supplier on a free port of 127.0.0.1."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, things: Mapping[str, Sequence[Thing]]) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.things = {region: list(some) for region, some in things.items()}
        self.asked: list[Asked] = []
        self.trouble: Callable[[Asked], int | None] = lambda _: None
        """Called before each answer: a status is answered with it. It may take its time."""
        self.reads: Callable[[str], Any] = str
        """How it understands the times, or whatever grows, by which it is asked."""

    @property
    def connection(self) -> ConnectionInfo:
        """The Airflow connection to it."""
        return ConnectionInfo("shop", "http", "127.0.0.1", int(self.server_address[1]), None, None, "http", {})

    def pages_asked(self) -> Counter[str]:
        """Return how many pages of each region were asked for."""
        return Counter(asked.region for asked in self.asked)

    def answer(self, asked: Asked) -> dict[str, Any]:
        """Return a page, ordered as the things changed; `since` is inclusive, `until` is not."""
        found = [thing for thing in self.things[asked.region] if self._is_wanted(thing["updated_at"], asked)]
        found.sort(key=lambda thing: (str(thing["updated_at"]), str(thing.get("id"))))
        following = asked.offset + PAGE
        return {"things": found[asked.offset : following], "next": following if following < len(found) else None}

    def _is_wanted(self, changed: Any, asked: Asked) -> bool:
        at = self.reads(str(changed))
        return (not asked.since or self.reads(asked.since) <= at) and (not asked.until or at < self.reads(asked.until))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of those who were killed in the middle of a conversation."""


class _Conversation(BaseHTTPRequestHandler):
    server: Shop
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer with a page, or with trouble."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        asked = Asked(query["region"], query.get("since"), query.get("until"), int(query.get("cursor", 0)))
        self.server.asked.append(asked)
        status = self.server.trouble(asked)
        body = json.dumps({"error": "told to fail"} if status else self.server.answer(asked)).encode()
        self.send_response(status or 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""


@contextmanager
def open_shop(things: Mapping[str, Sequence[Thing]]) -> Iterator[Shop]:
    """Yield a running supplier; in the end it is gone."""
    with Shop(things) as shop:
        thread = threading.Thread(target=shop.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield shop
        finally:
            shop.shutdown()
            thread.join()
