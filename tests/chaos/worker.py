"""A worker under observation: an errand in, its log events, one by one, and its end out.

It runs in a process of its own and uses the package as any caller does. What it logs goes over a wire to the test; at the
events that the test has marked it stands still, inside the call that logs, until it is told to go on, or killed.
"""

import logging
import resource
import threading
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import structlog
from structlog.typing import EventDict, WrappedLogger

from sluice.adapters.clock import SystemClock
from sluice.errors import ConnectionInvalid, SluiceError
from sluice.flow.inline import resume_inline, run_inline
from sluice.model.base import RunId
from sluice.model.metric import Metric
from sluice.model.run import RunRequest
from sluice.ports import ConnectionInfo, Services
from sluice.settings import Settings
from sluice.wiring import open_services

_SPARE_BYTES: Final = 2 << 20


@dataclass(frozen=True)
class Mark:
    """An event to stand still at: the nth of that name, or the nth of all."""

    nth: int
    event: str | None = None


@dataclass(frozen=True)
class Errand:
    """What a worker shall do."""

    include: Path
    cache: Path
    connections: Mapping[str, ConnectionInfo]
    work: RunRequest | RunId
    """A request to run, or a run to go on with behind its gate."""
    marks: frozenset[Mark] = frozenset()
    clock_jumps: Mapping[Mark, timedelta] = field(default_factory=dict)
    """Where the worker's clock is set, and by how much."""
    largest_file: int | None = None
    """No file of the worker's can grow beyond so many bytes: its disk is full."""
    lacks_memory_at: Mark | None = None
    """From there on the worker gets no more memory than it has, but for some megabytes."""


@dataclass(frozen=True)
class Logged:
    """Something was logged."""

    event: str
    is_held: bool


@dataclass(frozen=True)
class Ended:
    """The errand is done, or was given up with an error."""

    run: str | None
    status: str | None
    error: str | None = None
    message: str = ""


class Observer:
    """A structlog processor that tells of each event, and stands still at marked ones."""

    def __init__(self, errand: Errand, wire: Connection, clock: "JumpingClock") -> None:
        self._errand = errand
        self._wire = wire
        self._clock = clock
        self._seen: Counter[str | None] = Counter()
        self._turn = threading.Lock()

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        """Tell of the event; nothing is printed."""
        name = str(event["event"])
        with self._turn:
            self._seen[name] += 1
            self._seen[None] += 1
            reached = {Mark(self._seen[None]), Mark(self._seen[name], name)}
            for mark in reached & set(self._errand.clock_jumps):
                self._clock.jump(self._errand.clock_jumps[mark])
            if self._errand.lacks_memory_at in reached:
                _allow_no_more_memory()
            is_held = bool(reached & self._errand.marks)
            self._wire.send(Logged(name, is_held))
            if is_held:
                self._wire.recv()
        raise structlog.DropEvent


class JumpingClock(SystemClock):
    """The clock of a machine whose wall clock is set by somebody from time to time."""

    def __init__(self) -> None:
        self._off = timedelta(0)

    def jump(self, by: timedelta) -> None:
        """Set it."""
        self._off += by

    def now(self) -> datetime:
        """Return what it shows."""
        return super().now() + self._off


class _Uncounted:
    """Figures are nobody's business here; without this they would go to the log."""

    def count(self, metric: Metric, number: int = 1, **labels: str) -> None:
        """Forget it."""

    def gauge(self, metric: Metric, value: float, **labels: str) -> None:
        """Forget it."""

    def timing(self, metric: Metric, span: timedelta, **labels: str) -> None:
        """Forget it."""


class _Known:
    """Connections that the errand brought along."""

    def __init__(self, known: Mapping[str, ConnectionInfo]) -> None:
        self._known = known

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return the connection."""
        if conn_id not in self._known:
            raise ConnectionInvalid(f"no connection {conn_id}")
        return self._known[conn_id]


def work(errand: Errand, wire: Connection) -> None:
    """Do the errand; tell how it ended."""
    clock = JumpingClock()
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, Observer(errand, wire, clock)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        cache_logger_on_first_use=False,
    )
    if errand.largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (errand.largest_file, errand.largest_file))
    wire.send(_done(errand, clock))


def _allow_no_more_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + _SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _done(errand: Errand, clock: JumpingClock) -> Ended:
    try:
        with open_services(
            Settings(include=errand.include, cache=errand.cache), _Known(errand.connections), _Uncounted()
        ) as services:
            run = _go(replace(services, clock=clock), errand.work)
            return Ended(run.id, str(run.status))
    except SluiceError as error:
        return Ended(None, None, type(error).__name__, error.message)
    except Exception as error:  # noqa: BLE001 - the test shall see what it was
        return Ended(None, None, type(error).__name__, traceback.format_exc())


def _go(services: Services, errand: RunRequest | RunId) -> Any:
    return run_inline(services, errand) if isinstance(errand, RunRequest) else resume_inline(services, errand)
