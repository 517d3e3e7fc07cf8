"""The main job, end to end: killed and resumed, lied to by its supplier, and decided about by a person."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sluice import log_events
from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere
from tests.support.hotels import PAGE, REGIONS, asked_for_hotels, expected, feed, hotels_project, read_until, table_of
from tests.support.servers import Supplier


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLineHere:
    """Return a command line in a project of small pages, a page to a chunk, and short leases."""
    return hotels_project(tmp_path, database, artifacts, supplier)


def test_a_killed_run_goes_on_from_its_last_checkpoint(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo
) -> None:
    """After SIGKILL in mid-fetch the next run asks only for pages behind the last checkpoint, and publishes all."""
    with sluice.start("--verbose", "run", "hotels", "--inline") as process:
        assert process.stderr is not None
        checkpointed = read_until(process.stderr, log_events.CHUNK_CHECKPOINTED, times=9)
        process.kill()
    assert checkpointed == 9
    asked_before = asked_for_hotels(supplier)
    with psycopg.connect(conninfo(database)) as connection:
        row = connection.execute("select sum(pages) from sluice_state.shard").fetchone()
    kept = int(row[0]) if row else 0
    assert kept >= 9

    done = sluice.ask("run", "hotels", "--inline")
    asked_after = asked_for_hotels(supplier)[len(asked_before) :]
    total = sum(-(-len(feed(supplier, region)) // PAGE) for region in REGIONS)
    assert done["run"]["status"] == "succeeded"
    assert len(asked_after) == total - kept
    assert max(Counter([*asked_before, *asked_after]).values()) <= 2
    assert table_of(database) == expected(supplier)


def test_a_second_run_is_incremental_and_publishes_nothing(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo
) -> None:
    """Run again, only what changed since the watermark is asked for, nothing is written, and a change then arrives."""
    sluice.ask("run", "hotels", "--inline")
    first = len(asked_for_hotels(supplier))
    again = sluice.ask("run", "hotels", "--inline")
    assert (again["run"]["status"], again["run"]["mode"], again["publication"]) == ("succeeded", "incremental", None)
    assert len(asked_for_hotels(supplier)) - first == len(REGIONS)

    supplier.control(change=2)
    third = sluice.ask("run", "hotels", "--inline")
    assert third["publication"]["counts"] == {"changed": round(0.02 * len(expected(supplier)))}
    assert table_of(database) == expected(supplier)


def test_an_approval_publishes_exactly_what_was_reviewed(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo
) -> None:
    """What the supplier says after the review has no part in what is published by its approval."""
    waiting = sluice.ask("run", "hotels", "--inline", "--review", "always", code=3)
    reviewed = expected(supplier)
    supplier.control(change=30)
    sluice.ask("review", "approve", waiting["review"]["id"])
    assert table_of(database) == reviewed


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        ({"fail": {"status": 500, "region": "tokyo", "after": 3}}, "SupplierUnavailable"),
        ({"garbage": {"kind": "html", "region": "tokyo", "after": 3}}, "AnswerNotJson"),
        ({"garbage": {"kind": "truncated", "region": "tokyo", "after": 3}}, "AnswerNotJson"),
        ({"garbage": {"kind": "stuck-cursor", "region": "tokyo", "after": 3}}, "CursorStuck"),
    ],
    ids=lambda value: value if isinstance(value, str) else json.dumps(value)[:30],
)
def test_a_supplier_that_fails_midway_costs_that_shard_alone_and_loses_nothing(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo, trouble: dict[str, Any], error: str
) -> None:
    """The error is named, the pages before it are kept, the other shard is published, and the next run brings the rest."""
    supplier.control(**trouble)
    failed = sluice.ask("run", "hotels", "--inline", code=4)
    assert failed["run"]["status"] == "partial"
    assert error in failed["run"]["failure"]["message"]
    tokyo = next(shard for shard in failed["shards"] if shard["key"] == "tokyo")
    assert (tokyo["status"], tokyo["pages"] >= 3) == ("failed", True)
    assert {region for _, region, *_ in table_of(database)} == {"brittany"}

    supplier.control(fail=None, garbage=None)
    before = len(asked_for_hotels(supplier))
    assert sluice.ask("run", "hotels", "--inline")["run"]["status"] == "succeeded"
    assert table_of(database) == expected(supplier)
    missing = -(-len(feed(supplier, "tokyo")) // PAGE) - tokyo["pages"]
    assert len(asked_for_hotels(supplier)) - before - missing < PAGE


def test_an_empty_answer_deletes_nothing(sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo) -> None:
    """A supplier that answers 200 with an empty list is an outage: the review is blocked and the table stays."""
    sluice.ask("run", "hotels", "--inline")
    before = table_of(database)
    supplier.control(garbage="empty")
    blocked = sluice.ask("run", "hotels", "--inline", "--mode", "full", code=3)
    assert blocked["review"]["verdict"] == "blocked"
    assert blocked["review"]["reasons"] == ["the supplier delivered nothing"]
    assert table_of(database) == before


def test_the_run_after_a_failed_one_brings_what_both_are_for(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo
) -> None:
    """A day on which the supplier failed moves no watermark, so that the next day's run asks from the day before on."""
    sluice.ask("run", "hotels", "--inline")
    first = table_of(database)
    missed = set(supplier.control(change=2)["changed"])
    supplier.control(fail={"status": 404, "times": len(REGIONS)})
    assert sluice.ask("run", "hotels", "--inline", code=1)["run"]["status"] == "failed"
    assert table_of(database) == first

    later = set(supplier.control(change=2)["changed"])
    assert missed - later
    next_day = sluice.ask("run", "hotels", "--inline")
    assert (next_day["run"]["status"], next_day["run"]["mode"]) == ("succeeded", "incremental")
    assert next_day["publication"]["counts"] == {"changed": len(missed | later)}
