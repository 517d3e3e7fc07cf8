"""Signatures: a request, the connection's key and secret, and the time in; the headers that prove who asks out."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request, is_header_value
from sluice.adapters.user_code import where_raised
from sluice.errors import CodeFailed
from sluice.model.auth import SignedAuth
from sluice.model.header_names import is_header_name
from sluice.ports import Clock, RequestFacts

Signer = Callable[[RequestFacts, str, str, datetime], Mapping[str, str]]
"""What a team writes: facts of a request, key, secret and the instant in, headers out."""


def sha256_signer(auth: SignedAuth) -> Signer:
    """Return the signer that is built in: SHA-256, in hexadecimal, of key, secret and the seconds since 1970 in a row."""

    def sign(_: RequestFacts, key: str, secret: str, at: datetime) -> Mapping[str, str]:
        signature = hashlib.sha256(f"{key}{secret}{int(at.timestamp())}".encode()).hexdigest()
        return {auth.key_header: key, auth.signature_header: signature}

    return sign


@dataclass(frozen=True)
class Signing:
    """Signs each try anew. Its repr shows neither key nor secret."""

    endpoint: Endpoint
    key: str = field(repr=False)
    secret: str = field(repr=False)
    signer: Signer
    clock: Clock
    by: str
    """The signer's name, for messages."""

    def sign(self, request: Request) -> Request:
        """Return the request with its signature; raise `CodeFailed` if the signer fails, or gives none that can be sent."""
        address = request.url or self.endpoint.url(request.path, request.query)
        content = request.content()
        facts = RequestFacts(request.method, address, content[1] if content else b"")
        headers = self._signed(facts)
        if not _are_headers(headers):
            raise CodeFailed(
                f"source.auth.by: {self.by} has to return a mapping of names of headers to texts of one line in Latin-1"
            )
        self.endpoint.secrets.add_passing(*headers.values())
        return request.with_headers(headers)

    def _signed(self, facts: RequestFacts) -> Mapping[str, str]:
        try:
            return self.signer(facts, self.key, self.secret, self.clock.now())
        except (Exception, SystemExit) as exc:  # noqa: BLE001  only the team could say what there is
            # Without the error itself, whose message and whose causes may hold the secret.
            said = self.endpoint.snippet(f"{type(exc).__name__}: {exc}")
            raise CodeFailed(f"source.auth.by: {self.by} failed at {where_raised(exc)}: {said}") from None

    def renew(self, refused: Request) -> bool:  # noqa: ARG002  whatever was refused, the next signature is no better
        """Return False: each signature is new."""
        return False


def _are_headers(answer: Any) -> bool:
    return isinstance(answer, Mapping) and all(
        isinstance(name, str) and is_header_name(name) and isinstance(value, str) and is_header_value(value)
        for name, value in answer.items()
    )
