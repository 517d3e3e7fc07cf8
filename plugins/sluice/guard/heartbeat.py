"""A sign of life: in goes what renews a lease; it is renewed while the block's work moves, and whoever works is told when not.

A heartbeat proves a living process, not progress. So it ends by itself, and for good, once the work has come no further for
the stage's `no_progress_timeout`: the lease runs out, and another worker may take over. The worker itself hears of it from
`moved`, or from `stopped` where it waits for something, and fails. One that is stuck where it can hear nothing is fenced
by its next write.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from datetime import timedelta
from typing import Any, Final, Self

import structlog

from sluice import log_events
from sluice.errors import Fenced, NoProgress, SluiceError
from sluice.model.scalars import spell_duration
from sluice.model.stage import StagePolicy
from sluice.ports import Clock

log: Final = structlog.get_logger()


class Heartbeat:
    """Beats from a thread of its own while its context is open."""

    def __init__(
        self,
        renew: Callable[[timedelta], None],
        policy: StagePolicy,
        clock: Clock,
        facts: Mapping[str, object],
        gap: timedelta = timedelta(0),
    ) -> None:
        """Say how to renew the lease for another `lease_ttl`, and which `facts` its end is logged with.

        `gap` is how long nobody may give a sign of life after this block, until the next task of the run begins.
        """
        self.stopped: Future[Any] = Future()
        """Fails with the reason as soon as the lease is renewed no more."""
        self._renew = renew
        self._policy = policy
        self._clock = clock
        self._facts = facts
        self._gap = gap
        self._moved_at = clock.elapsed()
        self._is_over = threading.Event()
        # The thread logs with the fields bound here.
        self._thread = threading.Thread(target=copy_context().run, args=(self._go_on,), name="sluice-heartbeat", daemon=True)

    def moved(self) -> None:
        """Note that the work came further; raise `NoProgress` or `Fenced` if the lease is renewed no more."""
        if self.stopped.done():
            self.stopped.result()
        self._moved_at = self._clock.elapsed()

    def beat(self) -> None:
        """Renew the lease once, unless the work stands still."""
        still = timedelta(seconds=self._clock.elapsed() - self._moved_at)
        if still > self._policy.no_progress_timeout:
            limit = spell_duration(self._policy.no_progress_timeout)
            self._stop(
                "NO_PROGRESS", NoProgress(f"no progress for {limit}: the request is given up for another worker to take")
            )
            return
        try:
            self._renew(self._policy.lease_ttl)
        except Fenced as error:
            self._stop("FENCED", error)
        except SluiceError as error:
            # The next beat may get through; if none does, the lease runs out by itself.
            self._tell(error)

    def _tell(self, error: SluiceError) -> None:
        log.warning(log_events.RENEW_FAILED, **self._facts, error=type(error).__name__, message=error.message)

    def _stop(self, reason: str, error: SluiceError) -> None:
        log.warning(log_events.STOP_RENEW, **self._facts, reason=reason, message=error.message)
        self.stopped.set_exception(error)

    def _go_on(self) -> None:
        while not self.stopped.done() and not self._is_over.wait(self._policy.heartbeat.total_seconds()):
            self.beat()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the thread, and keep the lease for the gap; who interrupts does not wait for a renewal under way."""
        self._is_over.set()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            return
        self._thread.join()
        if self._gap and not self.stopped.done():
            try:
                self._renew(self._policy.lease_ttl + self._gap)
            except Fenced:
                pass  # the work is done, and who has the flight now may keep it
            except SluiceError as error:
                self._tell(error)
