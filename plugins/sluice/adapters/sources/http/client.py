"""Requests to a supplier in; the bodies of good answers out, or an error named after what happened."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationValueError,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
    SSLError,
)

from sluice.adapters.sources.http.auth import Auth, ConnectionAuth
from sluice.adapters.sources.http.bodies import ACCEPTED_ENCODINGS, peek, read_body
from sluice.adapters.sources.http.endpoint import Endpoint
from sluice.adapters.sources.http.request import Request
from sluice.errors import ConnectionInvalid, RateLimited, SluiceError, SupplierRefused, SupplierUnavailable
from sluice.guard.restraint import Restraint
from sluice.guard.retries import http_date, patiently, pause_asked_for
from sluice.model.stage import StagePolicy

_TRANSIENT: Final = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY)
_UNAUTHORISED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED)


@dataclass(frozen=True)
class Answer:
    """The body of a successful answer."""

    body: bytes
    content_type: str
    shown: str
    """The address it came from, fit for messages."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name in lower case."""
    supplied_at: datetime | None = None
    """The supplier's own time when it answered, where it tells."""


class HttpClient:
    """Keeps connections to one supplier, as long as its context lasts."""

    def __init__(self, endpoint: Endpoint, policy: StagePolicy, restraint: Restraint, auth: Auth | None = None) -> None:
        """Open nothing yet; without `auth`, what proves who asks are the headers of the connection."""
        self._endpoint = endpoint
        self._policy = policy
        self._restraint = restraint
        self._auth = auth or ConnectionAuth()
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json", "User-Agent": "sluice"})
        for name, value in endpoint.headers.items():
            headers[name] = value
        headers["Accept-Encoding"] = ACCEPTED_ENCODINGS
        timeouts = policy.timeouts
        self._pool = urllib3.PoolManager(
            headers=headers,
            retries=False,
            timeout=urllib3.Timeout(connect=timeouts.connect.total_seconds(), read=timeouts.read.total_seconds()),
        )

    def __enter__(self) -> Self:
        """Return the client; connections open when they are needed."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connections."""
        self._pool.clear()

    def send(self, request: Request) -> Answer:
        """Return the answer, repeating the request as the policy allows while the supplier is unavailable."""
        # Longer than without progress no shard is waited for.
        within = min(self._policy.timeouts.step, self._policy.no_progress_timeout)
        return patiently(lambda: self._restraint.ask(lambda: self._once(self._auth.sign(request))), self._policy.retry, within)

    def _once(self, request: Request) -> Answer:
        url = self._endpoint.url(request.path, request.query)
        shown = self._endpoint.shown(url)
        with self._translated(shown):
            response = self._pool.request("GET", url, preload_content=False, redirect=False, decode_content=False)
            try:
                if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
                    raise self._refusal(response, shown)
                body = read_body(response, self._policy.max_body, shown)
            finally:
                response.close()  # gives nothing up where the body was read to its end: that connection is kept
        return Answer(
            body,
            self._endpoint.snippet(response.headers.get("Content-Type", "")) or "no content type",
            shown,
            {name.lower(): value for name, value in response.headers.items()},
            http_date(response.headers.get("Date")),
        )

    def _refusal(self, response: urllib3.BaseHTTPResponse, shown: str) -> SluiceError:
        status = response.status
        said = self._endpoint.snippet(peek(response))
        what = f"GET {shown}: the supplier answered {_named(status)}" + (f": {said}" if said else "")
        pause = _pause(response)
        if status == HTTPStatus.TOO_MANY_REQUESTS or (status == HTTPStatus.SERVICE_UNAVAILABLE and pause is not None):
            wish = "" if pause is None else f" It asks for a pause of {pause:.0f} s."
            return RateLimited(f"{what}{wish}", retry_after=pause, status=status, url=shown)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _TRANSIENT:
            return SupplierUnavailable(what, status=status, url=shown)
        return SupplierRefused(f"{what}. {self._mend(response)}", status=status, url=shown)

    def _mend(self, response: urllib3.BaseHTTPResponse) -> str:
        status = response.status
        conn_id = self._endpoint.conn_id
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            host = self._endpoint.snippet(_host_of(response.headers.get("Location", "")))
            return f"It redirects to {host}, which Sluice does not follow: put the final address into connection {conn_id}"
        if status in _UNAUTHORISED:
            return f"Check login, password and headers of connection {conn_id}"
        return f"Check source.path and source.query of the spec, and connection {conn_id}"

    @contextmanager
    def _translated(self, shown: str) -> Iterator[None]:
        limits = self._policy.timeouts
        try:
            yield
        except ReadTimeoutError as exc:
            raise self._unavailable(shown, f"nothing was received for {limits.read.total_seconds():g} s") from exc
        except NameResolutionError as exc:
            raise self._unavailable(shown, f"the name of the host of connection {self._endpoint.conn_id} is not known") from exc
        except NewConnectionError as exc:
            raise self._unavailable(shown, "the supplier cannot be connected to") from exc
        except ConnectTimeoutError as exc:
            raise self._unavailable(shown, f"no connection within {limits.connect.total_seconds():g} s") from exc
        except LocationValueError as exc:
            raise ConnectionInvalid(f"connection {self._endpoint.conn_id}: the host is no address") from exc
        except SSLError as exc:
            if _is_mistrust(exc):
                raise ConnectionInvalid(
                    f"GET {shown}: the certificate of the host of connection {self._endpoint.conn_id} is not trusted here"
                ) from exc
            raise self._unavailable(shown, "the encrypted connection failed") from exc
        except (HTTPError, OSError) as exc:
            raise self._unavailable(shown, f"the connection broke: {self._endpoint.snippet(str(exc))}") from exc

    def _unavailable(self, shown: str, what: str) -> SupplierUnavailable:
        return SupplierUnavailable(f"GET {shown}: {what}", url=shown)


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _pause(response: urllib3.BaseHTTPResponse) -> float | None:
    """Return the pause asked for, by the supplier's own clock where it tells the time."""
    now = http_date(response.headers.get("Date")) or datetime.now(UTC)
    return pause_asked_for(response.headers.get("Retry-After"), now)


def _host_of(location: str) -> str:
    try:
        return urlsplit(location).hostname or "another path of the same host"
    except ValueError:
        return "an unreadable address"


def _is_mistrust(error: SSLError) -> bool:
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in (*error.args, error.__cause__))
