"""Entering a run: under which errors it ends, and who goes on with it."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from sluice import errors, log_events
from sluice.errors import (
    CommitUnconfirmed,
    Fenced,
    NotFound,
    NothingToReview,
    OutcomeUnknown,
    Permanent,
    Retryable,
    ReviewNotApproved,
    ReviewWaiting,
    SluiceError,
    StateUnavailable,
    TargetMismatch,
)
from sluice.flow.entering import entered, entered_for_a_shard
from sluice.model.base import RunId
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunEvent, RunStatus, Step
from sluice.model.run import Failure
from tests.unit.flow.workshop import RUN, Workshop

MESSAGE = "the error says why"


def leaves(kind: type[SluiceError]) -> Iterator[type[SluiceError]]:
    """All errors below one, itself included."""
    yield kind
    for below in kind.__subclasses__():
        yield from leaves(below)


def raised(error: type[SluiceError]) -> SluiceError:
    """An error as a step would raise it."""
    made = error.__new__(error)
    SluiceError.__init__(made, MESSAGE)
    return made


LEFT = (NothingToReview, ReviewNotApproved, ReviewWaiting)
ENDING = sorted(set(leaves(Permanent)) - set(LEFT), key=lambda error: error.__name__)
LEAVING = sorted({*leaves(Retryable), *leaves(OutcomeUnknown), *leaves(Fenced)}, key=lambda error: error.__name__)


def test_every_error_is_one_or_the_other() -> None:
    """No branch of the tree is forgotten below."""
    known = {*ENDING, *LEAVING, *LEFT, SluiceError}
    assert known == set(leaves(errors.SluiceError))


@pytest.mark.parametrize("error", ENDING)
def test_what_no_repetition_mends_ends_the_run(error: type[SluiceError]) -> None:
    """The run has failed by that error, and its flight is free."""
    workshop = Workshop()
    workshop.admit()
    with pytest.raises(error), entered(workshop.services, RUN, Step.REVIEW):
        raise raised(error)
    run = workshop.memory.runs[RUN]
    assert (run.status, run.step) == (RunStatus.FAILED, Step.REVIEW)
    assert run.failure == Failure(error=error.__name__, message=MESSAGE)
    assert workshop.memory.leases == {}


@pytest.mark.parametrize("error", [*LEAVING, *LEFT, KeyboardInterrupt, ZeroDivisionError])
def test_every_other_error_leaves_the_run_at_its_step(error: type[BaseException]) -> None:
    """It may be repeated, or is left to settlement: the run keeps its flight, and has no failure."""
    workshop = Workshop()
    workshop.admit()
    with pytest.raises(error), entered(workshop.services, RUN, Step.REVIEW):
        raise raised(error) if issubclass(error, SluiceError) else error
    run = workshop.memory.runs[RUN]
    assert (run.status, run.step, run.failure) == (RunStatus.RUNNING, Step.REVIEW, None)
    assert workshop.memory.leases[run.request_key].owner == RUN


def test_a_step_that_somebody_has_overtaken_does_not_end_the_run() -> None:
    """The younger holder's run goes on; the older one's error is its own."""
    workshop = Workshop()
    workshop.admit()
    step = entered(workshop.services, RUN, Step.REVIEW)
    step.__enter__()
    younger = workshop.services.runs.enter(RUN, Step.REVIEW, workshop.policy.lease_ttl)
    assert not step.__exit__(TargetMismatch, TargetMismatch(), None)
    assert workshop.memory.runs[RUN] == younger


def test_a_run_that_is_over_is_not_ended_again() -> None:
    """An error after the end does not make a run that succeeded a failed one."""
    workshop = Workshop()
    workshop.admit()
    step = entered(workshop.services, RUN, Step.SETTLE)
    entry = step.__enter__()
    ended = workshop.services.runs.end(entry.run, RunEvent.SUCCEED)
    assert not step.__exit__(TargetMismatch, TargetMismatch(), None)
    assert workshop.memory.runs[RUN] == ended


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (None, None),
        (TargetMismatch, "warning"),
        (StateUnavailable, "warning"),
        (CommitUnconfirmed, "warning"),
        (ReviewNotApproved, "info"),
    ],
)
def test_what_is_told_of_a_step(error: type[SluiceError] | None, level: str | None) -> None:
    """Its beginning, and its end or its error; a person's rejection is nothing to be warned of."""
    workshop = Workshop()
    workshop.admit()
    with capture_logs() as logs:
        try:
            with entered(workshop.services, RUN, Step.PUBLISH):
                if error:
                    raise raised(error)
        except SluiceError:
            pass
    begun = {"event": log_events.STEP_STARTED, "log_level": "info"}
    if error is None:
        ended = {"event": log_events.STEP_FINISHED, "log_level": "info", "seconds": 0.0}
    else:
        ended = {"event": log_events.STEP_FAILED, "log_level": level, "error": error.__name__, "message": MESSAGE}
    assert logs == [begun, ended]


def test_a_step_of_the_whole_run_fences_the_one_before() -> None:
    """Each entry has a new token."""
    workshop = Workshop()
    first = workshop.admit()
    with entered(workshop.services, RUN, Step.SHARD) as second:
        assert (second.run.token > first.token, second.policy) == (True, workshop.policy)
    with pytest.raises(Fenced):
        workshop.services.runs.end(first, RunEvent.FAIL)


@pytest.mark.parametrize("step", [Step.FETCH, Step.TRANSFORM])
def test_shards_do_not_fence_each_other(step: Step) -> None:
    """The first of them moves the run on, the others find it there."""
    workshop = Workshop()
    workshop.begin()
    first = entered_for_a_shard(workshop.services, RUN, Step.FETCH)
    assert (first.status, first.step) == (RunStatus.RUNNING, Step.FETCH)
    assert entered_for_a_shard(workshop.services, RUN, step) == first


@pytest.mark.parametrize("status", sorted(FINAL_RUN_STATUSES - {RunStatus.SUCCEEDED}))
def test_a_shard_reopens_a_run_that_ended_without_it(status: RunStatus) -> None:
    """Its task was cleared: the run goes on, what it failed by is history."""
    workshop = Workshop()
    run = workshop.begin()
    failure = Failure(error="ShardsFailed", message="shard north")
    workshop.memory.runs[RUN] = run.model_copy(update={"status": status, "step": Step.FETCH, "failure": failure})
    reopened = entered_for_a_shard(workshop.services, RUN, Step.FETCH)
    assert (reopened.status, reopened.failure, reopened.token > run.token) == (RunStatus.RUNNING, None, True)


def test_a_run_that_nobody_admitted() -> None:
    """It cannot be entered."""
    with pytest.raises(NotFound, match="there is no run run-9"), entered(Workshop().services, RunId("run-9"), Step.SHARD):
        pass
