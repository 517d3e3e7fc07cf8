"""Several requests at a time: requests in the order in which they are wanted in; their answers, in that order, out."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Self

from sluice.adapters.sources.http.client import Answer
from sluice.adapters.sources.http.request import Request

Ask = Callable[[Request, bool], Answer]
"""Sends a request; the flag says whether it is that for the first page."""


class AnswersAhead:
    """Asks for what is expected next while the last answer is dealt with, as far as it may. One thread uses it."""

    def __init__(self, ask: Ask, at_once: int) -> None:
        """Begin nothing yet."""
        self._ask = ask
        self._at_once = at_once
        self._executor = ThreadPoolExecutor(at_once, "sluice-pages") if at_once > 1 else None
        self._coming: deque[tuple[Request, Future[Answer]]] = deque()

    def to(self, request: Request, *, is_first: bool) -> Answer:
        """Return the answer to a request, or raise what asking raised. What was expected in its place is given up."""
        if self._coming and self._coming[0][0] == request:
            return self._coming.popleft()[1].result()
        self._give_up()
        return self._ask(request, is_first)

    def expect(self, requests: Iterable[Request]) -> None:
        """Begin to ask for what is wanted next, in that order, none of it for the first page, as many as may be at once."""
        if self._executor is None:
            return
        for place, request in zip(range(self._at_once), requests, strict=False):
            if place < len(self._coming) and self._coming[place][0] == request:
                continue
            while len(self._coming) > place:
                self._coming.pop()[1].cancel()
            # The threads log with the fields bound here.
            asking = self._executor.submit(copy_context().run, self._ask, request, False)
            self._coming.append((request, asking))

    def _give_up(self) -> None:
        while self._coming:
            self._coming.pop()[1].cancel()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Begin nothing more, and wait for the requests that are under way."""
        self._give_up()
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
