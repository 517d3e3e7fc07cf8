"""Where requests may go: an address that a supplier gave in; the same, checked, out, or `StrayAddress`."""

from collections.abc import Sequence
from dataclasses import dataclass

import httpx2

from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.errors import ConnectionInvalid, SpecInvalid, StrayAddress


@dataclass(frozen=True)
class Target:
    """An address that may be asked."""

    url: httpx2.URL
    is_own: bool
    """Whether it is on the declared host, the only one that gets to see what proves who asks."""


class Addresses:
    """The declared host, and the others that its supplier may lead to."""

    def __init__(self, endpoint: Endpoint, allow_hosts: Sequence[str] = ()) -> None:
        """Read the addresses; raise `ConnectionInvalid` or `SpecInvalid` if there can be none such."""
        self._endpoint = endpoint
        self._allowed = allow_hosts
        for host in allow_hosts:
            try:
                httpx2.URL(f"https://{host}")
            except httpx2.InvalidURL as exc:
                raise SpecInvalid([f"source.allow_hosts: {host!r} is no host"]) from exc
        try:
            self._base = httpx2.URL(endpoint.base)
        except httpx2.InvalidURL as exc:
            raise ConnectionInvalid(f"connection {endpoint.conn_id}: the host is no address") from exc

    def given(self, address: str, seen_at: httpx2.URL, asked: str) -> Target:
        """Return an address that an answer names, where it leads seen from the one that was asked.

        Raises `StrayAddress` unless it is on the declared host or one of those allowed; from https to http nothing leads, nor
        to another host an address that repeats what proves who asks.
        """
        try:
            url = seen_at.join(address).copy_with(fragment=None)
        except (httpx2.InvalidURL, ValueError) as exc:
            raise StrayAddress(f"{asked}: the supplier leads to an unreadable address", url=asked) from exc
        host = self._endpoint.snippet(url.netloc.decode("ascii", "replace"))
        if url.scheme not in ("http", "https") or not url.raw_host:
            said = self._endpoint.snippet(address)
            raise StrayAddress(f"{asked}: the supplier leads to {said}, which is no address of HTTP", url=asked)
        if url.userinfo:
            raise StrayAddress(f"{asked}: the supplier leads to an address of {host} with a login in it", url=asked)
        if url.scheme == "http" and "https" in (seen_at.scheme, self._base.scheme):
            raise StrayAddress(f"{asked}: the supplier leads from https to http, at {host}", url=asked)
        if not (self._is_own(url) or self._is_allowed(url)):
            raise StrayAddress(
                f"{asked}: the supplier leads to {host}, which is not the host of connection {self._endpoint.conn_id}: "
                "name it in source.allow_hosts if it may be asked",
                url=asked,
            )
        if not self._is_own(url) and self._endpoint.secrets.are_in(str(url)):
            raise StrayAddress(
                f"{asked}: the supplier leads to {host}, with what proves who asks in the address, which no other host gets: "
                "have it sent in a header (source.auth)",
                url=asked,
            )
        return Target(url, self._is_own(url))

    def _is_own(self, url: httpx2.URL) -> bool:
        return (url.raw_host, url.port) == (self._base.raw_host, self._base.port)

    def _is_allowed(self, url: httpx2.URL) -> bool:
        named = (httpx2.URL(f"{url.scheme}://{host}") for host in self._allowed)
        return any((url.raw_host, url.port) == (one.raw_host, one.port) for one in named)
