"""Sluice's errors in, Airflow's retry, wait, fail and skip out: the only place that maps one to the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

import structlog
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowSkipException

from sluice import log_events
from sluice.errors import Fenced, FlightTaken, OutcomeUnknown, Permanent, Retryable, ShardsFailed, SluiceError

log: Final = structlog.get_logger()

_SHORTEST_WAIT: Final = timedelta(seconds=5)
_LONGEST_WAIT: Final = timedelta(minutes=5)
"""A lease ends by the state database's clock; should that one be behind Airflow's, nobody may go round in circles."""


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
    """Return what an error means for the attempt that raised it; several failed shards mean what their errors mean."""
    if isinstance(error, ShardsFailed) and error.facts.get("is_retryable"):
        return TaskOutcome.RETRY
    return next(outcome for kind, outcome in OUTCOMES if isinstance(error, kind))


def _looked_at_again(expires_at: datetime) -> datetime:
    """Return when to look: at the end of a lease, which another clock than this one's told."""
    now = datetime.now(UTC)
    return min(max(expires_at, now + _SHORTEST_WAIT), now + _LONGEST_WAIT)


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
                until = _looked_at_again(error.facts["expires_at"])
                log.info(log_events.FLIGHT_AWAITED, owner=error.facts["owner"], until=until.isoformat(), message=error.message)
                raise AirflowRescheduleException(until) from error  # type: ignore[no-untyped-call]
            case TaskOutcome.FAIL:
                raise AirflowFailException(f"{type(error).__name__}: {error}") from error
            case TaskOutcome.SKIP:
                raise AirflowSkipException(f"{type(error).__name__}: {error}") from error
