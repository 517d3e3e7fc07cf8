"""Paging by addresses of next pages, in the body or a header: the address asked for and the answer in; the next one out."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import unquote_plus, urljoin, urlsplit, urlunsplit

from pydantic import JsonValue

from sluice.adapters.sources.rest.paging.cursors import LONGEST_CURSOR, gone_on, header_text
from sluice.adapters.sources.rest.paging.stops import StopRules
from sluice.adapters.sources.rest.paging.stored import other_paging
from sluice.adapters.sources.rest.reading import Reading
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.errors import AnswerUnusable
from sluice.model.auth import AuthSpec
from sluice.model.paging import HeaderCursor, LinkHeader, NextUrl

_LINK: Final = re.compile(r"<([^>]*+)>((?:[^\",<]++|\"(?:[^\"\\]++|\\.)*+\"?+)*+)", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r";\s*+([^\s=;,\"]++)\s*+=\s*+(?:\"((?:[^\"\\]++|\\.)*+)\"|([^\s\",;]*+))", re.DOTALL)

_LONGEST_LINKS: Final = 4 * LONGEST_CURSOR
"""Characters; the header often has the first, the last and the previous page as well."""


class LinkPager:
    """Follows addresses, made whole before a shard keeps them; whether one may be asked is for the client to say."""

    def __init__(self, declared: NextUrl | LinkHeader | HeaderCursor, auth: AuthSpec | None, endpoint: Endpoint) -> None:
        self._declared = declared
        self._endpoint = endpoint
        self._secret = auth.query if auth is not None and auth.kind == "api_key" else None
        self._rules = StopRules(declared, endpoint)

    def request(self, first: Request, cursor: JsonValue) -> Request:
        """Return the first request, made of the address."""
        if cursor is None:
            return first
        url = _url_of(cursor)
        if url is None:
            raise other_paging(self._declared.kind)
        return replace(first, url=url)

    def after(self, cursor: JsonValue, reading: Reading) -> JsonValue:
        """Return the answer's next address."""
        found = self._found(reading)
        following = None if found is None else self._whole(found, reading)
        url = gone_on(self._rules, _url_of(cursor), following, reading)
        return None if url is None else {"url": url}

    def guess(self, cursor: JsonValue) -> JsonValue:
        """Return None."""

    def _found(self, reading: Reading) -> str | None:
        match self._declared.kind:
            case "next_url":
                found = self._rules.text_or_integer(reading, "path", LONGEST_CURSOR)
                if isinstance(found, int):
                    raise _no_address(self._declared.path, found, reading)
                return found
            case "link":
                links = header_text("Link", reading, _LONGEST_LINKS)
                return None if links is None else next(next_links(links), None)
            case "header":
                return header_text(self._declared.header, reading)

    def _whole(self, address: str, reading: Reading) -> str:
        """Return the address as seen from the one that was asked, without what proves who asks: that is added to each try."""
        try:
            parts = urlsplit(urljoin(reading.answer.url, address))
            base = urlsplit(self._endpoint.base)
            # A supplier behind a proxy often does not know that it is asked by https.
            if (parts.scheme, base.scheme) == ("http", "https") and parts.netloc.lower() == base.hostname:
                parts = parts._replace(scheme=base.scheme, netloc=base.netloc)
        except ValueError as exc:
            said = self._endpoint.snippet(address)
            raise AnswerUnusable(f"{reading.asked}: the next address {said} is none", url=reading.answer.shown) from exc
        if len(parts.geturl()) > LONGEST_CURSOR:
            raise AnswerUnusable(
                f"{reading.asked}: the next address is longer than {LONGEST_CURSOR} characters", url=reading.answer.shown
            )
        kept = [pair for pair in parts.query.split("&") if unquote_plus(pair.partition("=")[0]) != self._secret]
        return urlunsplit(parts._replace(query="&".join(kept), fragment=""))


def next_links(header: str) -> Iterator[str]:
    """Yield the targets of a `Link` header whose relation is `next` (RFC 8288), in order."""
    for link in _LINK.finditer(header):
        attributes: dict[str, str] = {}
        for attribute in _ATTRIBUTE.finditer(link[2]):
            attributes.setdefault(attribute[1].lower(), attribute[2] if attribute[2] is not None else attribute[3])
        if "anchor" not in attributes and "next" in attributes.get("rel", "").lower().split():
            yield link[1].strip()


def _no_address(place: str, found: int, reading: Reading) -> AnswerUnusable:
    return AnswerUnusable(
        f"{reading.asked}: at source.cursor.path `{place}` stands the number {found}, which is no address: if a "
        "parameter takes it, declare kind: body",
        url=reading.answer.shown,
    )


def _url_of(cursor: JsonValue) -> str | None:
    url = cursor.get("url") if isinstance(cursor, dict) else None
    return url if isinstance(url, str) else None
