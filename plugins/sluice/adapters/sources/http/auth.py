"""What proves to a supplier who asks: a request in, the same with its proof out."""

from typing import Protocol

from sluice.adapters.sources.http.request import Request


class Auth(Protocol):
    """A way to prove who asks."""

    def sign(self, request: Request) -> Request:
        """Return the request with its proof, made anew for each try. Raises what asking for a token raises."""

    def renew(self) -> bool:
        """Give up the proof that was just refused; return whether another try has a better one."""


class ConnectionAuth:
    """The headers of the connection itself, which the client sends with every request."""

    def sign(self, request: Request) -> Request:
        """Return the request as it is."""
        return request

    def renew(self) -> bool:
        """Return False: there is nothing else to show."""
        return False
