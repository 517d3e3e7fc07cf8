"""A request in, a refusal or nothing out: what no page of ours would have sent, and headers that lock every answer down."""

from typing import Final
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sluice.errors import NotFound

OURS: Final = "X-Sluice"
"""The header of every request that `sluice.js` makes: no form, link or picture of another site can send it."""

_HEADERS: Final = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    b" form-action 'self'; frame-ancestors 'self'; base-uri 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class LockedDown:
    """Adds to each answer the headers it does not bring itself; a stream passes as it comes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def locked(message: Message) -> None:
            if message["type"] == "http.response.start":
                brought = {name.lower() for name, _ in message["headers"]}
                missing = [(name, value) for name, value in _HEADERS.items() if name not in brought]
                message = {**message, "headers": [*message["headers"], *missing]}
            await send(message)

        await self._app(scope, receive, locked)


def names_something(request: Request) -> None:
    """Refuse an address with characters that no name holds; Postgres takes no text with a NUL in it.

    An object may be called by any other character, so that what stands in a query is no name of ours.
    """
    names = (request.url.path, *map(str, request.path_params.values()))
    if not all(name.isprintable() for name in names) or any("\0" in text for text in request.query_params.values()):
        raise NotFound("there is nothing of that name")


def same_origin(request: Request) -> None:
    """Refuse a request to change something that a page of another site may have made the browser send."""
    if request.headers.get(OURS) != "1":
        raise HTTPException(403, "This was not sent by a page of Sluice; its pages need JavaScript to change anything.")
    site = request.headers.get("sec-fetch-site")
    if site is None:  # an old browser, or a site without TLS
        site = (
            "same-origin" if urlsplit(request.headers.get("origin", "")).netloc == request.headers.get("host") else "cross-site"
        )
    if site != "same-origin":
        raise HTTPException(403, "This was sent by a page of another site, which may change nothing here.")
