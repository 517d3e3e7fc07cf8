"""A supplier that issues access tokens, one at a time: the newest kills the older ones; it notes who asked for what."""

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

from sluice.ports import ConnectionInfo
from tests.support.local_server import Conversation, LocalServer, running

CLIENT, SECRET = "client-7f3a", "s3cret/+&é"


class WarySupplier(LocalServer):
    """One server on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        super().__init__(_Conversation)
        self.lock = threading.Lock()
        self.uses = 10**9
        """How often a token may be used."""
        self.issue: dict[str, Any] = {}
        """What an answer with a token says beside it."""
        self.trouble: list[tuple[int, Any]] = []
        """Answers to the next requests for tokens, in the place of a token."""
        self.token: str | None = None
        self.left = 0
        self.issued = 0
        self.refused = 0
        self.forms: list[dict[str, str]] = []
        self.token_headers: list[dict[str, str]] = []
        self.asking = 0
        self.most_asking = 0

    def connection(self, **changes: Any) -> ConnectionInfo:
        """Return the Airflow connection to it."""
        return self.info(**({"login": CLIENT, "password": SECRET} | changes))

    def kill_token(self) -> None:
        """Let the present token be good no more."""
        with self.lock:
            self.token = None

    def grant(self, form: dict[str, str], headers: dict[str, str]) -> tuple[int, Any]:
        """Return the answer to a request for a token."""
        with self.lock:
            self.forms.append(form)
            self.token_headers.append(headers)
            if self.trouble:
                return self.trouble.pop(0)
            if _client(form, headers) != (CLIENT, SECRET):
                return 401, {"error": "invalid_client"}
            self.issued += 1
            self.token, self.left = f"token-{self.issued}-0f9c", self.uses
            return 200, {"access_token": self.token, "token_type": "Bearer", **self.issue}

    def is_known(self, proof: str) -> bool:
        """Whether a request may pass, which uses the token up."""
        with self.lock:
            is_good = self.token is not None and proof == f"Bearer {self.token}" and self.left > 0
            self.left -= is_good
            self.refused += not is_good
            return is_good


class _Conversation(Conversation):
    server: WarySupplier

    def do_POST(self) -> None:
        with self.server.lock:
            self.server.asking += 1
            self.server.most_asking = max(self.server.most_asking, self.server.asking)
        form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode(), keep_blank_values=True))
        status, said = self.server.grant(form, {name.lower(): value for name, value in self.headers.items()})
        with self.server.lock:
            self.server.asking -= 1
        self._say(status, said)

    def do_GET(self) -> None:
        if self.server.is_known(self.headers.get("Authorization", "")):
            self._say(200, [{"id": self.path}])
        else:
            self._say(401, {"error": "invalid_token"})

    def _say(self, status: int, said: Any) -> None:
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.say(status, body)


def _client(form: dict[str, str], headers: dict[str, str]) -> tuple[str | None, str | None]:
    """Return who asks, from the header or the body (RFC 6749, 2.3.1)."""
    kind, _, pair = headers.get("authorization", "").partition(" ")
    if kind != "Basic":
        return form.get("client_id"), form.get("client_secret")
    login, _, secret = b64decode(pair).decode().partition(":")
    return unquote_plus(login), unquote_plus(secret)


@contextmanager
def wary_supplier() -> Iterator[WarySupplier]:
    """Yield a running server; in the end it is gone."""
    with running(WarySupplier()) as server:
        yield server
