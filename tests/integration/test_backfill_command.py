"""`sluice backfill --inline` as people use it: a plan, a run for each day, resumed where it failed, done again if asked to."""

from pathlib import Path

import psycopg
import pytest

from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere
from tests.support.hotels import asked_for_hotels, hotels_project
from tests.support.servers import Supplier

BACKFILL = ("backfill", "hotel_days", "--shards", "brittany", "--inline")
THREE_DAYS = ("--from", "2026-01-01", "--to", "2026-01-04")


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLineHere:
    """Return a command line whose stage tries twice."""
    return hotels_project(tmp_path, database, artifacts, supplier)


def days(database: ConnectionInfo) -> list[str]:
    """Return the days on which the hotels in the table changed."""
    with psycopg.connect(conninfo(database)) as connection:
        query = "select distinct (updated_at at time zone 'UTC')::date::text from hotel_days order by 1"
        return [day for (day,) in connection.execute(query)]


def marks(database: ConnectionInfo) -> int:
    """Return how many watermarks there are."""
    with psycopg.connect(conninfo(database)) as connection:
        (count,) = connection.execute("select count(*) from sluice_state.watermark").fetchone() or (0,)
        return int(count)


def test_days_are_brought_in_one_by_one(sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo) -> None:
    """What fails stops no other day, is left alone until it is to be resumed, and then goes on; no watermark moves."""
    planned = sluice.ask(*BACKFILL, *THREE_DAYS, "--dry-run")["spans"]
    assert [(span["standing"], span["act"]) for span in planned] == [("missing", "start")] * 3
    assert asked_for_hotels(supplier) == []

    supplier.control(fail={"status": 404, "after": 1, "times": 1})
    brought = sluice.call(*BACKFILL, *THREE_DAYS)
    assert brought.returncode == 1
    assert "2026-01-01: succeeded, 1 of 1 shards" in brought.stderr
    assert "2026-01-02: failed, 0 of 1 shards" in brought.stderr
    assert days(database) == ["2026-01-01", "2026-01-03"]
    assert "3 runs: 1 failed, 2 succeeded" in brought.stdout

    left = sluice.ask(*BACKFILL, *THREE_DAYS, "--reprocess", "failed", "--dry-run")["spans"]
    assert [(span["standing"], span["act"]) for span in left] == [
        ("succeeded", "leave"),
        ("failed", "resume"),
        ("succeeded", "leave"),
    ]
    asked = len(asked_for_hotels(supplier))
    resumed = sluice.ask(*BACKFILL, *THREE_DAYS, "--reprocess", "failed")["spans"]
    assert [(span["standing"], span["shards_done"]) for span in resumed] == [("succeeded", 1)] * 3
    assert [span["run"] for span in resumed][::2] == [span["run"] for span in left][::2]
    assert len(asked_for_hotels(supplier)) == asked + 1
    assert days(database) == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert marks(database) == 0


def test_what_is_done_is_done_again_only_when_asked_to(sluice: CommandLineHere, supplier: Supplier) -> None:
    """In a step of any length, and told in the audit trail; a span in which nothing is left needs nobody to look at it."""
    step = (*THREE_DAYS, "--step", "3d")
    (first,) = sluice.ask(*BACKFILL, *step)["spans"]
    asked = len(asked_for_hotels(supplier))
    assert sluice.ask(*BACKFILL, *step)["spans"] == [first]
    assert len(asked_for_hotels(supplier)) == asked

    supplier.control(change=100)  # all of them, in another month: nothing is left of these days
    (again,) = sluice.ask(*BACKFILL, *step, "--reprocess", "completed")["spans"]
    assert (again["standing"], again["run"] != first["run"]) == ("succeeded", True)
    assert len(asked_for_hotels(supplier)) == asked + 1
    forced = [(act["act"], act["by"]["via"]) for act in sluice.ask("audit", "--run", again["run"])["entries"]]
    assert ("force-run", "cli") in forced


def test_without_airflow_it_says_how_else(sluice: CommandLineHere) -> None:
    """How to start one here, and how to do without; what is no backfill is refused before anything is asked."""
    sluice.environ["AIRFLOW_CONN_SLUICE_AIRFLOW"] = "http://127.0.0.1:9"
    lost = sluice.call("backfill", "hotel_days", *THREE_DAYS)
    assert (lost.returncode, "`sluice up` starts an Airflow here" in lost.stderr, "--inline" in lost.stderr) == (1, True, True)
    assert sluice.ask("backfill", "hotels", *THREE_DAYS, "--inline", code=2)["error"] == "UsageInvalid"
    assert sluice.ask("backfill", "hotel_days", "--inline", code=2)["message"].startswith("--from and --to are missing")
    assert sluice.ask("backfill", "hotel_days", "--inline", "--wait", code=2)["error"] == "UsageInvalid"
    assert sluice.call("backfill", "hotel_days", *THREE_DAYS, "--mode", "incremental").returncode == 2
