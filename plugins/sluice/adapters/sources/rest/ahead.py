"""Several requests at a time: requests in the order in which they are wanted in; their answers, in that order, out."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import NamedTuple, Self

from sluice.adapters.sources.transport.client import Answer
from sluice.adapters.sources.transport.request import Request

Ask = Callable[[Request, bool], Answer]
"""Sends a request; the flag says whether it is that for the first page."""


class _Coming(NamedTuple):
    request: Request
    answer: Future[Answer]
    is_early: bool


class AnswersAhead:
    """Asks for what is expected next while the last answer is dealt with, as far as it may. One thread uses it."""

    def __init__(self, ask: Ask, at_once: int) -> None:
        """Begin nothing yet."""
        self._ask = ask
        self._at_once = at_once
        self._executor = ThreadPoolExecutor(at_once, "sluice-pages") if at_once > 1 else None
        self._coming: deque[_Coming] = deque()

    def to(self, request: Request, *, is_first: bool) -> tuple[Answer, bool]:
        """Return the answer to a request, and whether that was sent before the answer in front of it was there.

        Raises what asking raised. What was expected in its place is given up.
        """
        if self._coming and self._coming[0].request == request:
            coming = self._coming.popleft()
            return coming.answer.result(), coming.is_early
        self._give_up()
        return self._ask(request, is_first), False

    def expect(self, requests: Iterable[Request]) -> None:
        """Begin to ask for what is wanted next, in that order, none of it for the first page, as many as may be at once."""
        if self._executor is None:
            return
        for place, request in zip(range(self._at_once), requests, strict=False):
            if place < len(self._coming) and self._coming[place].request == request:
                continue
            while len(self._coming) > place:
                self._coming.pop().answer.cancel()
            # The threads log with the fields bound here.
            asking = self._executor.submit(copy_context().run, self._ask, request, False)
            self._coming.append(_Coming(request, asking, is_early=place > 0))

    def _give_up(self) -> None:
        while self._coming:
            self._coming.pop().answer.cancel()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Begin nothing more, and wait for the requests that are under way."""
        self._give_up()
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
