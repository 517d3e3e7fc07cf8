"""A supplier, page by page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue


@dataclass(frozen=True)
class Page:
    """One response of a source."""

    body: bytes
    records: int
    cursor: JsonValue
    """Where to go on after this page; None: nothing follows."""


@dataclass(frozen=True)
class PageRequest:
    """Which pages of a shard to yield."""

    shard: Mapping[str, str]
    cursor: JsonValue
    """None: from the beginning."""
    watermark: str | None
    window_start: datetime | None
    window_end: datetime | None


class Source(Protocol):
    """A supplier."""

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages behind `request.cursor`, in order, until nothing follows.

        Raises `SupplierUnavailable`, `RateLimited` (both after its own bounded retries), `SupplierRefused` or a kind of
        `AnswerUnusable`.
        """
