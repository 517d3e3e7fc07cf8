"""A supplier that repeats, in every way an answer can, what it was shown; it is told how."""

import json
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote

from sluice.ports import ConnectionInfo
from tests.support.local_server import Conversation, LocalServer, running

WAYS = (
    "none",
    "401",
    "429",
    "500",
    "html",
    "cut",
    "error",
    "cursor",
    "link",
    "redirect",
    "redirect away",
    "content type",
    "status line",
    "encoding",
)
"""How an answer repeats it; `none`: it does not."""


class Echo(LocalServer):
    """One server on a free port of 127.0.0.1. A token that it issues is one more thing to repeat."""

    def __init__(self, token: str) -> None:
        super().__init__(_Conversation)
        self.token = token
        self.way = "none"
        self.heard: list[str] = []

    def connection(self, **changes: Any) -> ConnectionInfo:
        """Return the Airflow connection to it."""
        return self.info(**changes)


class _Conversation(Conversation):
    server: Echo

    def do_POST(self) -> None:
        self._note(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if self.server.way == "token":
            self._say("401 Unauthorized", {"error": self._echo()})
        else:
            self.server.heard.append(self.server.token)
            self._say("200 OK", {"access_token": self.server.token, "expires_in": 3600})

    def do_GET(self) -> None:
        self._note(self.path)
        if self.server.way == "status line":
            self.wfile.write(f"HTTP/1.1 {self._echo()}\r\n\r\n".encode())
            self.close_connection = True
            return
        self._say(*_answer(self.server.way, self._echo(), is_there=self.path.startswith("/there")))

    def _note(self, text: str) -> None:
        """Keep what was shown, with what stands behind `Basic`."""
        shown = [*self.headers.values(), unquote(text)]
        for value in list(shown):
            kind, _, pair = value.partition(" ")
            if kind == "Basic":
                shown.append(b64decode(pair).decode())
            shown.append(value.rpartition(" ")[2])
        self.server.heard = [*self.server.heard[-60:], *(value for value in shown if "canary" in value)]

    def _echo(self) -> str:
        """Return all that it was shown lately, and the token if it gave one."""
        return " ".join(dict.fromkeys(self.server.heard))

    def _say(self, status: str, said: Any, headers: dict[str, str] | None = None) -> None:
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        fields = {"Content-Type": "application/json"} | (headers or {}) | {"Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.wfile.write(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body)


def _answer(way: str, echo: str, *, is_there: bool) -> tuple[str, Any, dict[str, str]]:
    """Return status, body and headers of an answer that repeats it that way."""
    quoted = quote(echo)
    page = {"error": None, "items": [{"id": "1"}], "next": None}
    answers: dict[str, tuple[str, Any, dict[str, str]]] = {
        "401": ("401 Unauthorized", {"message": echo}, {"WWW-Authenticate": f'Basic realm="{quoted}"'}),
        "429": ("429 Too Many Requests", {"message": echo}, {"Retry-After": "9000"}),
        "500": ("500 Internal Server Error", echo.encode(), {}),
        "html": ("200 OK", f'<input type="password" value="{echo}">'.encode(), {"Content-Type": "text/html"}),
        "cut": ("200 OK", json.dumps({"items": [echo, "…"]}, ensure_ascii=False).encode()[:-6], {}),
        "error": ("200 OK", {"error": {"code": 7, "message": echo}}, {}),
        "cursor": ("200 OK", page | {"next": echo}, {}),
        "link": ("200 OK", page | {"next": f"/items?page=2&again={quoted}"}, {}),
        "redirect": ("404 Not Found" if is_there else "302 Found", {}, {"Location": f"/there?{quoted}"}),
        "redirect away": ("302 Found", {}, {"Location": f"http://elsewhere.example/{quoted}"}),
        "content type": ("200 OK", b"?", {"Content-Type": f"text/{quoted}"}),
        "encoding": ("200 OK", b"?", {"Content-Encoding": quoted}),
    }
    return answers.get(way, ("200 OK", page, {}))


@contextmanager
def echo(token: str) -> Iterator[Echo]:
    """Yield a running server; in the end it is gone."""
    with running(Echo(token)) as server:
        yield server
