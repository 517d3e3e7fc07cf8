"""The declared way to prove who asks, and the connection, in; the proof of each request out."""

from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from sluice.adapters.sources.transport.auth import Auth, ConnectionAuth
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.oauth2 import OAuth2
from sluice.adapters.sources.transport.request import is_header_value
from sluice.adapters.sources.transport.signed import Signing, sha256_signer
from sluice.adapters.sources.transport.token_endpoint import Client, TokenEndpoint
from sluice.adapters.user_code import load
from sluice.errors import ConnectionInvalid
from sluice.guard.credentials import lacks
from sluice.model.auth import ApiKeyAuth, AuthSpec, BasicAuth, BearerAuth, NoAuth, OAuth2Auth, SignedAuth
from sluice.model.stage import StagePolicy
from sluice.ports import AccessTokenStore, Clock, ConnectionInfo


def proof_of_connection(info: ConnectionInfo, endpoint: Endpoint) -> Auth:
    """Return the proof of a connection that nothing more is said of: login and password, if it has any.

    An `Authorization` among its extra headers counts first.
    """
    is_told = any(name.lower() == "authorization" for name in endpoint.headers)
    return ConnectionAuth() if is_told or not (info.login or info.password) else _basic(info, endpoint)


@dataclass(frozen=True)
class Proofs:
    """What it takes to prove who asks, in every way there is."""

    tokens: AccessTokenStore
    clock: Clock
    include: Path
    """Where a team keeps its own signers."""

    def open(self, auth: AuthSpec | None, info: ConnectionInfo, endpoint: Endpoint, policy: StagePolicy) -> Auth:
        """Return the proof; nothing is asked for yet.

        Its secrets are hidden from now on in what the endpoint shows. Raises `ConnectionInvalid` if the connection lacks what
        it takes, `SpecInvalid` if there is no such signer.
        """
        if (missing := lacks(auth, info)) is not None:
            raise ConnectionInvalid(f"connection {info.conn_id} needs {missing}", conn_id=info.conn_id)
        match auth:
            case None:
                return proof_of_connection(info, endpoint)
            case NoAuth():
                return ConnectionAuth()
            case BasicAuth():
                return _basic(info, endpoint)
            case BearerAuth():
                return ConnectionAuth({"Authorization": _sendable(info, f"Bearer {info.password}")})
            case ApiKeyAuth():
                return _api_key(auth, info)
            case OAuth2Auth() | SignedAuth():
                return self._made_anew(auth, info, endpoint, policy)
            case _:
                assert_never(auth)

    def _made_anew(self, auth: OAuth2Auth | SignedAuth, info: ConnectionInfo, endpoint: Endpoint, policy: StagePolicy) -> Auth:
        if auth.kind == "oauth2":
            client = Client(auth, info.login or "", info.password or "")
            tokens = TokenEndpoint(client, endpoint, policy.timeouts)
            return OAuth2(client, tokens, endpoint, self.tokens, self.clock)
        signer = sha256_signer(auth) if auth.by is None else load(auth.by, self.include, "source.auth.by")
        return Signing(endpoint, info.login or "", info.password or "", signer, self.clock, auth.by or "it")


def _basic(info: ConnectionInfo, endpoint: Endpoint) -> Auth:
    pair = b64encode(f"{info.login or ''}:{info.password or ''}".encode()).decode()
    endpoint.secrets.add(pair)
    return ConnectionAuth({"Authorization": f"Basic {pair}"})


def _api_key(auth: ApiKeyAuth, info: ConnectionInfo) -> Auth:
    key = info.password or ""
    if auth.header is not None:
        return ConnectionAuth({auth.header: _sendable(info, key)})
    return ConnectionAuth(query={auth.query or "": key})


def _sendable(info: ConnectionInfo, value: str) -> str:
    if not is_header_value(value):
        raise ConnectionInvalid(
            f"connection {info.conn_id}: its password cannot be sent in a header: it has to be one line of Latin-1 characters",
            conn_id=info.conn_id,
        )
    return value
