"""How a run is doing at a glance: what its shards come to, how fast it goes, and how much is left."""

from datetime import datetime, timedelta

from pydantic import Field

from sluice.model.base import Frozen
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunStatus, ShardStatus, Step


class Brought(Frozen):
    """What the shards of one status come to; open chunks included."""

    shards: int
    pages: int
    records: int


class Standing(Frozen):
    """A run as it stood at an instant, which is of the clock of the store that told of it."""

    at: datetime
    began: datetime | None = Field(description="when its first shard was claimed; None: none was, or it is not known any more")
    status: RunStatus
    step: Step
    brought: dict[ShardStatus, Brought] = Field(description="of each status that any shard has")

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing happens to it any more by itself."""
        return self.status in FINAL_RUN_STATUSES

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return sum(brought.shards for brought in self.brought.values())

    @property
    def pages(self) -> int:
        """How many pages they have brought."""
        return sum(brought.pages for brought in self.brought.values())

    @property
    def records(self) -> int:
        """How many records they have brought."""
        return sum(brought.records for brought in self.brought.values())

    @property
    def expected(self) -> int | None:
        """How many records there will be, should the shards at work bring as many as those that are done; None: none is."""
        done = self.brought.get(ShardStatus.SUCCEEDED)
        if done is None:
            return None
        at_work = [self.brought[status] for status in (ShardStatus.PENDING, ShardStatus.RUNNING) if status in self.brought]
        to_come = sum(max(0, done.records * some.shards // done.shards - some.records) for some in at_work)
        return self.records + to_come

    @property
    def rate(self) -> float | None:
        """How many records a second it has brought since its first shard was claimed; None: that is over, or not begun."""
        if self.began is None or self.status is not RunStatus.RUNNING or self.at <= self.began:
            return None
        return self.records / (self.at - self.began).total_seconds()

    def left(self) -> timedelta | None:
        """Return how long its shards will take at that rate; None: nobody can tell."""
        if not self.rate or self.expected is None:
            return None
        return timedelta(seconds=round((self.expected - self.records) / self.rate))
