"""The breaker before a supplier: a try goes in; it is made and its outcome comes out, unless the supplier is to be left alone.

All workers of a stage share the breaker of a host. While it is *closed*, tries pass and are counted. It *opens* once a large
enough share of them failed within the policy's window; then no try is made for `open_for`. After that it is *half-open*: one
try of one worker is let through. If the supplier answers, the breaker closes; if not, it opens again.

A healthy supplier costs at most one statement a second and worker: successes are added up and told with the next look at the
breaker, or with the next failure. A worker that dies takes the successes of its last second along. What is lost then makes the
share of failures look larger, never smaller: at worst the supplier is left alone once for no reason.
"""

import threading
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Final, NoReturn, TypeVar

import structlog

from sluice import log_events
from sluice.errors import CodeFailed, RateLimited, SluiceError, SupplierResting, SupplierUnavailable
from sluice.model import metric
from sluice.model.breaker import Breaker, BreakerState
from sluice.model.scalars import spell_duration
from sluice.model.stage import BreakerPolicy, StagePolicy
from sluice.ports import BreakerStore, Clock, Metrics

T = TypeVar("T")

FEWEST_TRIES: Final = 5
"""Of fewer tries no share is worth anything."""

FRESH_SECONDS: Final = 1.0
"""How long a worker believes what it has read."""

log: Final = structlog.get_logger()


def state_of(breaker: Breaker) -> BreakerState:
    """Return what the breaker lets through."""
    if breaker.resting_until is None:
        return BreakerState.CLOSED
    return BreakerState.OPEN if breaker.at < breaker.resting_until else BreakerState.HALF_OPEN


def is_probed(breaker: Breaker) -> bool:
    """Whether somebody makes the one try after a rest, and may still take his time."""
    return breaker.probed_until is not None and breaker.at < breaker.probed_until


def has_failed_too_often(breaker: Breaker, policy: BreakerPolicy) -> bool:
    """Whether what was counted is enough to open the breaker."""
    return breaker.tries >= FEWEST_TRIES and breaker.failures >= policy.failure_rate * breaker.tries


def is_failure(error: SluiceError) -> bool:
    """Whether the error says that the supplier is in trouble: time-outs, broken connections, 408, 425 and all of 5xx.

    Whoever answers 429 is well, and asks for manners; and too long a queue for a slot is our own. A refusal or garbage is an
    answer as well, of no use to wait for.
    """
    if isinstance(error, RateLimited):
        status: int = error.facts.get("status", 0)
        return status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return isinstance(error, SupplierUnavailable)


