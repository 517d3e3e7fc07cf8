"""Sluice's errors in, Airflow's retry, wait, fail and skip out: the only place that maps one to the other."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

import structlog
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowSkipException

from sluice import log_events
from sluice.errors import Fenced, FlightTaken, OutcomeUnknown, Permanent, Retryable, ShardsFailed, SluiceError
from sluice.guard.retries import due_at

log: Final = structlog.get_logger()

_SHORTEST_WAIT: Final = timedelta(seconds=5)
_LONGEST_WAIT: Final = timedelta(minutes=5)
"""Bounds on waits for another run: a lease ends by the state database's clock; should that one be behind Airflow's, nobody may
go round in circles."""


class TaskOutcome(Enum):
    """What becomes of the attempt of a task."""

    RETRY = "fails, and Airflow tries again while retries are left"
    WAIT = "gives its worker back, and is called again later, without using up a try"
    FAIL = "fails for good; clearing it tries again"
    SKIP = "stops quietly"


OUTCOMES: Final[tuple[tuple[type[SluiceError], TaskOutcome], ...]] = (
    (Fenced, TaskOutcome.SKIP),
    (OutcomeUnknown, TaskOutcome.RETRY),  # steps look before they repeat
    (FlightTaken, TaskOutcome.WAIT),
    (Retryable, TaskOutcome.RETRY),
    (Permanent, TaskOutcome.FAIL),
    (SluiceError, TaskOutcome.RETRY),
)


def outcome_of(error: SluiceError) -> TaskOutcome:
    """Return what an error means for the attempt that raised it; several failed shards mean what their errors mean.

    While one of them waits for its supplier, the others wait with it: what they mean is looked at after that.
    """
    if due_at(error, datetime.now(UTC)) is not None:
        return TaskOutcome.WAIT
    if isinstance(error, ShardsFailed) and error.facts.get("is_retryable"):
        return TaskOutcome.RETRY
    return next(outcome for kind, outcome in OUTCOMES if isinstance(error, kind))


def _called_again(error: SluiceError) -> datetime:
    """Return when to call the task again, and tell what it waits for."""
    now = datetime.now(UTC)
    due = due_at(error, now)
    if due is None:  # a lease, of which another clock than this one has told
        until: datetime = min(max(error.facts["expires_at"], now + _SHORTEST_WAIT), now + _LONGEST_WAIT)
        log.info(log_events.FLIGHT_AWAITED, owner=error.facts["owner"], until=until.isoformat(), message=error.message)
        return until
    until = max(due, now) + _SHORTEST_WAIT * random.uniform(0.2, 1)  # noqa: S311  who was sent away together comes back apart
    log.info(log_events.SUPPLIER_AWAITED, until=until.isoformat(), message=error.message)
    return until


@contextmanager
def airflow_outcomes() -> Iterator[None]:
    """Let Sluice's errors leave as what Airflow understands; all else passes as it is."""
    try:
        yield
    except SluiceError as error:
        match outcome_of(error):
            case TaskOutcome.RETRY:
                raise
            case TaskOutcome.WAIT:
                raise AirflowRescheduleException(_called_again(error)) from error  # type: ignore[no-untyped-call]
            case TaskOutcome.FAIL:
                raise AirflowFailException(f"{type(error).__name__}: {error}") from error
            case TaskOutcome.SKIP:
                raise AirflowSkipException(f"{type(error).__name__}: {error}") from error
