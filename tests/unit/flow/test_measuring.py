"""What is told of a step: how long it took, what became of it, and what was tried again in it."""

from contextlib import nullcontext
from datetime import timedelta

import pytest

from sluice.errors import (
    Fenced,
    NoProgress,
    ReviewWaiting,
    SluiceError,
    SupplierRefused,
    SupplierUnavailable,
)
from sluice.flow.entering import entered
from sluice.flow.fetcher import fetch
from sluice.flow.measuring import measured, outcome_of
from sluice.guard.retries import patiently
from sluice.model.lifecycle import RunEvent, Step
from sluice.model.metric import StepOutcome
from sluice.model.run import Failure
from sluice.model.stage import RetryPolicy
from tests.unit.flow.workshop import NORTH, RUN, Workshop

AT_REVIEW = (("stage", "hotel-content"), ("step", "review"))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (SupplierUnavailable("503"), StepOutcome.RETRYABLE),
        (SupplierRefused("403"), StepOutcome.FAILED),
        (Fenced("taken over"), StepOutcome.FENCED),
        (NoProgress("no progress"), StepOutcome.STUCK),
        (ReviewWaiting("it waits", review="r"), StepOutcome.FINISHED),
    ],
)
def test_what_an_error_makes_of_a_step(error: SluiceError, outcome: StepOutcome) -> None:
    """To wait for a person is no failure."""
    assert outcome_of(error) is outcome


@pytest.mark.parametrize(
    ("error", "outcome"), [(None, "finished"), (SupplierRefused("403"), "failed"), (KeyboardInterrupt(), "broken")]
)
def test_each_step_is_timed(error: BaseException | None, outcome: str) -> None:
    """However it ends, it ends once."""
    workshop = Workshop()
    meets = nullcontext() if error is None else pytest.raises(type(error))
    with meets, measured(workshop.services, "hotel-content", Step.REVIEW):
        workshop.memory.clock.move(timedelta(seconds=7))
        if error is not None:
            raise error
    spans = workshop.metrics.spans["step_duration", (("outcome", outcome), *AT_REVIEW)]
    assert spans == [timedelta(seconds=7)]


def test_requests_that_are_repeated_are_counted() -> None:
    """Those of the step at work."""
    workshop, answers = Workshop(), iter([SupplierUnavailable("503"), SupplierUnavailable("503"), None])

    def ask() -> None:
        if error := next(answers):
            raise error

    with measured(workshop.services, "hotel-content", Step.REVIEW):
        patiently(ask, RetryPolicy(attempts=3, base="0s", cap="0s"), within=timedelta(minutes=1))
    assert workshop.metrics.of("retries", stage="hotel-content", step="review", scope="request") == 2


def test_what_is_gone_on_with_is_counted() -> None:
    """A run that had ended, and a shard that was begun before."""
    workshop = Workshop()
    workshop.begin()
    for _ in range(2):
        workshop.supply(SupplierRefused("403"))
        with pytest.raises(SupplierRefused):
            fetch(workshop.services, RUN, NORTH)
    run = workshop.memory.runs[RUN]
    workshop.services.runs.end(run, RunEvent.FAIL, Failure(error="SupplierRefused", message="403"))
    with entered(workshop.services, RUN, Step.REVIEW):
        pass
    assert workshop.metrics.of("retries", stage="hotel-content", step="fetch", scope="shard") == 1
    assert workshop.metrics.of("retries", stage="hotel-content", step="review", scope="run") == 1


def test_work_that_stands_still_is_counted_though_its_worker_never_hears_of_it() -> None:
    """The heartbeat notices, and renews the lease no more."""
    workshop = Workshop()
    workshop.begin()
    with entered(workshop.services, RUN, Step.REVIEW) as entry:
        workshop.memory.clock.move(workshop.policy.no_progress_timeout + timedelta(seconds=1))
        entry.pulse.beat()
    assert workshop.metrics.of("steps_stuck", stage="hotel-content", step="review") == 1
