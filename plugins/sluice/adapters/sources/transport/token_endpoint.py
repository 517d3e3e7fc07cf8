"""Where access tokens come from: a client's id and secret in; a token, and how long it is good for, out."""

import json
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote_plus, urlsplit

import httpx2

from sluice.adapters.sources.transport.bodies import ACCEPTED_ENCODINGS, read_body
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.refusals import refusal
from sluice.adapters.sources.transport.request import Request, is_header_value
from sluice.adapters.sources.transport.wire import Wire
from sluice.errors import AnswerUnusable, SluiceError, SpecInvalid, SupplierRefused
from sluice.model.auth import OAuth2Auth
from sluice.model.stage import Timeouts

_LARGEST_ANSWER: Final = 256 * 1024
_LONGEST_TOKEN: Final = 16 * 1024
_LONGEST_LIFE: Final = timedelta(days=3650)
_REFUSALS: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True)
class Client:
    """Who asks for tokens, and for what."""

    auth: OAuth2Auth
    id: str = field(repr=False)
    secret: str = field(repr=False)


@dataclass(frozen=True)
class IssuedToken:
    """A token as it was issued."""

    token: str = field(repr=False)
    expires_in: timedelta | None
    """None: the supplier does not say."""


class TokenEndpoint:
    """Asks for tokens, once a time: whoever needs one tries again. Its repr shows nothing secret."""

    def __init__(self, client: Client, endpoint: Endpoint, timeouts: Timeouts) -> None:
        """Find it; raise `SpecInvalid` if it is no address, or the secret would be sent in the open."""
        self._client = client
        self._endpoint = _endpoint_of(client.auth.token, endpoint)
        self.timeouts = timeouts
        token = client.auth.token
        self.address = f"{endpoint.base}{token}" if token.startswith("/") else token
        # RFC 6749, 2.3.1: both are encoded as in a form before they are joined.
        self._pair = b64encode(f"{quote_plus(client.id)}:{quote_plus(client.secret)}".encode()).decode()
        endpoint.secrets.add(self._pair)

    def ask(self) -> IssuedToken:
        """Return a new token.

        Raises `SupplierRefused`, naming the connection, if id and secret are not taken, `AnswerUnusable` if the answer has no
        token; else what asking a supplier raises.
        """
        asked = f"POST {self._endpoint.shown(self.address)}"
        request = self._request()
        content_type, content = request.content() or ("", b"")
        headers = {**self._endpoint.headers, **request.headers, "Content-Type": content_type}
        wire = Wire(self._endpoint, self.timeouts)
        try:
            response = wire.open("POST", self.address, headers, content, asked)
            with wire.named(asked):
                if not response.is_success:
                    raise self._refused(refusal(response, self._endpoint, asked), asked)
                body = read_body(response, _LARGEST_ANSWER, asked)
        finally:
            wire.close()
        return self._read(body, asked)

    def _request(self) -> Request:
        form = {"grant_type": "client_credentials", **self._client.auth.parameters}
        if self._client.auth.scope is not None:
            form["scope"] = self._client.auth.scope
        headers = {"Accept": "application/json", "User-Agent": "sluice", "Accept-Encoding": ACCEPTED_ENCODINGS}
        if self._client.auth.credentials == "body":
            form |= {"client_id": self._client.id, "client_secret": self._client.secret}
        else:
            headers["Authorization"] = f"Basic {self._pair}"
        return Request(path="", headers=headers, form=form)

    def _refused(self, error: SluiceError, asked: str) -> SluiceError:
        status, said = error.facts.get("status"), error.facts.get("said")
        if status not in _REFUSALS:
            return error
        return self._not_taken(asked, f"the supplier answered {status}" + (f": {said}" if said else ""), status=status)

    def _not_taken(self, asked: str, what: str, **facts: Any) -> SupplierRefused:
        return SupplierRefused(
            f"{asked}: no access token: {what}. Check login (the client's id) and password (its secret) of connection "
            f"{self._endpoint.conn_id}, and source.auth of the spec",
            url=asked,
            **facts,
        )

    def _read(self, body: bytes, asked: str) -> IssuedToken:
        """Read the answer. It is never quoted: a token may stand in it where nobody looks for one."""
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise AnswerUnusable(f"{asked}: the answer is no JSON object, so there is no access token", url=asked)
        token = answer.get("access_token")
        if not isinstance(token, str) and "error" in answer:
            raise self._not_taken(asked, f"the supplier says {self._endpoint.snippet(str(answer['error']))}")
        if not isinstance(token, str) or not token or len(token) > _LONGEST_TOKEN or not is_header_value(token):
            raise AnswerUnusable(f"{asked}: the answer has no `access_token` that a header can carry", url=asked)
        return IssuedToken(token, _life(answer.get("expires_in")))


def _endpoint_of(token: str, endpoint: Endpoint) -> Endpoint:
    """Return where tokens come from. Another host than the connection's gets none of its headers."""
    if token.startswith("/"):
        return endpoint
    try:
        parts = urlsplit(token)
        address = httpx2.URL(token)
    except (ValueError, httpx2.InvalidURL):
        raise SpecInvalid(["source.auth.token: is no address"]) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or address.userinfo:
        raise SpecInvalid(
            ["source.auth.token: has to be a path such as /token, or an address such as https://login.example.com/token"]
        )
    if parts.scheme == "http" and endpoint.base.startswith("https:"):
        raise SpecInvalid(["source.auth.token: would have the client's secret sent in the open: use https"])
    is_own = f"{parts.scheme}://{parts.netloc}" == "://".join(urlsplit(endpoint.base)[:2])
    base = f"{parts.scheme}://{parts.netloc}"
    return Endpoint(endpoint.conn_id, base, endpoint.headers if is_own else {}, endpoint.secrets)


def _life(expires_in: Any) -> timedelta | None:
    """Return how long a token lives; None if that is not said, or makes no sense."""
    try:
        seconds = float(expires_in) if isinstance(expires_in, str | int | float) and not isinstance(expires_in, bool) else 0.0
    except ValueError:
        return None
    return timedelta(seconds=min(seconds, _LONGEST_LIFE.total_seconds())) if seconds > 0 else None
