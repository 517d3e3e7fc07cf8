"""Bytes to and from an HTTP server: one exchange in; the open response out, or an error named after what broke."""

import logging
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Final, TypeVar

import httpx2

from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.errors import ConnectionInvalid, SupplierRefused, SupplierUnavailable
from sluice.model.stage import Timeouts

Cause = TypeVar("Cause", bound=BaseException)

_KEPT_FOR: Final = 60.0
"""Seconds for which a connection that nobody uses is kept; one that the server has closed is noticed."""

_LONGEST_ASKED: Final = 200
"""Characters of an address that may be wrong because it is too long."""

for _name in ("httpcore2", "hpack"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # at debug they show headers, the secret ones as well


@cache
def _trust() -> ssl.SSLContext:
    """Return what this machine trusts, which takes a while to read."""
    return ssl.create_default_context()


class Wire:
    """The connections to one server, which are kept, with HTTP/2 where it is offered: no cookies, no redirects, no proxies.

    Threads may use them at once.
    """

    def __init__(self, endpoint: Endpoint, timeouts: Timeouts) -> None:
        """Open nothing yet."""
        self._endpoint = endpoint
        self._timeouts = timeouts
        self._own = threading.local()
        self._opened: list[httpx2.HTTPTransport] = []

    def close(self) -> None:
        """Close all connections."""
        for transport in self._opened:
            transport.close()

    @property
    def _transport(self) -> httpx2.HTTPTransport:
        """What this thread sends by. Of HTTP/2 the library mixes up what several threads begin on one connection."""
        if not hasattr(self._own, "transport"):
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=_KEPT_FOR)
            self._own.transport = httpx2.HTTPTransport(verify=_trust(), trust_env=False, http2=True, limits=limits)
            self._opened.append(self._own.transport)
        transport: httpx2.HTTPTransport = self._own.transport
        return transport

    def open(
        self, method: str, url: httpx2.URL | str, headers: Mapping[str, str], content: bytes | None, asked: str
    ) -> httpx2.Response:
        """Return the response once its head is there; header values are Latin-1.

        `asked` is the request as messages may show it.
        """
        waits = httpx2.Timeout(self._timeouts.read.total_seconds(), connect=self._timeouts.connect.total_seconds(), pool=None)
        encoded = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
        with self.named(asked):
            request = httpx2.Request(method, url, headers=encoded, content=content, extensions={"timeout": waits.as_dict()})
            return self._transport.handle_request(request)

    @contextmanager
    def named(self, asked: str) -> Iterator[None]:
        """Let what breaks while a response is awaited or read leave as `SupplierUnavailable` or `ConnectionInvalid`.

        An address that nobody can be asked at is a `SupplierRefused`.
        """
        conn_id = self._endpoint.conn_id
        try:
            yield
        except httpx2.ConnectTimeout as exc:
            limit = self._timeouts.connect.total_seconds()
            raise SupplierUnavailable(f"{asked}: no connection within {limit:g} s", url=asked) from exc
        except httpx2.TimeoutException as exc:
            limit = self._timeouts.read.total_seconds()
            raise SupplierUnavailable(f"{asked}: nothing was received for {limit:g} s", url=asked) from exc
        except httpx2.ConnectError as exc:
            if untrusted := _behind(exc, ssl.SSLCertVerificationError):
                why = self._endpoint.snippet(untrusted.verify_message)
                raise ConnectionInvalid(
                    f"{asked}: the certificate of the host of connection {conn_id} is not trusted here: {why}"
                ) from exc
            raise SupplierUnavailable(f"{asked}: {_unconnected(exc, conn_id)}", url=asked) from exc
        except httpx2.InvalidURL as exc:
            raise SupplierRefused(f"{asked[:_LONGEST_ASKED]}: cannot be asked at all: {exc}", url=asked) from exc
        except UnicodeError as exc:
            raise ConnectionInvalid(f"connection {conn_id}: the host is no address") from exc
        except (httpx2.HTTPError, OSError) as exc:
            broke = f"the connection broke: {self._endpoint.snippet(str(exc) or type(exc).__name__)}"
            # What the supplier sent may be quoted all along the chain of causes.
            raise SupplierUnavailable(f"{asked}: {broke}", url=asked) from None


def _unconnected(error: httpx2.ConnectError, conn_id: str) -> str:
    if _behind(error, socket.gaierror):
        return f"the name of the host of connection {conn_id} is not known"
    if _behind(error, ssl.SSLError):
        return "the encrypted connection failed"
    return "the server cannot be connected to"


def _behind(error: BaseException, kind: type[Cause]) -> Cause | None:
    """Return an error of that kind that is behind this one: what wraps it carries it as cause, context or argument."""
    behind: list[object] = [error]
    while behind:
        one = behind.pop()
        if isinstance(one, kind):
            return one
        if isinstance(one, BaseException):
            behind += [one.__cause__, one.__context__, *one.args]
    return None
