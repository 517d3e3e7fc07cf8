"""Sluice's errors in, Airflow's retry, fail and skip out: the only place that maps one to the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from sluice.errors import Fenced, OutcomeUnknown, Permanent, Retryable, ShardsFailed, SluiceError


class TaskOutcome(Enum):
    """What becomes of the attempt of a task."""

    RETRY = "fails, and Airflow tries again while retries are left"
    FAIL = "fails for good; clearing it tries again"
    SKIP = "stops quietly"


OUTCOMES: Final[tuple[tuple[type[SluiceError], TaskOutcome], ...]] = (
    (Fenced, TaskOutcome.SKIP),
    (OutcomeUnknown, TaskOutcome.RETRY),  # steps look before they repeat
    (Retryable, TaskOutcome.RETRY),
    (Permanent, TaskOutcome.FAIL),
    (SluiceError, TaskOutcome.RETRY),
)


def outcome_of(error: SluiceError) -> TaskOutcome:
    """Return what an error means for the attempt that raised it; several failed shards mean what their errors mean."""
    if isinstance(error, ShardsFailed) and error.facts.get("is_retryable"):
        return TaskOutcome.RETRY
    return next(outcome for kind, outcome in OUTCOMES if isinstance(error, kind))


@contextmanager
def airflow_outcomes() -> Iterator[None]:
    """Let Sluice's errors leave as what Airflow understands; all else passes as it is."""
    try:
        yield
    except SluiceError as error:
        match outcome_of(error):
            case TaskOutcome.RETRY:
                raise
            case TaskOutcome.FAIL:
                raise AirflowFailException(f"{type(error).__name__}: {error}") from error
            case TaskOutcome.SKIP:
                raise AirflowSkipException(f"{type(error).__name__}: {error}") from error
