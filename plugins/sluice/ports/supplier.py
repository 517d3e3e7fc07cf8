"""A supplier, page by page."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue

from sluice.model.base import ShardKey
from sluice.model.run import Mode, Window
from sluice.model.shard import ShardPlan


@dataclass(frozen=True)
class Page:
    """One response of a source."""

    body: bytes
    records: int
    cursor: JsonValue
    """Where to go on after this page; None: nothing follows."""
    supplied_at: datetime | None = None
    """The supplier's own time when it answered; None: it does not tell."""
    mark: str | None = None
    """What tells this state of all that the shard has from any later one, such as a file's ETag; None: only its records do."""


@dataclass(frozen=True)
class PageRequest:
    """Which pages of a shard to yield."""

    shard: Mapping[str, str]
    cursor: JsonValue
    """None: from the beginning."""
    watermark: str | None
    """What is at or above this is wanted; None: everything."""
    window_start: datetime | None
    window_end: datetime | None
    until: str | None = None
    """What is above this is not wanted yet; None: there is no such bound."""


@dataclass(frozen=True)
class ShardQuestion:
    """For what the shards of a sync are wanted."""

    mode: Mode
    window: Window | None
    begun_at: datetime
    """When the run was admitted: the same, however often it is asked."""
    marks: Mapping[ShardKey, str]
    """How far each shard was published; empty unless the run is incremental."""


class ShardFinder(Protocol):
    """Asks a supplier what there is to be cut into shards."""

    def find(self, question: ShardQuestion, moved: Callable[[], None]) -> list[ShardPlan]:
        """Return the shards, each key once; call `moved` whenever the supplier has answered.

        Raises what `Source.pages` raises, and `ShardsUnusable`.
        """


class Source(Protocol):
    """A supplier."""

    def now(self) -> datetime | None:
        """Return the supplier's own time; None if it does not tell. Raises what `pages` raises."""

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages behind `request.cursor`, in order, until nothing follows.

        Raises `SupplierUnavailable`, `RateLimited` (both after its own bounded retries), `SupplierRefused`, `CursorExpired` if
        `request.cursor` is not good any more, or a kind of `AnswerUnusable`.
        """


@dataclass(frozen=True)
class RequestFacts:
    """What a signer of the team's own may sign of a request."""

    method: str
    url: str
    """The whole address."""
    content: bytes = b""
    """The body as it is sent."""
