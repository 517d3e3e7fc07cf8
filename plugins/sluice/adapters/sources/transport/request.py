"""A request as it is put together: method, address, headers and body, before anything is sent."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote, unquote_plus, urlencode, urlsplit, urlunsplit

from pydantic import JsonValue

_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e\xa0-\xff\t]*")


@dataclass(frozen=True)
class Request:
    """One request to a supplier, with or without what proves who asks. Its repr shows nothing that might."""

    path: str
    """Below the base address of the endpoint, unless `url` says otherwise."""
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    method: str = "GET"
    body: Mapping[str, JsonValue] | None = field(default=None, repr=False)
    """Sent as JSON."""
    form: Mapping[str, str] | None = field(default=None, repr=False)
    """Sent as a form, in the place of a body."""
    url: str | None = field(default=None, repr=False)
    """A whole address, which the supplier gave: it takes the place of path and query."""

    def with_query(self, /, **parameters: str) -> "Request":
        """Return the request with further query parameters, or other values for those it has."""
        if self.url is None:
            return replace(self, query={**self.query, **parameters})
        parts = urlsplit(self.url)
        kept = [pair for pair in parts.query.split("&") if pair and unquote_plus(pair.partition("=")[0]) not in parameters]
        query = "&".join([*kept, urlencode(parameters, quote_via=quote)])
        return replace(self, url=urlunsplit(parts._replace(query=query)))

    def with_headers(self, headers: Mapping[str, str]) -> "Request":
        """Return the request with further headers, or other values for those it has, in whatever case it names them."""
        taken = {name.lower() for name in headers}
        kept = {name: value for name, value in self.headers.items() if name.lower() not in taken}
        return replace(self, headers={**kept, **headers})

    def content(self) -> tuple[str, bytes] | None:
        """Return what is sent: its content type and its bytes; None if nothing is."""
        if self.form is not None:
            return "application/x-www-form-urlencoded", urlencode(self.form).encode()
        if self.body is not None:
            return "application/json", json.dumps(self.body).encode()
        return None


def is_header_value(text: str) -> bool:
    """Whether a header may have this value: one line of Latin-1 without control characters."""
    return _HEADER_VALUE.fullmatch(text) is not None
