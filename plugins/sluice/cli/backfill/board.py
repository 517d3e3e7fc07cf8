"""Spans of a backfill in; a live table of them, or a line for each change where there is no terminal, on stderr out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from sluice.cli.backfill.plan import span_document
from sluice.cli.backfill.spans import spell_runs, spell_span
from sluice.cli.output import printable, table
from sluice.model.backfill import AT_WORK, UNSETTLED, Span, Standing
from sluice.model.lifecycle import ShardStatus
from sluice.model.progress import shown
from sluice.ports import Services

_AROUND: Final = 8
"""Lines of a terminal that the rows of the table leave free."""
_URGENCY: Final = (
    Standing.RUNNING,
    Standing.WAITING,
    Standing.FAILED,
    Standing.PARTIAL,
    Standing.CANCELLED,
    Standing.QUEUED,
    Standing.MISSING,
    Standing.SUCCEEDED,
)


@dataclass(frozen=True)
class Row:
    """A span, and how far its run has come."""

    span: Span
    done: int = 0
    """Shards that have come in."""
    shards: int = 0
    records: int = 0
    rate: float | None = None
    """Records a second, while they come in."""
    left: timedelta | None = None
    """How long it takes yet, going by the shards that have come in."""
    is_at_work: bool = False
    """Whether its run is at work in this process, whatever state says of it yet."""

    @property
    def standing(self) -> Standing:
        """How things stand with it."""
        return Standing.RUNNING if self.is_at_work else self.span.standing

    def document(self) -> dict[str, Any]:
        """Return the row for programs."""
        return {**span_document(self.span), "shards_done": self.done, "shards": self.shards, "records": self.records}


class Rows:
    """Reads how far the runs of spans have come; what is at rest is read once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._kept: dict[str, Row] = {}

    def of(self, spans: Sequence[Span]) -> list[Row]:
        """Return a row for each span."""
        now = self._services.clock.now()
        return [self._of(span, now) for span in spans]

    def _of(self, span: Span, now: datetime) -> Row:
        run = span.run
        if run is None:
            return Row(span)
        is_at_work = span.standing in AT_WORK
        known = self._kept.get(run.id)
        if known is not None and known.span == span and not is_at_work:
            return known
        worked_by = run.worked_by
        shards = shown(self._services.shards.of(worked_by), self._services.progress.of(worked_by))
        done = sum(shard.status in (ShardStatus.SUCCEEDED, ShardStatus.SKIPPED) for shard in shards)
        records, elapsed = sum(shard.records for shard in shards), now - run.created_at
        comes_in = is_at_work and done < len(shards) and elapsed > timedelta(0)
        row = Row(
            span,
            done=done,
            shards=len(shards),
            records=records,
            rate=records / elapsed.total_seconds() if comes_in and records else None,
            left=elapsed * (len(shards) - done) / done if comes_in and done else None,
        )
        self._kept[run.id] = row
        return row


class Board:
    """Shows rows as they change. Opened as a context."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, transient=True, auto_refresh=False) if console.is_terminal else None
        self._told: dict[str, Standing] = {}
        self._began: datetime | None = None
        self._over_before = 0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, rows: Sequence[Row], now: datetime) -> None:
        """Show how things stand; where there is no terminal, what stands otherwise than when it was told last."""
        total = self._total(rows, now)
        if self._live is not None:
            self._live.update(Group(drawn(_most_urgent(rows, self._console.height - _AROUND)), total), refresh=True)
            return
        for row in rows:
            name = spell_span(row.span.window)
            if self._told.get(name, row.standing) != row.standing:
                self.tell(f"{name}: {_in_words(row)}")
            self._told[name] = row.standing

    def tell(self, text: str) -> None:
        """Say something beside the table."""
        self._console.print(printable(text), soft_wrap=True)

    def _total(self, rows: Sequence[Row], now: datetime) -> RenderableType:
        counts = Counter(row.standing for row in rows)
        over = sum(number for standing, number in counts.items() if standing not in (*AT_WORK, Standing.MISSING))
        if self._began is None:
            self._began, self._over_before = now, over
        ahead, ended = len(rows) - over, over - self._over_before
        told = [summary_of(rows)]
        rates = [row.rate for row in rows if row.rate is not None]
        if rates:
            told.append(f"{sum(rates):,.0f} records/s")
        if ended > 0 and ahead:
            told.append(f"about {spell_left((now - self._began) * ahead / ended)} left")
        return Text(", ".join(told), style="bold")


def drawn(rows: Sequence[Row]) -> RenderableType:
    """Return the rows as a table."""
    lines = [
        [
            spell_span(row.span.window),
            row.standing.value,
            f"{row.done:,} of {row.shards:,}" if row.shards else None,
            f"{row.records:,}" if row.shards else None,
            f"{row.rate:,.0f}/s" if row.rate is not None else None,
            spell_left(row.left) if row.left is not None else None,
        ]
        for row in rows
    ]
    return table(["span", "status", "shards", "records", "rate", "left"], lines)


def summary_of(rows: Sequence[Row]) -> str:
    """Say how many spans stand how, and how many records that is."""
    counts = Counter(row.standing for row in rows)
    told = [f"{counts[standing]:,} {standing}" for standing in _URGENCY if counts[standing]]
    return f"{spell_runs(len(rows))}: {', '.join(told)}; {sum(row.records for row in rows):,} records"


def spell_left(time: timedelta) -> str:
    """Return a time that is not exact anyhow, in its two largest units."""
    seconds = round(time.total_seconds())
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return f"{hours}h {minutes % 60:02}m"
    return f"{minutes}m {seconds % 60:02}s" if minutes else f"{seconds}s"


def _in_words(row: Row) -> str:
    failure = row.span.run.failure if row.span.run else None
    parts = [row.standing.value]
    if row.shards:
        parts.append(f"{row.done:,} of {row.shards:,} shards, {row.records:,} records")
    if failure is not None and row.standing in UNSETTLED:
        parts.append(failure.message)
    return ", ".join(parts)


def _most_urgent(rows: Sequence[Row], room: int) -> list[Row]:
    """Return as many rows as there is room for, in their order: what is at work before what is over."""
    by_urgency = sorted(range(len(rows)), key=lambda index: (_URGENCY.index(rows[index].standing), index))
    return [rows[index] for index in sorted(by_urgency[: max(room, 1)])]
