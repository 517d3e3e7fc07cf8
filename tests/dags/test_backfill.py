"""Backfills: each of their runs asks for what the supplier dates within its data interval; scheduled runs have no window."""

import io
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from sluice.adapters.airflow_api import AirflowApi
from sluice.adapters.airflow_backfills import AirflowBackfills
from sluice.adapters.spec_files import SpecFiles
from sluice.airflow_glue.params import params_form, run_request
from sluice.airflow_glue.tasks import backfilled
from sluice.cli.backfill.asking import asked_of
from sluice.cli.backfill.board import Board
from sluice.cli.backfill.in_airflow import InAirflow
from sluice.errors import IllegalTransition
from sluice.model.airflow_names import pool_of
from sluice.model.backfill import Reprocess, Standing
from sluice.model.base import ShardKey
from sluice.model.run import Mode, Origin, RunRequest, Window
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo, Services
from tests.dags.conftest import HOME
from tests.dags.driving import DrivenAirflow
from tests.dags.test_run import services
from tests.support.servers import Supplier

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


@dataclass
class Workers:
    """A clock that lets Airflow work off what is queued while somebody waits."""

    airflow: DrivenAirflow
    waits: int = 0

    def now(self) -> datetime:
        """Return the time."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """Return the seconds that have passed."""
        return time.monotonic()

    def wait(self, _: timedelta) -> None:
        """Work off what is queued."""
        self.waits += 1
        assert self.waits < 20, "nothing comes of waiting"
        for run in self.airflow.client.get(f"/api/v2/dags/{DAG}/dagRuns", params={"state": "queued"}).json()["dag_runs"]:
            self.airflow.drive(DAG, run["dag_run_id"])


@dataclass
class Backfilling:
    """`sluice backfill` in this process, of one shard of two days."""

    airflow: DrivenAirflow
    backfills: AirflowBackfills
    state: Services

    def begin(self, reprocess: Reprocess = Reprocess.NONE, step: timedelta = DAY) -> tuple[list[str], InAirflow]:
        """Begin what is planned; return the acts, and what is at work."""
        request = RunRequest(sync="windowed", mode=Mode.FULL, shards=(ShardKey("brittany"),), origin=Origin())
        spec = SpecFiles(HOME / "include").sync("windowed")
        asked = asked_of(spec, request, Window(start=FIRST, end=FIRST + 2 * DAY), step, reprocess)
        services = replace(self.state, clock=Workers(self.airflow))
        work = InAirflow(services, self.backfills, asked, max_active=2)
        plan = work.plan()
        work.begin(plan)
        return [span.act(reprocess).value for span in plan.spans], work

    def standings(self, work: InAirflow) -> list[Standing]:
        """Follow it to its end."""
        with Board(Console(file=io.StringIO())) as board:
            return [span.standing for span in work.follow(board)]


@pytest.fixture
def backfilling(airflow: DrivenAirflow, api: ConnectionInfo) -> Iterator[Backfilling]:
    """What a backfill needs; the DAG is not paused."""
    airflow.client.patch(f"/api/v2/dags/{DAG}", json={"is_paused": False})
    with AirflowApi(api) as opened, services() as state:
        yield Backfilling(airflow, AirflowBackfills(opened, DAG), state)


def test_a_backfill_from_its_plan_to_its_end(backfilling: Backfilling, supplier: Supplier) -> None:
    """A run for each day, in mode full; one that failed is resumed; nothing is deleted, and no watermark moves.

    The runs have the pool of the stage, as scheduled ones do; a second backfill does not begin while one is at work.
    """
    airflow, state = backfilling.airflow, backfilling.state
    supplier.control(fail={"status": 404, "times": 1})
    acts, work = backfilling.begin()
    assert acts == ["start", "start"]
    assert [span.act(Reprocess.COMPLETED).value for span in work.plan().spans] == ["follow", "follow"]
    assert sorted(backfilling.standings(work)) == [Standing.FAILED, Standing.SUCCEEDED]
    with pytest.raises(IllegalTransition, match="is at work, and a DAG has one at a time"):
        backfilling.begin(Reprocess.FAILED)

    known = backfilling.backfills.newest()
    assert known is not None
    assert (known.first, known.last, known.max_active, known.is_over) == (FIRST, FIRST + DAY, 2, False)
    backfilling.backfills.cancel(known.id)
    acts, work = backfilling.begin(Reprocess.FAILED)
    assert sorted(acts) == ["leave", "resume"]
    assert backfilling.standings(work) == [Standing.SUCCEEDED] * 2

    spans = work.spans()
    assert [(span.run.mode, span.run.window) for span in spans if span.run] == [
        (Mode.FULL, Window(start=FIRST + number * DAY, end=FIRST + (number + 1) * DAY)) for number in range(2)
    ]
    assert state.watermarks.of("windowed") == {}
    for span in spans:
        assert span.dag_run is not None
        tasks = airflow.client.get(f"/api/v2/dags/{DAG}/dagRuns/{span.dag_run.id}/taskInstances").json()["task_instances"]
        pools = {task["pool"] for task in tasks if task["task_id"] == "shards.fetch"}
        assert pools == {pool_of("hotel-content")}


def test_what_airflows_own_backfill_cannot_do_is_triggered(backfilling: Backfilling) -> None:
    """A step that is no interval gets a DagRun whose id tells what it is for; given up, it is cleared to begin again."""
    acts, work = backfilling.begin(step=2 * DAY)
    assert (acts, work.pending) == (["start"], 1)
    work.ask_for_more(work.spans())
    (queued,) = backfilling.backfills.queued()
    assert queued.id == work.asked.dag_run_stem(work.asked.whole)
    assert backfilling.begin(step=2 * DAY)[0] == ["follow"]

    backfilling.backfills.give_up(queued.id)
    acts, work = backfilling.begin(Reprocess.FAILED, step=2 * DAY)
    assert (acts, work.pending, backfilling.standings(work)) == (["resume"], 1, [Standing.SUCCEEDED])
    (span,) = work.spans()
    assert span.run is not None
    assert (span.run.mode, span.run.window, span.run.origin.dag_run_id) == (Mode.FULL, work.asked.whole, queued.id)

    acts, work = backfilling.begin(Reprocess.COMPLETED, step=2 * DAY)
    work.ask_for_more(work.spans())
    (again,) = backfilling.backfills.queued()
    assert (acts, again.id) == (["redo"], f"{queued.id}__2")
    conf = backfilling.airflow.client.get(f"/api/v2/dags/{DAG}/dagRuns/{again.id}").json()["conf"]
    assert (conf["force"], conf["shards"]) == (True, ["brittany"])
    backfilling.backfills.give_up(again.id)


def test_the_schedule_has_data_intervals_where_a_window_is_used(airflow_home: object) -> None:
    """Since Airflow gives runs that a cron expression merely triggers none."""
    from airflow.sdk import CronDataIntervalTimetable, CronTriggerTimetable

    from sluice.airflow_glue import sync_dag

    assert sync_dag("windowed").schedule == CronDataIntervalTimetable("@daily", timezone="UTC")
    assert sync_dag("hotels").schedule == CronTriggerTimetable("@daily", timezone="UTC")


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
