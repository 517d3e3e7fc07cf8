"""OAuth2 client credentials: a client's id and secret in; requests with an access token, renewed in time, out."""

import hashlib
import json
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Final

from cryptography.fernet import Fernet, InvalidToken

from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.adapters.sources.transport.token_endpoint import Client, TokenEndpoint
from sluice.ports import AccessTokenStore, Clock, SealedToken

_LARGEST_MARGIN: Final = timedelta(minutes=1)
_MARGIN: Final = 0.1
"""The last part of a token's life, in which it is renewed already: a request may take its time on the way."""

_SLACK: Final = timedelta(seconds=10)


@dataclass(frozen=True)
class _Known:
    """A token that this process has."""

    token: str = field(repr=False)
    until: float | None
    """When it has to be renewed, in seconds of a clock that nobody sets back; None: when it is refused."""


class OAuth2:
    """Proves who asks by a token that all workers share. Its repr shows nothing secret."""

    def __init__(
        self, client: Client, tokens: TokenEndpoint, endpoint: Endpoint, store: AccessTokenStore, clock: Clock
    ) -> None:
        """Ask for nothing yet."""
        self._tokens = tokens
        self._endpoint = endpoint
        self._store = store
        self._clock = clock
        self._patience = tokens.timeouts.connect + tokens.timeouts.read + _SLACK
        self._client = _shared_by(client, tokens.address)
        self._secret = client.secret
        self._known: _Known | None = None
        self._lock = threading.Lock()

    def sign(self, request: Request) -> Request:
        """Return the request with a token that should still be good, a new one if there is none."""
        with self._lock:
            if self._known is None or (self._known.until is not None and self._clock.elapsed() >= self._known.until):
                self._known = self._shared() or self._renewed(lambda token: token is None)
            return request.with_headers({"Authorization": f"Bearer {self._known.token}"})

    def renew(self, refused: Request) -> bool:
        """Replace the token that was refused; return False if the supplier issues none but that one."""
        spent = refused.headers.get("Authorization", "").removeprefix("Bearer ")
        with self._lock:
            if self._known is None or self._known.token == spent:
                self._known = self._renewed(lambda token: token is None or token == spent)
            return self._known.token != spent

    def _shared(self) -> _Known | None:
        """Return the token that all workers share; None if there is none that this one can read."""
        began = self._clock.elapsed()
        stored = self._store.get(self._client)
        token = None if stored is None else self._opened(stored.sealed)
        return None if stored is None or token is None else self._learnt(token, stored.good_for, began)

    def _renewed(self, is_spent: Callable[[str | None], bool]) -> _Known:
        """Return a token that is not spent: one that another worker has got meanwhile, or a new one."""
        began = self._clock.elapsed()
        stored = self._store.renew(
            self._client,
            is_spent=lambda sealed: is_spent(self._opened(sealed)),
            ask=self._asked,
            patience=self._patience,
        )
        return self._learnt(self._opened(stored.sealed) or "", stored.good_for, began)

    def _asked(self) -> SealedToken:
        began = self._clock.elapsed()
        issued = self._tokens.ask()
        self._endpoint.secrets.add_passing(issued.token)
        good_for = None
        if issued.expires_in is not None:
            margin = min(_LARGEST_MARGIN, issued.expires_in * _MARGIN)
            took = timedelta(seconds=self._clock.elapsed() - began)
            good_for = max(timedelta(0), issued.expires_in - margin - took)
        return SealedToken(self._sealer.encrypt(issued.token.encode()), good_for)

    def _learnt(self, token: str, good_for: timedelta | None, since: float) -> _Known:
        self._endpoint.secrets.add_passing(token)
        return _Known(token, None if good_for is None else since + good_for.total_seconds())

    def _opened(self, sealed: bytes) -> str | None:
        """Return what was sealed; None if the client's secret was another one then."""
        try:
            return self._sealer.decrypt(sealed).decode()
        except InvalidToken:
            return None

    @property
    def _sealer(self) -> Fernet:
        return _sealer_of(self._secret, self._client)


@lru_cache(maxsize=32)
def _sealer_of(secret: str, client: str) -> Fernet:
    """Return what seals tokens with a key made from the client's secret, by a function that makes guessing slow.

    It is made once a process: every shard is read by a source of its own.
    """
    key = hashlib.scrypt(secret.encode(), salt=client.encode(), n=2**14, r=8, p=1, dklen=32)
    return Fernet(urlsafe_b64encode(key))


def _shared_by(client: Client, address: str) -> str:
    """Return what tells tokens apart: whoever asks at the same place for the same has the same one."""
    asked_for = [address, client.id, client.auth.scope, sorted(client.auth.parameters.items())]
    return hashlib.sha256(json.dumps(asked_for).encode()).hexdigest()
