"""The contract of `AlertStore`."""

from itertools import count, product
from typing import Any, Final

import pytest

from sluice.errors import NotFound
from sluice.guard.takeover import taken_over_by
from sluice.model.alert import Alert, AlertLevel, Incident
from sluice.model.base import PublicationId, RunId
from sluice.model.call import Call
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


IN_A_ROW: Final[list[tuple[list[RunEvent | None], int]]] = [
    ([FAIL], 1),
    ([PARTIAL, FAIL], 2),
    ([FAIL, FAIL, SUCCEED], 0),
    ([FAIL, SUCCEED, FAIL, PARTIAL], 2),
    ([FAIL, CANCEL, FAIL], 2),
    ([FAIL, None, FAIL], 2),
    ([SUCCEED, FAIL], 1),
]


def test_runs_in_a_row_that_did_not_succeed(stores: Stores) -> None:
    """One that succeeded begins the count anew; what was called off, or is not over, is looked past."""
    history = History(stores)
    newest = [[history.add(end, sync=f"sync_{number}") for end in ends][-1] for number, (ends, _) in enumerate(IN_A_ROW)]
    assert [stores.alerts.failed_in_a_row(run.id) for run in newest] == [number for _, number in IN_A_ROW]


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


def test_what_a_person_asks_for_does_not_count(stores: Stores) -> None:
    """It has asked no supplier, so it neither is a failure of the sync's nor ends a row of them."""
    history = History(stores)
    for before, (asked_for, end) in enumerate(product((ROLLBACK, REDRIVE), (FAIL, SUCCEED))):
        history.add(end, **asked_for)
        assert stores.alerts.failed_in_a_row(history.add(FAIL).id) == before + 1


def tell(incident: Incident) -> list[Call]:
    """Tell whoever it is of an incident as it is now."""
    key = f"{incident.id} {incident.tidings}"
    return [Call(key=key, sync=incident.sync, run=incident.run, subject="incident", name=incident.tidings)]


def raised(stores: Stores, run: Run, level: AlertLevel, runs: int = 1) -> Incident | None:
    """Raise an alert that would be told of."""
    return stores.alerts.raise_alert(run, Alert(level=level, runs=runs), tell, MINUTE)


def test_an_incident_is_told_of_once_for_each_level_and_at_its_end(stores: Stores) -> None:
    """Whoever raises the same again, or a lower one, changes nothing; each change comes with the calls that tell of it."""
    history = History(stores)
    first, second = history.add(FAIL), history.add(FAIL)
    begun = raised(stores, first, AlertLevel.WARN)
    assert begun is not None
    assert raised(stores, first, AlertLevel.WARN) is None
    worse = raised(stores, second, AlertLevel.PAGE, runs=2)
    assert raised(stores, first, AlertLevel.WARN) is None
    third = history.add(SUCCEED)
    ended = stores.alerts.recover(third, tell, MINUTE)
    assert stores.alerts.recover(third, tell, MINUTE) is None
    assert worse == begun.model_copy(update={"level": AlertLevel.PAGE, "runs": 2, "run": second.id})
    assert ended is not None
    assert ended.ended_at is not None
    assert stores.alerts.newest("hotels") == ended == worse.model_copy(update={"ended_at": ended.ended_at})
    assert {call.name for call in stores.calls.left("hotels")} == {"warn", "page", "recovered"}


def test_a_new_row_of_failures_is_a_new_incident(stores: Stores) -> None:
    """Of each sync there is one at a time."""
    history = History(stores)
    one, other = history.add(FAIL), history.add(FAIL, sync="rates")
    begun = [raised(stores, run, AlertLevel.WARN) for run in (one, other)]
    stores.alerts.recover(history.add(SUCCEED), tell, MINUTE)
    again = raised(stores, history.add(FAIL), AlertLevel.WARN)
    assert len({incident.id for incident in [*begun, again] if incident}) == 3
    assert stores.alerts.newest("rates") == begun[1]


def test_a_row_of_failures_that_a_later_run_has_ended_is_no_incident(stores: Stores) -> None:
    """An old run that fails once more neither begins one nor makes one worse; a success on a person's word ends no row."""
    history = History(stores)
    old = history.add(FAIL)
    history.add(SUCCEED, **ROLLBACK)
    assert raised(stores, old, AlertLevel.WARN) is not None
    stores.alerts.recover(history.add(SUCCEED), tell, MINUTE)
    assert raised(stores, old, AlertLevel.WARN) is None
    begun = raised(stores, history.add(FAIL), AlertLevel.WARN)
    assert raised(stores, old, AlertLevel.PAGE, runs=2) is None
    assert stores.alerts.newest("hotels") == begun


def test_the_success_of_an_older_run_ends_nothing(stores: Stores) -> None:
    """As long as a later one has failed, the sync does not do well."""
    history = History(stores)
    older = history.add(SUCCEED)
    raised(stores, history.add(FAIL), AlertLevel.WARN)
    assert stores.alerts.recover(older, tell, MINUTE) is None


def test_an_alert_about_nothing(stores: Stores) -> None:
    """There has to be a run."""
    with pytest.raises(NotFound, match="there is no run run-9"):
        raised(stores, a_run("run-9"), AlertLevel.PAGE)
    assert stores.alerts.newest("hotels") is None
