"""The log level of a stage decides which of Sluice's events are logged while its steps work."""

import threading
from collections.abc import Iterator
from contextvars import copy_context

import pytest
import structlog
from structlog.testing import LogCapture

from sluice import log_events
from sluice.flow.entering import entered
from sluice.guard.log_level import drop_quiet, logged_from
from sluice.model.lifecycle import Step
from sluice.model.stage import StagePolicy
from tests.unit.flow.workshop import JUNE, NORTH, RUN, Workshop

log = structlog.get_logger()

ALL = ["debug", "info", "warning", "error"]


@pytest.fixture
def captured() -> Iterator[LogCapture]:
    """What gets through."""
    capture = LogCapture()
    structlog.reset_defaults()
    structlog.configure(processors=[drop_quiet, capture])
    yield capture
    structlog.reset_defaults()


def tell_all(prefix: str = "sluice.") -> None:
    """Log an event at each level."""
    for level in ALL:
        getattr(log, level)(f"{prefix}{level}")


def levels(captured: LogCapture) -> list[str]:
    """Return the levels of what got through."""
    return [entry["log_level"] for entry in captured.entries]


@pytest.mark.parametrize("level", ALL)
def test_what_is_less_is_not_logged(captured: LogCapture, level: str) -> None:
    """From the stage's level on, everything is."""
    with logged_from(level):
        tell_all()
    assert levels(captured) == ALL[ALL.index(level) :]


def test_outside_of_steps(captured: LogCapture) -> None:
    """Events are logged from info on, and so they are again after a step."""
    with logged_from("error"):
        pass
    tell_all()
    assert levels(captured) == ["info", "warning", "error"]


def test_errors_with_their_trace_are_errors(captured: LogCapture) -> None:
    """`exception` logs at level error, whatever it is called."""
    with logged_from("error"):
        log.exception("sluice.trouble")  # noqa: LOG004  there is no error at hand
    assert len(captured.entries) == 1


def test_what_others_log_is_theirs_to_decide(captured: LogCapture) -> None:
    """Airflow logs through the same processors."""
    with logged_from("error"):
        tell_all("task ")
    assert levels(captured) == ALL


def test_threads_of_a_step_obey_too(captured: LogCapture) -> None:
    """They work in a copy of the step's context, as for the fields that are bound there."""
    with logged_from("warning"):
        thread = threading.Thread(target=copy_context().run, args=(tell_all,))
        thread.start()
        thread.join()
    assert levels(captured) == ["warning", "error"]


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("debug", [log_events.SHARD_CLAIMED, log_events.PAGE_FETCHED, log_events.SHARD_TRANSFORMED]),
        ("info", [log_events.SHARD_CLAIMED, log_events.SHARD_TRANSFORMED]),
        ("warning", []),
    ],
)
def test_stages_log_differently(captured: LogCapture, level: str, told: list[str]) -> None:
    """The same shard, brought in by a stage of each level."""
    workshop = Workshop(policy=StagePolicy.model_validate({"log_level": level}))
    workshop.equip()
    workshop.begin()
    captured.entries.clear()
    workshop.bring_in(NORTH, ("a", JUNE))
    events = [entry["event"] for entry in captured.entries]
    wanted = (log_events.SHARD_CLAIMED, log_events.PAGE_FETCHED, log_events.SHARD_TRANSFORMED)
    assert [event for event in events if event in wanted] == told


@pytest.mark.parametrize(("level", "told"), [("info", 3), ("error", 0)])
def test_steps_of_the_whole_run_log_differently(captured: LogCapture, level: str, told: int) -> None:
    """Admitted, begun and finished are told by the one stage and not by the other."""
    workshop = Workshop(policy=StagePolicy.model_validate({"log_level": level}))
    workshop.admit()
    with entered(workshop.services, RUN, Step.REVIEW):
        pass
    assert len(captured.entries) == told
