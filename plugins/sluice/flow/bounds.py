"""The bounds of a shard: its run and spec come in; what its pages are asked with, and up to when they are believed, go out.

Below, a run asks from its watermark on, less the lookback. Above, no mark counts that is higher than the supplier's own time
when the shard was begun, less the margin: what was changed by then is sure to be seen, what is changed later need not be.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from sluice import log_events
from sluice.mapping.watermarks import mark_order
from sluice.model.run import Mode, Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.ports import Clock, Page, PageRequest, Source

log: Final = structlog.get_logger()

_EARLIEST: Final = datetime(1000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""A supplier's clock may show anything; what is reckoned from it must not leave the calendar."""


@dataclass
class Bounds:
    """The bounds of one shard, in one try."""

    run: Run
    spec: SyncSpec
    clock: Clock
    until: datetime | None = None
    """None: the first page tells."""
    supplied_at: datetime | None = None

    def request(self, shard: Shard, source: Source) -> PageRequest:
        """Return what to ask for; a supplier whose time has to be known first is asked for that."""
        order, watermark = mark_order(self.spec), self.spec.watermark
        window, low = self.run.window, shard.watermark
        self.until, self.supplied_at = shard.until, shard.supplied_at
        if order is not None and low is not None:
            if order.is_mark(low):
                low = order.lower(low)
            else:
                log.warning(log_events.WATERMARK_UNUSABLE, watermark=low)
                low = None
        if watermark is not None and self.until is None and (shard.pages or self.spec.source.tells_time_first):
            # What an older release has begun was begun at any time since its run was admitted.
            self.until = self._sensible(None if shard.pages else source.now()) - watermark.margin
        # Only where what does not come says nothing: a full run that left out what has just changed would take it for gone.
        is_bounded = self.run.mode is Mode.INCREMENTAL and window is None
        return PageRequest(
            shard=shard.params,
            cursor=shard.cursor,
            watermark=low,
            window_start=window.start if window else None,
            window_end=window.end if window else None,
            until=order.until(self.until) if order is not None and self.until is not None and is_bounded else None,
        )

    def take(self, page: Page) -> None:
        """Take note of when the supplier has sent a page."""
        watermark = self.spec.watermark
        if watermark is None:
            return
        if self.until is None:
            self.until = self._sensible(page.supplied_at) - watermark.margin
        # A clock of our own may be behind the supplier's, and nothing comes from before the beginning.
        self.supplied_at = self._sensible(page.supplied_at or max(self.until, self.clock.now()))

    def _sensible(self, told: datetime | None) -> datetime:
        """Return the supplier's time; the run's beginning where it does not tell."""
        return max(_EARLIEST, min(told or self.run.created_at, _LATEST))

    @property
    def columns(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return {"until": self.until, "supplied_at": self.supplied_at}
