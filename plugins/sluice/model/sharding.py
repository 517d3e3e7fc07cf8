"""Sharding: what a sync is cut into, so that each part is fetched, retried and resumed by itself."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, model_validator

from sluice.model.base import Frozen, ShardKey
from sluice.model.paging import Dotted
from sluice.model.scalars import Duration, Size, spell_duration
from sluice.model.shard import some_of
from sluice.model.source import SourceSpec

NAME_PATTERN = r"^[a-z][a-z0-9_]{0,62}$"

MOST_SHARDS = 10_000
"""More than so many are refused: each is a row of state, and a few queries."""

Salt = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{0,60}$")]
"""A text that decides how values are spread over buckets."""


def bucket_key(number: int, count: int, salt: str) -> ShardKey:
    """Return the key of a bucket. It says all that decides what is in it: where one of that changes, watermarks end."""
    salted = f" salted {salt}" if salt else ""
    return ShardKey(f"{number:0{len(str(count - 1))}} of {count}{salted}")


class _Sharding(Frozen):
    """What all ways of cutting a sync have in common."""

    @property
    def number(self) -> int | None:
        """How many shards there are; None: that shows when they are planned."""
        return None

    @property
    def shard_keys(self) -> tuple[ShardKey, ...]:
        """What the shards are called, if it is known how many there are."""
        return ()


class ShardValues(_Sharding):
    """One shard for each declared value."""

    kind: Literal["values"]
    name: str = Field(pattern=NAME_PATTERN, description="templates see the value as `shard.<name>`")
    values: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(
        min_length=1, max_length=MOST_SHARDS, description="the values"
    )

    @model_validator(mode="after")
    def _distinct(self) -> "ShardValues":
        if len(set(self.values)) < len(self.values):
            raise ValueError("each value may stand only once")
        return self

    @property
    def params(self) -> tuple[str, ...]:
        """What templates see below `shard`."""
        return (self.name,)

    @property
    def number(self) -> int:
        """How many shards there are."""
        return len(self.values)

    @property
    def shard_keys(self) -> tuple[ShardKey, ...]:
        """What the shards are called: as their values."""
        return tuple(ShardKey(value) for value in self.values)

    def __str__(self) -> str:
        """Return what there is a shard for, for people."""
        return f"{self.name} {some_of(self.values)}"


class ListedShards(_Sharding):
    """One shard for each value that a source of its own lists; with `buckets`, for each bucket of values."""

    kind: Literal["listed"]
    name: str = Field(
        pattern=NAME_PATTERN, description="templates see the value, or a bucket's joined by commas, as `shard.<name>`"
    )
    source: SourceSpec = Field(description="what lists them: any kind of source")
    value: Dotted = Field(description="where the value stands in a listed record")
    buckets: int | None = Field(default=None, ge=1, le=MOST_SHARDS, description="how many shards to spread the values over")
    salt: Salt = Field(default="", description="another salt spreads the values another way")

    @property
    def params(self) -> tuple[str, ...]:
        """What templates see below `shard`."""
        return (self.name,)

    def __str__(self) -> str:
        """Return what there is a shard for, for people."""
        spread = f", spread over {self.buckets:,} buckets" if self.buckets is not None else ""
        return f"each {self.name} that {self.source} lists{spread}"


class RangeShards(_Sharding):
    """One shard for each range of whole numbers, such as ids. What is asked for is `start` to `last`, or to below `end`."""

    kind: Literal["ranges"]
    start: int = Field(default=0, strict=True, description="the first number of the first range")
    last: int = Field(strict=True, description="the last number of the last range")
    size: int = Field(ge=1, strict=True, description="how many numbers a range has")
    column: str | None = Field(default=None, min_length=1, description="for a table: the column whose numbers these are")

    @model_validator(mode="after")
    def _few_enough(self) -> "RangeShards":
        if self.last < self.start:
            raise ValueError("last is below start: there is no range")
        if self.number > MOST_SHARDS:
            raise ValueError(f"these are more than {MOST_SHARDS} ranges: raise size")
        return self

    @property
    def params(self) -> tuple[str, ...]:
        """What templates see below `shard`."""
        return ("start", "end", "last")

    @property
    def number(self) -> int:
        """How many shards there are."""
        return (self.last - self.start) // self.size + 1

    @property
    def shard_keys(self) -> tuple[ShardKey, ...]:
        """What the shards are called: a key stays when there are more ranges, and changes with what it holds."""
        return tuple(ShardKey(f"{start}-{last}") for start, last in self.bounds())

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last number of each range."""
        for start in range(self.start, self.last + 1, self.size):
            yield start, min(start + self.size - 1, self.last)

    def __str__(self) -> str:
        """Return what there is a shard for, for people."""
        return f"{self.number:,} ranges of {self.size:,} numbers, from {self.start} to {self.last}"


