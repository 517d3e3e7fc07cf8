"""Answers that are no success in, with their status and the beginning of their body; errors that say what to mend out."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

import httpx2

from sluice.adapters.sources.transport.bodies import peek
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.errors import RateLimited, SluiceError, SupplierRefused, SupplierUnavailable
from sluice.guard.retries import http_date, pause_asked_for

_TRANSIENT: Final = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY)
_UNAUTHORISED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED)


def refusal(response: httpx2.Response, endpoint: Endpoint, asked: str) -> SluiceError:
    """Return what a response means that is neither a success nor followed. It is read, as far as it is quoted."""
    status = response.status_code
    said = endpoint.snippet(peek(response))
    what = f"{asked}: the supplier answered {named(status)}" + (f": {said}" if said else "")
    pause = pause_of(response)
    if status == HTTPStatus.TOO_MANY_REQUESTS or (status == HTTPStatus.SERVICE_UNAVAILABLE and pause is not None):
        wish = "" if pause is None else f" It asks for a pause of {pause:.0f} s."
        return RateLimited(f"{what}{wish}", retry_after=pause, status=status, url=asked, said=said)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _TRANSIENT:
        return SupplierUnavailable(what, status=status, url=asked, said=said)
    mend = (
        f"Check login, password and headers of connection {endpoint.conn_id}"
        if status in _UNAUTHORISED
        else f"Check what source of the spec asks for (path and query, or files), and connection {endpoint.conn_id}"
    )
    return SupplierRefused(f"{what}. {mend}", status=status, url=asked, said=said)


def named(status: int) -> str:
    """Return a status with its name, where it has one."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def pause_of(response: httpx2.Response) -> float | None:
    """Return the pause asked for, by the server's own clock where it tells the time."""
    now = http_date(response.headers.get("Date")) or datetime.now(UTC)
    return pause_asked_for(response.headers.get("Retry-After"), now)
