"""What proves to a supplier who asks: a request in, the same with its proof out."""

from collections.abc import Mapping
from typing import Protocol

from sluice.adapters.sources.transport.request import Request


class Auth(Protocol):
    """A way to prove who asks. Threads may share it."""

    def sign(self, request: Request) -> Request:
        """Return the request with its proof, made anew for each try. Raises what asking for a token raises."""

    def renew(self, refused: Request) -> bool:
        """Give up the proof of a request, as signed, that was answered with 401; return whether another try has a better one.

        Raises what asking for a token raises.
        """


class ConnectionAuth:
    """What the connection itself says, the same with every request. Its repr shows nothing."""

    def __init__(self, headers: Mapping[str, str] | None = None, query: Mapping[str, str] | None = None) -> None:
        """Prove it by headers, by query parameters, or by nothing."""
        self._headers = headers or {}
        self._query = query or {}

    def sign(self, request: Request) -> Request:
        """Return the request with these headers and parameters."""
        signed = request.with_headers(self._headers) if self._headers else request
        return signed.with_query(**self._query) if self._query else signed

    def renew(self, refused: Request) -> bool:  # noqa: ARG002  whatever was refused, nothing is better
        """Return False: there is nothing else to show."""
        return False