class WindowShards(_Sharding):
    """One shard for each span of time, from `start` (or the run's window's) to the run's own begin (or its window's end)."""

    kind: Literal["windows"]
    every: Duration = Field(description="how long a span is")
    start: AwareDatetime | None = Field(default=None, description="when the first begins, where a run has no window")
    column: str | None = Field(default=None, min_length=1, description="for a table: the column whose times these are")

    @model_validator(mode="after")
    def _advances(self) -> "WindowShards":
        if not self.every:
            raise ValueError("every may not be nothing")
        return self

    @property
    def params(self) -> tuple[str, ...]:
        """What templates see below `shard`."""
        return ("start", "end")

    def spans(self, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
        """Return the half-open spans from `start` to `end`; the last ends there. Raises `ValueError` if they are too many."""
        number = -((start - end) // self.every)
        if number > MOST_SHARDS:
            raise ValueError(
                f"from {start.isoformat()} to {end.isoformat()} there are more than {MOST_SHARDS} spans: raise every"
            )
        edges = [start + place * self.every for place in range(number)]
        return list(zip(edges, [*edges[1:], end], strict=True))

    def __str__(self) -> str:
        """Return what there is a shard for, for people."""
        since = f" from {self.start.isoformat()} on" if self.start is not None else ""
        return f"each {spell_duration(self.every)}{since}, or of a run's window"


class BucketShards(_Sharding):
    """A fixed number of shards, each with its share of the keys: by a hash that the supplier, or for a table Sluice, takes."""

    kind: Literal["buckets"]
    count: int = Field(ge=1, le=MOST_SHARDS, description="how many shards there are")
    salt: Salt = Field(default="", description="for a table: another salt spreads the keys another way")

    @property
    def params(self) -> tuple[str, ...]:
        """What templates see below `shard`: the number of the bucket, from 0 on, and how many there are."""
        return ("bucket", "buckets")

    @property
    def number(self) -> int:
        """How many shards there are."""
        return self.count

    @property
    def shard_keys(self) -> tuple[ShardKey, ...]:
        """What the shards are called."""
        return tuple(self.key_of(number) for number in range(self.count))

    def key_of(self, number: int) -> ShardKey:
        """Return the key of a bucket."""
        return bucket_key(number, self.count, self.salt)

    def __str__(self) -> str:
        """Return what there is a shard for, for people."""
        return f"{self.count:,} buckets"


class FileShards(_Sharding):
    """One shard for each file; with `split`, for each part of one that can be read in parts."""

    kind: Literal["files"]
    split: Size | None = Field(default=None, description="how many bytes of a file a shard has at most")

    @property
    def params(self) -> tuple[str, ...]:
        """What templates see below `shard`."""
        return ("file",)

    def __str__(self) -> str:
        """Return what there is a shard for, for people."""
        return "each file" + (f", or part of it of {self.split:,} bytes" if self.split is not None else "")


ShardingSpec = Annotated[
    ShardValues | ListedShards | RangeShards | WindowShards | BucketShards | FileShards, Field(discriminator="kind")
]
"""How a sync is cut into shards."""
