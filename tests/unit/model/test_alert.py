"""From which run in a row on who is told."""

import pytest

from sluice.model.alert import AlertLevel, alert_for
from sluice.model.stage import Alerts


@pytest.mark.parametrize(
    ("runs", "limits", "level"),
    [
        (0, Alerts(warn=1, page=3), None),
        (1, Alerts(warn=1, page=3), AlertLevel.WARN),
        (2, Alerts(warn=1, page=3), AlertLevel.WARN),
        (3, Alerts(warn=1, page=3), AlertLevel.PAGE),
        (9, Alerts(warn=1, page=3), AlertLevel.PAGE),
        (1, Alerts(warn=2, page=2), None),
        (2, Alerts(warn=2, page=2), AlertLevel.PAGE),
    ],
)
def test_the_more_runs_fail_the_more_urgent(runs: int, limits: Alerts, level: AlertLevel | None) -> None:
    """Each further run amounts to an alert as urgent as before, or more."""
    alert = alert_for(runs, limits)
    assert (alert.level if alert else None) is level
    assert alert is None or alert.runs == runs
