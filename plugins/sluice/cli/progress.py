"""Log events of a run in; a live display of its shards, or plain lines where there is no terminal, on stderr out."""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from structlog.typing import EventDict, WrappedLogger

from sluice import log_events
from sluice.cli.output import printable

_SECONDS_BETWEEN_LINES: Final = 5.0
_SECONDS_BETWEEN_LOOKS: Final = 0.5
_MOST_LINES: Final = 50
"""More shards than that are told of in one line, all together."""
_STATES: Final = {
    log_events.SHARD_CLAIMED: "fetching",
    log_events.SHARD_FETCHED: "fetched",
    log_events.SHARD_TRANSFORMED: "done",
    log_events.SHARD_FAILED: "failed",
}


@dataclass
class _Tally:
    """How far one shard has come in this process."""

    state: str = "waiting"
    pages: int = 0
    records: int = 0
    brought: int = 0
    """Records of this process alone: what an earlier one brought does not make this one faster."""
    began: float = field(default_factory=time.monotonic)
    told: float = field(default_factory=time.monotonic)
    task: TaskID | None = None

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.brought / max(time.monotonic() - self.began, 0.001)


class RunProgress:
    """A structlog processor that shows where an inline run stands, and passes every event on. Opened as a context."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Progress | None = None
        self._shards: dict[str, _Tally] = {}
        self._planned = 0
        self._all = _Tally()
        self._lock = threading.Lock()
        if console.is_terminal:
            columns = (SpinnerColumn(finished_text=" "), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            self._live = Progress(*columns, console=console, transient=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        """Take note of one event; several threads may bring some at a time."""
        with self._lock:
            name, shard = event.get("event"), event.get("shard")
            if name == log_events.STEP_STARTED and shard is None:
                self._tell(f"{event.get('step')} …")
            elif name == log_events.FLIGHT_AWAITED:
                self._tell(f"waits for run {event.get('owner')}, which works on the same request …")
            elif name in (log_events.SHARDS_PLANNED, log_events.SHARDS_ADOPTED):
                self._planned = int(event["shards"])
            elif isinstance(shard, str):
                self._note(str(name), shard, event)
        return event

    def _note(self, name: str, shard: str, event: EventDict) -> None:
        if name not in _STATES and name != log_events.PAGE_FETCHED:
            return
        tally = self._shards.setdefault(shard, _Tally())
        if name == log_events.PAGE_FETCHED:
            tally.state = "fetching"
            tally.pages += 1
            tally.brought += int(event["records"])
            tally.records += int(event["records"])
        else:
            tally.pages, tally.records = event.get("pages", tally.pages), event.get("records", tally.records)
            tally.state = _STATES[name]
        if self._planned > _MOST_LINES:
            self._show_all(tally)
        else:
            self._show(shard, tally, is_over=name != log_events.PAGE_FETCHED)

    def _show(self, shard: str, tally: _Tally, *, is_over: bool) -> None:
        rate = f", {tally.rate:,.0f}/s" if tally.state == "fetching" and tally.brought else ""
        text = printable(f"{shard}: {tally.state}, {tally.pages:,} pages, {tally.records:,} records{rate}").plain
        if self._live is not None:
            if tally.task is None:
                tally.task = self._live.add_task(text, total=1)
            finished = tally.state in ("done", "failed")
            self._live.update(tally.task, description=text, completed=int(finished))
        elif is_over or time.monotonic() - tally.told >= _SECONDS_BETWEEN_LINES:
            tally.told = time.monotonic()
            self._tell(text)

    def _show_all(self, tally: _Tally) -> None:
        """Show what all shards have come to, now and then, and once the last one is through."""
        apart = _SECONDS_BETWEEN_LINES if self._live is None else _SECONDS_BETWEEN_LOOKS
        is_last = tally.state in ("done", "failed") and len(self._shards) == self._planned
        if not is_last and time.monotonic() - self._all.told < apart:
            return
        self._all.told = time.monotonic()
        states = Counter(known.state for known in self._shards.values())
        records = sum(known.records for known in self._shards.values())
        failed = f", {states['failed']:,} failed" if states["failed"] else ""
        text = f"{states['done']:,} of {self._planned:,} shards done{failed}, {records:,} records"
        if self._live is None:
            self._tell(text)
            return
        if self._all.task is None:
            self._all.task = self._live.add_task(text, total=self._planned)
        self._live.update(self._all.task, description=text, completed=states["done"] + states["failed"])

    def _tell(self, text: str) -> None:
        self._console.print(printable(text), soft_wrap=True)
