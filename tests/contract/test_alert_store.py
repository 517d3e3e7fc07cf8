"""The contract of `AlertStore`."""

from collections.abc import Mapping
from itertools import count
from typing import Any, Final

import pytest

from sluice.errors import NotFound
from sluice.guard.takeover import taken_over_by
from sluice.model.alert import Alert, AlertLevel
from sluice.model.base import PublicationId, RunId
from sluice.model.lifecycle import RunEvent, Step
from sluice.model.run import Failure, Mode, Redrive, Run
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, POLICY, a_run

FAIL, PARTIAL, SUCCEED, CANCEL = RunEvent.FAIL, RunEvent.END_PARTIAL, RunEvent.SUCCEED, RunEvent.CANCEL


class History:
    """Runs of one sync, one after the other, each ending in its way, or not at all."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._numbers = count(1)

    def add(self, end: RunEvent | None, sync: str = "hotels", failure: Failure | None = None, **changes: Any) -> Run:
        """Add a run."""
        name = f"run-{next(self._numbers)}"
        run = self._stores.runs.open(a_run(name, sync=sync, request_key=f"request of {name}", **changes), POLICY)
        return self._stores.runs.end(self._stores.runs.enter(run.id, Step.SETTLE, MINUTE), end, failure) if end else run


@pytest.mark.parametrize(
    ("ends", "in_a_row"),
    [
        ([FAIL], 1),
        ([PARTIAL, FAIL], 2),
        ([FAIL, FAIL, SUCCEED], 0),
        ([FAIL, SUCCEED, FAIL, PARTIAL], 2),
        ([FAIL, CANCEL, FAIL], 2),
        ([FAIL, None, FAIL], 2),
        ([SUCCEED, FAIL], 1),
    ],
)
def test_runs_in_a_row_that_did_not_succeed(stores: Stores, ends: list[RunEvent | None], in_a_row: int) -> None:
    """One that succeeded begins the count anew; what was called off, or is not over, is looked past."""
    history = History(stores)
    *_, newest = [history.add(end) for end in ends]
    assert stores.alerts.failed_in_a_row(newest.id) == in_a_row


def test_other_syncs_and_later_runs_do_not_count(stores: Stores) -> None:
    """Each sync has its own row, which ends with the run asked about."""
    history = History(stores)
    history.add(FAIL, sync="rates")
    first = history.add(FAIL)
    history.add(SUCCEED, sync="rates")
    second = history.add(FAIL)
    assert [stores.alerts.failed_in_a_row(run.id) for run in (first, second)] == [1, 2]


def test_a_run_that_was_taken_over_does_not_count(stores: Stores) -> None:
    """Its work is its successor's, whose failure is one."""
    history = History(stores)
    history.add(FAIL, failure=taken_over_by(RunId("run-2")))
    assert stores.alerts.failed_in_a_row(history.add(FAIL).id) == 1


ROLLBACK: Final = {"mode": Mode.ROLLBACK, "undoes": PublicationId(7)}
REDRIVE: Final = {"mode": Mode.REDRIVE, "redrives": Redrive()}


@pytest.mark.parametrize("asked_for", [ROLLBACK, REDRIVE])
@pytest.mark.parametrize("end", [FAIL, SUCCEED])
def test_what_a_person_asks_for_does_not_count(stores: Stores, end: RunEvent, asked_for: Mapping[str, Any]) -> None:
    """It has asked no supplier, so it neither is a failure of the sync's nor ends a row of them."""
    history = History(stores)
    history.add(FAIL)
    history.add(end, **asked_for)
    assert stores.alerts.failed_in_a_row(history.add(FAIL).id) == 2


def test_an_alert_is_told_once_for_each_run(stores: Stores) -> None:
    """Whoever settles a run again raises none."""
    history = History(stores)
    first, second = history.add(FAIL), history.add(FAIL)
    alert = Alert(level=AlertLevel.WARN, runs=1)
    assert [stores.alerts.note(run, alert) for run in (first, first, second)] == [True, False, True]


def test_an_alert_about_nothing(stores: Stores) -> None:
    """There has to be a run."""
    with pytest.raises(NotFound, match="there is no run run-9"):
        stores.alerts.note(a_run("run-9"), Alert(level=AlertLevel.PAGE, runs=3))
