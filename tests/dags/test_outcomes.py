"""Errors: each leaves a task as exactly one of Airflow's retry, wait, fail and skip."""

from datetime import UTC, datetime, timedelta

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowSkipException

from sluice import errors
from sluice.airflow_glue.outcomes import TaskOutcome, airflow_outcomes, outcome_of
from sluice.errors import (
    Fenced,
    FlightTaken,
    OutcomeUnknown,
    Permanent,
    RateLimited,
    Retryable,
    ShardsFailed,
    SluiceError,
    SupplierResting,
    SupplierUnavailable,
)
from tests.support.nouns import MINUTE

DUE = datetime(2999, 1, 1, tzinfo=UTC)


def leaves(kind: type[SluiceError]) -> list[type[SluiceError]]:
    """Return a kind of error and all its kinds."""
    return [kind, *(leaf for child in kind.__subclasses__() for leaf in leaves(child))]


@pytest.mark.parametrize(
    ("branch", "outcome"),
    [
        (Retryable, TaskOutcome.RETRY),
        (OutcomeUnknown, TaskOutcome.RETRY),
        (Permanent, TaskOutcome.FAIL),
        (Fenced, TaskOutcome.SKIP),
    ],
)
def test_every_error_of_a_branch_has_its_outcome(branch: type[SluiceError], outcome: TaskOutcome) -> None:
    """The branch of the tree decides, so that a new leaf needs no new rule; one of them knows how long to wait."""
    for leaf in leaves(branch):
        error = leaf(["a problem"]) if leaf is errors.SpecInvalid else leaf("why")  # type: ignore[arg-type]
        assert outcome_of(error) is (TaskOutcome.WAIT if leaf is FlightTaken else outcome), leaf


def test_several_failed_shards_are_tried_again_if_one_of_them_is_worth_it() -> None:
    """A group of shards is retried where a repetition may bring in one of them."""
    assert outcome_of(ShardsFailed("why", is_retryable=True)) is TaskOutcome.RETRY
    assert outcome_of(ShardsFailed("why", is_retryable=False)) is TaskOutcome.FAIL


@pytest.mark.parametrize(
    "error",
    [
        RateLimited("later", retry_after=400, until=DUE),
        SupplierResting("it failed too often", until=DUE),
        ShardsFailed("a waits, b failed", is_retryable=False, until=DUE),
    ],
)
def test_a_supplier_is_waited_for_without_a_worker(error: SluiceError) -> None:
    """Until it may be asked again and a moment longer; what else failed in a group is looked at after that."""
    assert outcome_of(error) is TaskOutcome.WAIT
    with pytest.raises(AirflowRescheduleException) as waits, airflow_outcomes():
        raise error
    assert DUE < waits.value.reschedule_date < DUE + timedelta(seconds=10)


def test_a_pause_counts_from_now_on() -> None:
    """Where nobody noted its end before."""
    before = datetime.now(UTC) + timedelta(seconds=400)
    with pytest.raises(AirflowRescheduleException) as waits, airflow_outcomes():
        raise RateLimited("later", retry_after=400)
    assert before < waits.value.reschedule_date < datetime.now(UTC) + timedelta(seconds=410)


@pytest.mark.parametrize("error", [RateLimited("it does not say until when"), SupplierResting("nor does this")])
def test_a_pause_without_an_end_is_a_retry(error: SluiceError) -> None:
    """What says nothing of when costs a try."""
    assert outcome_of(error) is TaskOutcome.RETRY


@pytest.mark.parametrize(
    ("lease_ends_in", "called_again_in"), [(MINUTE, MINUTE), (-MINUTE, timedelta(seconds=5)), (99 * MINUTE, 5 * MINUTE)]
)
def test_who_meets_another_run_waits_without_a_worker(lease_ends_in: timedelta, called_again_in: timedelta) -> None:
    """Until that one's lease ends; a while at least, and not for long, whatever the clock of the state database says."""
    before = datetime.now(UTC)
    with pytest.raises(AirflowRescheduleException) as waits, airflow_outcomes():
        raise FlightTaken("another run is alive", owner="run-1", expires_at=before + lease_ends_in)
    assert before + called_again_in <= waits.value.reschedule_date <= datetime.now(UTC) + called_again_in


def test_what_leaves_a_task() -> None:
    """Airflow retries what passes as it is, and does not retry its own fail and skip, which name the error."""
    with pytest.raises(SupplierUnavailable), airflow_outcomes():
        raise SupplierUnavailable
    with pytest.raises(AirflowFailException, match="TargetMismatch: the table has no column"), airflow_outcomes():
        raise errors.TargetMismatch("the table has no column")
    with pytest.raises(AirflowSkipException, match="Fenced"), airflow_outcomes():
        raise Fenced
    with pytest.raises(ZeroDivisionError), airflow_outcomes():
        _ = 1 / 0
