"""A run in; what happens to it, as server-sent events from where the browser left off, out.

Each event of the journal comes once, in order, its number as its id. How the run stands comes between them without one: it is
the same whoever asks, and the last word counts. A stream lives half a minute; then the browser comes back by itself, saying the
last id it has seen. So rights are asked for again, and no server waits long for its streams when it stops.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock
from typing import Any, Final

from anyio import CancelScope
from fastapi import HTTPException
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from sluice.errors import Retryable
from sluice.model.base import RunId
from sluice.model.journal import JournalEvent
from sluice.model.standing import Standing
from sluice.ports import Services

_MOST: Final = 32
"""So many streams a process carries at a time: each looks at the state once a second."""
_BATCH: Final = 500
_RETRY: Final = 1_000
_RETRY_LATER: Final = 10_000
"""Milliseconds until the browser comes back: after a stream that has ended, and where the state cannot be reached."""
_TOLD_AGAIN: Final = 5
"""After so many looks a run at work is told of again, though nothing moved: its rate has fallen."""


class Live:
    """The streams of this process."""

    def __init__(
        self, services: Callable[[], AbstractContextManager[Services]], *, apart: float = 1.0, life: float = 30.0
    ) -> None:
        """State is looked at every so many seconds, and a stream ends after so many."""
        self._shared = _Shared(services)
        self._apart = apart
        self._life = life
        self._open = 0

    def answer(self, run: RunId, after: int) -> Response:
        """Return the stream of what happens behind an event; refuse where there are too many already."""
        if self._open >= _MOST:
            raise HTTPException(
                503, "Too many pages follow runs just now; this one can be loaded again.", {"Retry-After": "15"}
            )
        return StreamingResponse(self.messages(run, after), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def messages(self, run: RunId, after: int) -> AsyncIterator[str]:
        """Yield the messages of one stream."""
        self._open += 1
        stack = ExitStack()
        try:
            services = await run_in_threadpool(stack.enter_context, self._shared.opened())
            yield f"retry: {_RETRY}\n\n"
            async for message in self._follow(services, run, after):
                yield message
        except Retryable:
            yield f"retry: {_RETRY_LATER}\n\n"
        finally:
            self._open -= 1
            with CancelScope(shield=True):
                await run_in_threadpool(stack.close)

    async def _follow(self, services: Services, run: RunId, after: int) -> AsyncIterator[str]:
        clock = asyncio.get_running_loop().time
        ends, told, silent = clock() + self._life, None, 0
        while True:
            standing, events = await run_in_threadpool(_look, services, run, after)
            for event in events:
                after = event.seq
                yield _event(event)
            silent += 1
            if standing.model_dump(exclude={"at"}) != told or silent >= _TOLD_AGAIN:
                told, silent = standing.model_dump(exclude={"at"}), 0
                yield _message("standing", _told(standing))
            if len(events) == _BATCH:
                continue
            if standing.is_at_rest and not events:
                yield _message("rest", {})
                return
            if clock() >= ends:
                return
            await asyncio.sleep(self._apart)


class _Shared:
    """Services that all streams have in common: they hold as many connections as look at a time, and not one each."""

    def __init__(self, services: Callable[[], AbstractContextManager[Services]]) -> None:
        self._services = services
        self._lock = Lock()
        self._users = 0
        self._stack = ExitStack()

    @contextmanager
    def opened(self) -> Iterator[Services]:
        """Yield them: opened for the first who wants them, and closed after the last."""
        with self._lock:
            if not self._users:
                self._present = self._stack.enter_context(self._services())
            self._users += 1
        try:
            yield self._present
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._stack.close()


def _look(services: Services, run: RunId, after: int) -> tuple[Standing, list[JournalEvent]]:
    """Return how the run stands, then the next events: those that have brought it there are among them."""
    return services.events.standing(run), services.events.after(run, after, _BATCH)


def _event(event: JournalEvent) -> str:
    return f"id: {event.seq}\ndata: {event.model_dump_json(exclude={'run'})}\n\n"


def _message(kind: str, facts: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(facts)}\n\n"


def _told(standing: Standing) -> dict[str, Any]:
    return {
        "status": standing.status,
        "step": standing.step,
        "shards": {status: brought.shards for status, brought in standing.brought.items()},
        "pages": standing.pages,
        "records": standing.records,
        "expected": standing.expected,
    }