class SharedBreaker:
    """One worker's view of the breaker of a host and a stage. Its threads may use it at once."""

    def __init__(
        self, store: BreakerStore, clock: Clock, metrics: Metrics, *, host: str, stage: str, policy: StagePolicy
    ) -> None:
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._host = host
        self._stage = stage
        self._policy = policy
        self._longest_try = policy.timeouts.connect + policy.timeouts.read
        self._lock = threading.RLock()
        self._successes = 0
        self._known: Breaker | None = None
        self._known_since = 0.0

    def require_rested(self) -> None:
        """Raise `SupplierResting` while the supplier is left alone."""
        breaker = self._look()
        if state_of(breaker) is BreakerState.OPEN:
            self._refuse(breaker)

    def watch(self, call: Callable[[], T]) -> T:
        """Return what one try returns; raise `SupplierResting` if it may not be made, or if its failure opens the breaker."""
        probe = self._enter()
        try:
            result = call()
        except CodeFailed:
            raise  # nobody was asked
        except SluiceError as error:
            if is_failure(error):
                self._failed(error, probe)
            else:
                self._answered(probe)
            raise
        self._answered(probe)
        return result

    def _enter(self) -> datetime | None:
        """Return None if all tries may pass, and this one's mark if it is the one that is let through."""
        breaker = self._look()
        if state_of(breaker) is BreakerState.HALF_OPEN and not is_probed(breaker):
            claimed = self._store.claim_probe(self._host, self._stage, self._longest_try)
            if claimed is not None:
                self._changed(claimed, BreakerState.HALF_OPEN)
                return claimed.probed_until
            breaker = self._look_again()
        if state_of(breaker) is not BreakerState.CLOSED:
            self._refuse(breaker)
        return None

    def _answered(self, probe: datetime | None) -> None:
        with self._lock:
            if probe is None:
                self._successes += 1
            elif (closed := self._store.close(self._host, self._stage, probe)) is not None:
                self._changed(closed, BreakerState.CLOSED)

    def _failed(self, error: SluiceError, probe: datetime | None) -> None:
        with self._lock:
            if probe is None:
                self._count(failures=1, last=f"; the last: {error.message}")
            else:
                self._open(f"the one try after a rest failed as well: {error.message}", probe)
            breaker = self._look()
        if state_of(breaker) is not BreakerState.CLOSED:
            self._refuse(breaker, error)

    def _look(self) -> Breaker:
        """Return the breaker as it stood at most a second ago, telling the successes since."""
        with self._lock:
            if self._known is not None and self._clock.elapsed() - self._known_since < FRESH_SECONDS:
                return self._known
            return self._count() if self._successes else self._look_again()

    def _look_again(self) -> Breaker:
        return self._keep(self._store.look(self._host, self._stage))

    def _count(self, failures: int = 0, last: str = "") -> Breaker:
        """Tell what has not been told yet; open the breaker if that is too much."""
        with self._lock:
            tries = self._successes + failures
            window = self._policy.breaker.window
            counted = self._keep(self._store.count(self._host, self._stage, tries=tries, failures=failures, window=window))
            self._successes = 0
            if state_of(counted) is BreakerState.CLOSED and has_failed_too_often(counted, self._policy.breaker):
                share = f"{counted.failures} of {counted.tries} tries within {spell_duration(window)} failed"
                return self._open(f"{share}{last}")
            return counted

    def _open(self, reason: str, probe: datetime | None = None) -> Breaker:
        rest = self._policy.breaker.open_for
        opened = self._store.open(self._host, self._stage, open_for=rest, reason=reason, probe=probe)
        if opened is None:  # somebody else was faster
            return self._look_again()
        self._changed(opened, BreakerState.OPEN)
        return opened

    def _keep(self, breaker: Breaker) -> Breaker:
        with self._lock:
            self._known, self._known_since = breaker, self._clock.elapsed()
        self._metrics.gauge(metric.BREAKER_STATE, metric.BREAKER_LEVELS[state_of(breaker)], stage=self._stage)
        return breaker

    def _changed(self, breaker: Breaker, state: BreakerState) -> None:
        """Tell what this worker has made of the breaker."""
        self._keep(breaker)
        self._metrics.count(metric.BREAKER_CHANGED, stage=self._stage, state=str(state))
        facts = {"host": self._host, "stage": self._stage, "failures": breaker.failures, "tries": breaker.tries}
        match state:
            case BreakerState.OPEN:
                log.warning(log_events.BREAKER_OPENED, **facts, until=_spelt(breaker.resting_until), reason=breaker.reason)
            case BreakerState.HALF_OPEN:
                log.info(log_events.BREAKER_PROBED, **facts)
            case BreakerState.CLOSED:
                log.info(log_events.BREAKER_CLOSED, **facts)

    def _refuse(self, breaker: Breaker, cause: SluiceError | None = None) -> NoReturn:
        until = breaker.probed_until or breaker.resting_until
        raise SupplierResting(
            f"{self._host} is left alone by stage {self._stage} until {_spelt(until)}: {breaker.reason}",
            until=until,
            host=self._host,
            stage=self._stage,
        ) from cause


def _spelt(instant: datetime | None) -> str:
    return "now" if instant is None else f"{instant:%Y-%m-%dT%H:%M:%SZ}"
