"""A plan in; its runs, one after the other in this process, and how they stand, out."""

import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from structlog.typing import EventDict, WrappedLogger

from sluice import log_events
from sluice.cli.backfill.board import Board, Row, Rows
from sluice.cli.backfill.plan import Plan
from sluice.cli.backfill.spans import spell_span
from sluice.cli.logs import configure_logs
from sluice.errors import (
    ArtifactsUnavailable,
    SchemaOutdated,
    SluiceError,
    SpecInvalid,
    StateUnavailable,
    TargetUnavailable,
    UsageInvalid,
)
from sluice.model.backfill import UNSETTLED, Act, Span
from sluice.ports import Services

_EVERY_RUN: Final = (
    ArtifactsUnavailable,
    SchemaOutdated,
    SpecInvalid,
    StateUnavailable,
    TargetUnavailable,
    UsageInvalid,
)
"""What stops one run and would stop every other one, too."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_BETWEEN_SHOWS: Final = timedelta(seconds=0.5)


def work_off(services: Services, plan: Plan, board: Board, *, verbose: bool) -> list[Span]:
    """Run what is to be begun or resumed, and follow what is at work, in the order of the plan; return the spans.

    A run that fails stops no other. Raises what would stop them all.
    """
    from sluice.flow.inline import run_inline

    watch = _Watch(services, plan, board)
    configure_logs(verbose=verbose, listener=watch)
    watch.look()
    for span in plan.of(Act.START, Act.RESUME, Act.REDO, Act.FOLLOW):
        watch.turn_to(span)
        try:
            run_inline(services, plan.asked.request_of(span))
        except _EVERY_RUN:
            raise
        except SluiceError as error:
            watch.look()
            if watch.span.standing not in UNSETTLED:  # else the table says why
                board.tell(f"{spell_span(span.window)}: {error.message}")
            continue
        watch.look()
    return [row.span for row in watch.rows]


@dataclass
class _Watch:
    """A structlog processor that shows how the run at work comes along, and passes every event on."""

    services: Services
    plan: Plan
    board: Board
    rows: list[Row] = field(default_factory=list)
    _at: int = 0
    _began: datetime = _NEVER
    _shown: datetime = _NEVER
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def span(self) -> Span:
        """The span whose run is at work."""
        return self.rows[self._at].span

    def look(self) -> None:
        """Show how things stand by what state has of them."""
        rows, now = Rows(self.services).of(self.plan.asked.look(self.services)), self.services.clock.now()
        with self._lock:  # not before: to read state is told as an event, too
            self.rows = rows
            self._show(now)

    def turn_to(self, span: Span) -> None:
        """Let the run of this span be the one at work from now on."""
        with self._lock:
            self._at = [row.span.window for row in self.rows].index(span.window)
            self._began = self.services.clock.now()
            self.rows[self._at] = Row(span, is_at_work=True)
            self._show(self._began)

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        """Take note of one event; several threads may bring some at a time."""
        name, now = event.get("event"), self.services.clock.now()
        with self._lock:
            row = self.rows[self._at] if self.rows else None
            if row is None or not row.is_at_work:
                return event
            if name in (log_events.SHARDS_PLANNED, log_events.SHARDS_ADOPTED):
                row = replace(row, shards=int(event["shards"]))
            elif name == log_events.SHARD_TRANSFORMED:
                row = replace(row, done=row.done + 1)
            elif name == log_events.PAGE_FETCHED:
                records = row.records + int(event["records"])
                row = replace(row, records=records, rate=records / max((now - self._began).total_seconds(), 0.001))
            self.rows[self._at] = row
            if now - self._shown >= _BETWEEN_SHOWS:
                self._show(now)
        return event

    def _show(self, now: datetime) -> None:
        self._shown = now
        self.board.show(self.rows, now)
