"""Telling of progress: pages of a shard come in; now and then a word of how far its open chunk has come goes out.

Nothing depends on it. What cannot be told is dropped, and the step goes on.
"""

from typing import Final

import structlog

from sluice import log_events
from sluice.errors import SluiceError
from sluice.model import metric
from sluice.model.progress import TOLD_EVERY, Progress
from sluice.model.shard import Shard
from sluice.ports import Page, Services

log: Final = structlog.get_logger()


class ToldProgress:
    """Adds up the pages of one attempt at a shard, and tells of them at most every `TOLD_EVERY`."""

    def __init__(self, services: Services, shard: Shard) -> None:
        self._services = services
        self._open = _of(shard)
        self._told_at = services.clock.elapsed()
        self._is_troubled = False

    def received(self, page: Page, shard: Shard) -> None:
        """Add a page of the open chunk of `shard`, which is the row as of its last checkpoint."""
        if self._open.chunk != shard.chunks:
            self._open = _of(shard)
        self._open = self._open.model_copy(
            update={
                "pages": self._open.pages + 1,
                "records": self._open.records + page.records,
                "bytes": self._open.bytes + len(page.body),
            }
        )
        now = self._services.clock.elapsed()
        if now - self._told_at >= TOLD_EVERY.total_seconds():
            self._told_at = now
            self._tell()

    def _tell(self) -> None:
        try:
            self._services.progress.tell(self._open)
        except SluiceError as error:
            if not self._is_troubled:
                log.warning(log_events.PROGRESS_DROPPED, error=type(error).__name__, message=error.message)
            self._is_troubled = True
            self._services.metrics.count(metric.PROGRESS_DROPPED)


def _of(shard: Shard) -> Progress:
    return Progress(run=shard.run, shard=shard.key, token=shard.token, chunk=shard.chunks)
