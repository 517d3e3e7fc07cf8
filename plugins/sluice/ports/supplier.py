"""A supplier, page by page."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import Any, Protocol, Self, TypeVar

from pydantic import JsonValue

from sluice.model.base import ShardKey
from sluice.model.run import Mode, Window
from sluice.model.shard import ShardPlan
from sluice.model.stage import StagePolicy
from sluice.ports.surroundings import ConnectionInfo

T = TypeVar("T")


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

    @classmethod
    def of(cls, records: Iterable[Any], cursor: JsonValue = None, supplied_at: datetime | None = None) -> Self:
        """Return a page of records: mappings of what JSON has, and decimals, dates, aware instants and UUIDs, all exactly.

        Raises `TypeError` or `ValueError` for what cannot be written exactly, such as NaN.
        """
        listed = list(records)
        return cls(_exact_json(listed), len(listed), cursor, supplied_at)


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
    most: int | None = None
    """No more records of a page than so many are wanted, so that a source may spare itself the rest; None: all of them."""


@dataclass(frozen=True)
class ShardQuestion:
    """For what the shards of a sync are wanted."""

    mode: Mode
    window: Window | None
    begun_at: datetime
    """When the run was admitted: the same, however often it is asked."""
    marks: Mapping[ShardKey, str]
    """How far each shard was published; empty unless the run goes on from there."""


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


class Ask(Protocol):
    """Makes calls to a supplier with the manners of the stage."""

    def __call__(self, call: Callable[[], T]) -> T:
        """Return what `call` returns: at the stage's pace, behind its breaker, and repeated while the supplier is unavailable.

        Unavailable is what raises `SupplierUnavailable`, or has a lost connection or a time-out behind what it raises.
        """


@dataclass(frozen=True)
class SourceContext:
    """What a source of the team's own is made with."""

    connection: ConnectionInfo | None
    """The Airflow connection that the spec names."""
    options: Mapping[str, JsonValue] = field(repr=False)
    """What the spec gives it besides."""
    policy: StagePolicy
    """Its `timeouts` are for the source to keep."""
    ask: Ask


def _exact_json(records: list[Any]) -> bytes:
    import msgspec

    body = msgspec.json.Encoder(decimal_format="number").encode(records)
    # What JSON has no number for comes out as null, without a word.
    if b"null" in body and _has_no_number(msgspec.to_builtins(records, builtin_types=(bytes,))):
        raise ValueError("a record has a float that is no number (NaN or infinite), which JSON has not: say None, or a text")
    return body


def _has_no_number(value: Any) -> bool:
    match value:
        case float():
            return not isfinite(value)
        case dict():
            return any(map(_has_no_number, value.values()))
        case list() | tuple() | set() | frozenset():
            return any(map(_has_no_number, value))
        case _:
            return False
