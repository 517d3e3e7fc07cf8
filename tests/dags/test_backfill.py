"""Backfills: each of their runs asks for what the supplier dates within its data interval; scheduled runs have no window."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from sluice.adapters.spec_files import SpecFiles
from sluice.airflow_glue.params import params_form, run_request
from sluice.airflow_glue.tasks import backfilled
from sluice.model.run import Mode, Origin, RunRequest, Window
from sluice.model.spec import SyncSpec
from tests.dags.conftest import HOME
from tests.dags.driving import DrivenAirflow
from tests.dags.test_run import services

DAG = "sluice_windowed"
DAY = timedelta(days=1)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
INTERVAL = Window(start=FIRST, end=FIRST + DAY)


@pytest.fixture
def spec(airflow_home: object) -> SyncSpec:
    """A sync whose templates use the window."""
    return SpecFiles(HOME / "include").sync("windowed")


def asked(spec: SyncSpec, interval: Window | None, **params: Any) -> RunRequest:
    """Return what a form asks for of which this much is filled in, in a run of a backfill."""
    filled = {**{name: param.value for name, param in params_form(spec).items()}, **params}
    return run_request(spec, filled, Origin(), interval)


def test_a_backfill_runs_once_for_each_day(airflow: DrivenAirflow) -> None:
    """In mode full, over its day; it deletes nothing and leaves the watermarks alone."""
    airflow.client.patch(f"/api/v2/dags/{DAG}", json={"is_paused": False})
    span = {"from_date": FIRST.isoformat(), "to_date": (FIRST + DAY).isoformat()}
    answer = airflow.client.post("/api/v2/backfills", json={"dag_id": DAG, **span, "run_backwards": False, "dag_run_conf": {}})
    assert answer.status_code == 200, answer.text
    runs = airflow.client.get(f"/api/v2/dags/{DAG}/dagRuns", params={"run_type": "backfill"}).json()["dag_runs"]
    for run in runs:
        states = airflow.drive(DAG, run["dag_run_id"])
        assert states["settle"] == "success", states
    with services() as state:
        kept = sorted(state.runs.recent("windowed", [], 9), key=lambda run: run.window.start if run.window else FIRST)
        marks = state.watermarks.of("windowed")
    assert [(run.mode, run.window) for run in kept] == [
        (Mode.FULL, Window(start=FIRST + number * DAY, end=FIRST + (number + 1) * DAY)) for number in range(2)
    ]
    assert marks == {}


def test_the_schedule_has_data_intervals_where_a_window_is_used(airflow_home: object) -> None:
    """Since Airflow gives a plain cron expression none; a sync that uses no window keeps it."""
    from airflow.sdk import CronDataIntervalTimetable

    from sluice.airflow_glue import sync_dag

    assert sync_dag("windowed").schedule == CronDataIntervalTimetable("@daily", timezone="UTC")
    assert sync_dag("hotels").schedule == "@daily"


@pytest.mark.parametrize("mode", [None, "full"])
def test_what_a_backfill_leaves_open(spec: SyncSpec, mode: str | None) -> None:
    """All that the supplier dates within the interval."""
    request = asked(spec, INTERVAL, mode=mode)
    assert (request.mode, request.window) == (Mode.FULL, INTERVAL)


def test_what_the_form_says_stands(spec: SyncSpec) -> None:
    """A window that was given, another mode, or a sync that knows no window."""
    given = asked(spec, INTERVAL, window_start="2025-01-01T00:00:00Z", window_end="2025-02-01T00:00:00Z")
    assert given.window is not None
    assert (given.mode, given.window.start.year) == (None, 2025)
    assert asked(spec, INTERVAL, mode="incremental").window is None
    assert asked(spec, INTERVAL, mode="replay", replays="inline-1").window is None
    hotels = SpecFiles(HOME / "include").sync("hotels")
    assert (asked(hotels, INTERVAL).mode, asked(hotels, INTERVAL).window) == (None, None)


@pytest.mark.parametrize(
    ("run_type", "start", "end", "window"),
    [
        ("backfill", FIRST, FIRST + DAY, INTERVAL),
        ("backfill", FIRST, FIRST, None),
        ("backfill", None, None, None),
        ("scheduled", FIRST, FIRST + DAY, None),
        ("manual", FIRST, FIRST + DAY, None),
    ],
)
def test_only_a_backfill_is_taken_for_one(
    run_type: str, start: datetime | None, end: datetime | None, window: Window | None
) -> None:
    """A daily run goes on from its watermark, whatever its interval is."""
    assert backfilled(SimpleNamespace(run_type=run_type, data_interval_start=start, data_interval_end=end)) == window
