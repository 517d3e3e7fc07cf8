"""A request as it is put together: method, address, headers and body, before anything is sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue


@dataclass(frozen=True)
class Request:
    """One request to a supplier, still without what proves who asks."""

    path: str
    """Below the base address of the endpoint, unless `url` says otherwise."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    body: Mapping[str, JsonValue] | None = None
    """Sent as JSON."""
    url: str | None = None
    """A whole address, which the supplier gave: it takes the place of path and query."""

    def with_query(self, **parameters: str) -> "Request":
        """Return the request with further query parameters, or other values for those it has."""
        return replace(self, query={**self.query, **parameters})
