"""When a run goes on from what an earlier run of its request has left."""

import pytest

from sluice.guard.takeover import is_due, is_taken_over, taken_over_by
from sluice.model.base import RunId
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Failure, Origin
from tests.support.nouns import a_run

INLINE, AIRFLOW = Origin(), Origin(dag_id="hotels", dag_run_id="manual")
RESUMABLE = (RunStatus.FAILED, RunStatus.PARTIAL)


@pytest.mark.parametrize("status", list(RunStatus))
@pytest.mark.parametrize("earlier", [INLINE, AIRFLOW], ids=["inline", "Airflow"])
@pytest.mark.parametrize("later", [INLINE, AIRFLOW], ids=["after it inline", "after it Airflow"])
def test_a_run_that_ended_hands_over_only_outside_airflow(status: RunStatus, earlier: Origin, later: Origin) -> None:
    """And only if it failed, or brought in a part: what waits, succeeded or was called off is nobody's to go on with."""
    due = is_due(a_run("old", status=status, origin=earlier), a_run("new", origin=later), dead=[])
    assert due is (status in RESUMABLE and earlier == later == INLINE)


@pytest.mark.parametrize("earlier", [INLINE, AIRFLOW], ids=["inline", "Airflow"])
@pytest.mark.parametrize("later", [INLINE, AIRFLOW], ids=["after it inline", "after it Airflow"])
def test_a_run_that_died_at_work_hands_over_to_anyone(earlier: Origin, later: Origin) -> None:
    """Its lease ran out, and it has just been ended for that."""
    died = a_run("old", status=RunStatus.FAILED, origin=earlier)
    assert is_due(died, a_run("new", origin=later), dead=[a_run("older still"), died])


def test_another_run_that_died_hands_nothing_over() -> None:
    """Only the newest one before this run counts."""
    called_off = a_run("old", status=RunStatus.CANCELLED)
    assert not is_due(called_off, a_run("new"), dead=[a_run("older still", status=RunStatus.FAILED)])


def test_what_ended_a_run_that_died() -> None:
    """Its failure names who has taken over."""
    message = "its lease ran out; run new has taken over"
    assert taken_over_by(RunId("new")) == Failure(error="TakenOver", message=message)


def test_a_run_that_was_taken_over_is_told_from_one_that_ended_as_another_did() -> None:
    """A follower has the failure of whom it followed; it was not taken over itself."""
    failure = taken_over_by(RunId("new"))
    assert is_taken_over(a_run("old", status=RunStatus.FAILED, failure=failure))
    assert not is_taken_over(a_run("old", status=RunStatus.FAILED, failure=failure, follows="older"))
    assert not is_taken_over(a_run("old", status=RunStatus.FAILED, failure=Failure(error="Interrupted", message="Ctrl-C")))
