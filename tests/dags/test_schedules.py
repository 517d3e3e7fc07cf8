"""Schedules as Airflow's own scheduler keeps them: no night missed, no storm after a pause, and what publications begin."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from sluice.airflow_glue.schedules import schedules
from sluice.cli.backfill.spans import scheduled_spans
from sluice.model.run import Window
from sluice.model.schedule import Schedule
from tests.dags.driving import DrivenAirflow
from tests.support.servers import Supplier

DAILY, CONSUMER = "sluice_hotel_days", "hotels_report"
Begun = Callable[[], list[Any]]
"""Lets the scheduler look once; returns the runs of the DAG that it has begun so far."""


@pytest.fixture
def scheduled(airflow_session: DrivenAirflow) -> Iterator[Callable[[str], Begun]]:
    """Let the scheduler look after one DAG alone."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    watched: list[str] = []

    def alone(dag_id: str) -> Begun:
        watched.append(dag_id)
        airflow_session.pause("%", paused=True)
        airflow_session.pause(dag_id, paused=False)

        def begun() -> list[Any]:
            airflow_session.let_scheduler_look()
            with create_session() as session:
                return session.query(DagRun).filter_by(dag_id=dag_id, state="running").order_by(DagRun.id).all()

        return begun

    yield alone
    with create_session() as session:
        for dag_id in watched:
            airflow_session.pause(dag_id, paused=True)
            session.query(DagRun).filter_by(dag_id=dag_id).delete()


@pytest.mark.parametrize(
    ("cron", "zone"),
    [
        ("30 2 * * *", "UTC"),
        ("30 2 * * *", "Europe/Berlin"),
        ("@daily", "Europe/Berlin"),
        ("@hourly", "Europe/Berlin"),
        ("*/30 * * * *", "Europe/Berlin"),
        ("0 */6 * * *", "America/New_York"),
        ("15 2 * * *", "Australia/Lord_Howe"),
    ],
)
@pytest.mark.parametrize("month", [3, 4, 10, 11])
def test_a_backfill_s_spans_are_airflow_s_intervals(cron: str, zone: str, month: int) -> None:
    """In the months in which clocks change as in others; and between two of them there is neither gap nor overlap."""
    import pendulum
    from airflow.sdk import CronDataIntervalTimetable
    from airflow.serialization.encoders import coerce_to_core_timetable
    from airflow.timetables.base import TimeRestriction

    timetable: Any = coerce_to_core_timetable(CronDataIntervalTimetable(cron, timezone=zone))
    within = Window(start=datetime(2026, month, 1, tzinfo=UTC), end=datetime(2026, month, 20, tzinfo=UTC))
    if month in (3, 10):
        within = Window(start=datetime(2026, month, 20, tzinfo=UTC), end=datetime(2026, month + 1, 1, tzinfo=UTC))
    restriction = TimeRestriction(pendulum.instance(within.start), pendulum.instance(within.end), catchup=True)
    intervals, last = [], None
    while (info := timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)) is not None:
        last = info.data_interval
        if last.end <= within.end:
            intervals.append((last.start, last.end))
    assert all(earlier[1] == later[0] for earlier, later in pairwise(intervals))
    spans = scheduled_spans(Schedule(cron=cron, zone=zone), within)
    assert [(span.start, span.end) for span in spans] == intervals


def test_a_pause_of_days_ends_in_one_run(airflow_session: DrivenAirflow, scheduled: Callable[[str], Begun]) -> None:
    """It is that of the last whole day; the days before, which no watermark forgets, are not caught up with one by one."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    airflow_session.remember_scheduled_run(DAILY, midnight - timedelta(days=6), midnight - timedelta(days=5))
    begun = scheduled(DAILY)
    first = begun()
    assert [(run.data_interval_start, run.data_interval_end) for run in first] == [(midnight - timedelta(days=1), midnight)]
    assert [run.run_id for run in begun()] == [run.run_id for run in first]


def test_what_depends_on_a_sync_runs_after_its_publications_alone(
    airflow: DrivenAirflow, scheduled: Callable[[str], Begun], supplier: Supplier
) -> None:
    """A publication begins one run of a DAG that is scheduled on the asset.

    A run that finds nothing new skips publishing, emits no asset event, is green, and begins none.
    """
    begun = scheduled(CONSUMER)
    before = len(airflow.asset_events("x-sluice://hotels"))
    published = airflow.trigger("sluice_hotels")
    airflow.drive("sluice_hotels", published)
    (run,) = begun()
    assert run.run_type == "asset_triggered"
    asked = airflow.client.get(f"/api/v2/dags/{CONSUMER}/dagRuns/{run.run_id}/upstreamAssetEvents").json()
    hotels = supplier.control(delay=0)["hotels"]
    ours = [event for event in asked["asset_events"] if event["source_run_id"] == published]
    assert [event["extra"]["counts"] for event in ours] == [{"created": hotels}]

    states = airflow.drive("sluice_hotels", airflow.trigger("sluice_hotels"))
    assert (states[""], states["publish"]) == ("success", "skipped")
    assert [one.run_id for one in begun()] == [run.run_id]
    assert len(airflow.asset_events("x-sluice://hotels")) == before + 1


def test_the_pages_know_whose_clocks_a_schedule_goes_by(airflow_session: DrivenAirflow) -> None:
    """Airflow's own list of DAGs does not tell."""
    assert schedules()["sluice_grouped"].zone == "Europe/Berlin"
    assert schedules()["sluice_hotels"].model_copy(update={"is_paused": False}) == Schedule(cron="0 0 * * *")
