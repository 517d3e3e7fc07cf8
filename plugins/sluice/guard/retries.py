"""Retries of one call: in goes a call and a stage's policy, out comes its result, or the last error it raised."""

import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

import stamina
import structlog
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from sluice import log_events
from sluice.errors import RateLimited, Retryable, SluiceError, SupplierResting
from sluice.model.stage import RetryPolicy

T = TypeVar("T")

LONGEST_PAUSE: Final = timedelta(minutes=5)
"""A supplier that asks for a longer pause (and one above the policy's cap) gets it by giving the worker up."""

DUE: Final = "until"
"""The fact of an error that says when to ask again."""

_LONGEST_WISH: Final = timedelta(days=365)
"""Whoever asks for more is not waited for anyway."""

_log = structlog.get_logger(__name__)

_told_of: ContextVar[Callable[[], None] | None] = ContextVar("sluice_retries", default=None)


@contextmanager
def retries_told(tell: Callable[[], None]) -> Iterator[None]:
    """Tell of each retry while the block works, also of those in threads that have taken its context along."""
    before = _told_of.set(tell)
    try:
        yield
    finally:
        _told_of.reset(before)


def patiently(call: Callable[[], T], retry: RetryPolicy, within: timedelta) -> T:
    """Return what `call` returns, repeating it while it raises `Retryable`, as often and as long as the policy allows.

    Waits grow exponentially with jitter; a `RateLimited` that says how long to pause is obeyed instead. The last error is
    let through: at once if it asks for a pause that is longer than there is time left, or is `SupplierResting`.
    """
    longest = max(retry.cap, LONGEST_PAUSE).total_seconds()
    end = time.monotonic() + within.total_seconds()

    def wait(error: Exception) -> bool | float:
        if not isinstance(error, Retryable) or isinstance(error, SupplierResting):
            return False
        pause = error.retry_after if isinstance(error, RateLimited) else None
        if pause is None:
            return True
        if pause > min(longest, end - time.monotonic()):
            return False
        # The jitter comes on top: workers that were sent away together shall not come back together.
        return pause + random.uniform(0, retry.base.total_seconds())  # noqa: S311  no secret

    for attempt in stamina.retry_context(
        on=wait, attempts=retry.attempts, timeout=within, wait_initial=retry.base, wait_max=retry.cap, wait_jitter=retry.base
    ):
        with attempt:
            result = call()
    return result


def pause_asked_for(header: str | None, now: datetime) -> float | None:
    """Return the seconds a Retry-After header asks for, given as seconds or as a date; None if it says nothing usable.

    What is over, as a date in the past or a negative number, asks for none. `now` is the supplier's own clock (its Date
    header) where known, so that a worker's wrong clock does no harm.
    """
    if header is None:
        return None
    if re.fullmatch(r"\s*-?\d{1,15}(\.\d{1,15})?\s*", header, re.ASCII):
        return max(0.0, float(header))
    then = http_date(header)
    return None if then is None else max(0.0, (then - now).total_seconds())


def due_at(error: Exception, now: datetime) -> datetime | None:
    """Return from when on what raised the error may be repeated, where that is known; None otherwise."""
    if not isinstance(error, SluiceError):
        return None
    until: datetime | None = error.facts.get(DUE)
    if until is None and isinstance(error, RateLimited) and error.retry_after is not None:
        return now + timedelta(seconds=min(error.retry_after, _LONGEST_WISH.total_seconds()))
    return until


def http_date(header: str | None) -> datetime | None:
    """Return the instant an HTTP date names; None if it is absent or names none."""
    try:
        instant = parsedate_to_datetime(header or "")
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _report(details: RetryDetails) -> None:
    error = details.caused_by
    _log.warning(
        log_events.CALL_RETRIED,
        attempt=details.retry_num,
        error=type(error).__name__,
        message=str(error),
        seconds=round(details.wait_for, 3),
    )
    if (tell := _told_of.get()) is not None:
        tell()


# Hooks are stamina's only way to tell of a retry, and they belong to the process: ours replaces its own event.
set_on_retry_hooks([_report])
