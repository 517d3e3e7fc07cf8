"""The declared way to prove who asks, and the connection, in; the proof of each request out."""

from base64 import b64encode

from sluice.adapters.sources.http.auth import Auth, ConnectionAuth
from sluice.adapters.sources.http.endpoint import Endpoint
from sluice.ports import ConnectionInfo


def proof_of_connection(info: ConnectionInfo, endpoint: Endpoint) -> Auth:
    """Return the proof of a connection that nothing more is said of: login and password, if it has any.

    An `Authorization` among its extra headers counts first.
    """
    is_told = any(name.lower() == "authorization" for name in endpoint.headers)
    return ConnectionAuth() if is_told or not (info.login or info.password) else _basic(info, endpoint)


def _basic(info: ConnectionInfo, endpoint: Endpoint) -> Auth:
    pair = b64encode(f"{info.login or ''}:{info.password or ''}".encode()).decode()
    endpoint.secrets.add(pair)
    return ConnectionAuth({"Authorization": f"Basic {pair}"})
