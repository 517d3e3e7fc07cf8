"""The main job, end to end: killed and resumed, lied to by its supplier, and decided about by a person."""

import json
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import psycopg
import pytest
import urllib3
import yaml

from sluice import log_events
from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLine, copy_project
from tests.support.servers import Supplier

PAGE = 20
REGIONS = ("brittany", "tokyo")


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLine:
    """Return a command line in a project of small pages, a page to a chunk, and short leases."""
    project = copy_project(tmp_path)
    _edit(project / "include/syncs/hotels.yaml", lambda spec: spec["source"]["query"].update(limit=str(PAGE)))
    _edit(
        project / "include/stages.yaml",
        lambda stages: stages["defaults"].update(
            chunk_bytes=1, lease_ttl="2s", heartbeat="0.5s", retry={"attempts": 2, "base": "0s", "cap": "0s"}
        ),
    )
    known = {
        "sluice_state": database,
        "sluice_target": database,
        "sluice_artifacts": artifacts,
        "demo_supplier": supplier.connection,
    }
    return CommandLine(project, known)


def test_a_killed_run_goes_on_from_its_last_checkpoint(
    sluice: CommandLine, supplier: Supplier, database: ConnectionInfo
) -> None:
    """After SIGKILL in mid-fetch the next run asks only for pages behind the last checkpoint, and publishes all."""
    with sluice.start("--verbose", "run", "hotels", "--inline") as process:
        assert process.stderr is not None
        checkpointed = _read_until(process.stderr, log_events.CHUNK_CHECKPOINTED, times=9)
        process.kill()
    assert checkpointed == 9
    asked_before = _hotel_requests(supplier)
    with psycopg.connect(conninfo(database)) as connection:
        row = connection.execute("select sum(pages) from sluice_state.shard").fetchone()
    kept = int(row[0]) if row else 0
    assert kept >= 9

    done = sluice.ask("run", "hotels", "--inline")
    asked_after = _hotel_requests(supplier)[len(asked_before) :]
    total = sum(-(-len(_feed(supplier, region)) // PAGE) for region in REGIONS)
    assert done["run"]["status"] == "succeeded"
    assert len(asked_after) == total - kept
    assert max(Counter([*asked_before, *asked_after]).values()) <= 2
    assert _table(database) == _expected(supplier)


def test_a_second_run_is_incremental_and_publishes_nothing(
    sluice: CommandLine, supplier: Supplier, database: ConnectionInfo
) -> None:
    """Run again, only what changed since the watermark is asked for, nothing is written, and a change then arrives."""
    sluice.ask("run", "hotels", "--inline")
    first = len(_hotel_requests(supplier))
    again = sluice.ask("run", "hotels", "--inline")
    assert (again["run"]["status"], again["run"]["mode"], again["publication"]) == ("succeeded", "incremental", None)
    assert len(_hotel_requests(supplier)) - first == len(REGIONS)

    supplier.control(change=2)
    third = sluice.ask("run", "hotels", "--inline")
    assert third["publication"]["counts"] == {"changed": round(0.02 * len(_expected(supplier)))}
    assert _table(database) == _expected(supplier)


def test_an_approval_publishes_exactly_what_was_reviewed(
    sluice: CommandLine, supplier: Supplier, database: ConnectionInfo
) -> None:
    """What the supplier says after the review has no part in what is published by its approval."""
    waiting = sluice.ask("run", "hotels", "--inline", "--review", "always", code=3)
    reviewed = _expected(supplier)
    supplier.control(change=30)
    sluice.ask("review", "approve", waiting["review"]["id"])
    assert _table(database) == reviewed


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
    sluice: CommandLine, supplier: Supplier, database: ConnectionInfo, trouble: dict[str, Any], error: str
) -> None:
    """The error is named, the pages before it are kept, the other shard is published, and the next run brings the rest."""
    supplier.control(**trouble)
    failed = sluice.ask("run", "hotels", "--inline", code=4)
    assert failed["run"]["status"] == "partial"
    assert error in failed["run"]["failure"]["message"]
    tokyo = next(shard for shard in failed["shards"] if shard["key"] == "tokyo")
    assert (tokyo["status"], tokyo["pages"] >= 3) == ("failed", True)
    assert {region for _, region, *_ in _table(database)} == {"brittany"}

    supplier.control(fail=None, garbage=None)
    before = len(_hotel_requests(supplier))
    assert sluice.ask("run", "hotels", "--inline")["run"]["status"] == "succeeded"
    assert _table(database) == _expected(supplier)
    missing = -(-len(_feed(supplier, "tokyo")) // PAGE) - tokyo["pages"]
    assert len(_hotel_requests(supplier)) - before - missing < PAGE


def test_an_empty_answer_deletes_nothing(sluice: CommandLine, supplier: Supplier, database: ConnectionInfo) -> None:
    """A supplier that answers 200 with an empty list is an outage: the review is blocked and the table stays."""
    sluice.ask("run", "hotels", "--inline")
    before = _table(database)
    supplier.control(garbage="empty")
    blocked = sluice.ask("run", "hotels", "--inline", "--mode", "full", code=3)
    assert blocked["review"]["verdict"] == "blocked"
    assert blocked["review"]["reasons"] == ["the supplier delivered nothing"]
    assert _table(database) == before


def test_two_runs_of_one_request_do_not_both_work(sluice: CommandLine, supplier: Supplier, database: ConnectionInfo) -> None:
    """Started twice at once, one works; the other is refused, naming it, and the table is right."""
    supplier.control(delay=0.25)
    with sluice.start("--verbose", "run", "hotels", "--inline") as first:
        assert first.stderr is not None
        assert _read_until(first.stderr, log_events.CHUNK_CHECKPOINTED, times=1) == 1
        refused = sluice.ask("run", "hotels", "--inline", code=1)
        assert refused["error"] == "FlightTaken"
        supplier.control(delay=0)
        first.communicate(timeout=60)
        assert first.returncode == 0
    assert _table(database) == _expected(supplier)


def _edit(path: Path, change: Any) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def _read_until(lines: IO[str], event: str, times: int) -> int:
    seen = 0
    for line in lines:
        seen += event in line
        if seen == times:
            break
    return seen


def _hotel_requests(supplier: Supplier) -> list[str]:
    return [target for target in supplier.requests() if "quiet=1" not in target]


def _feed(supplier: Supplier, region: str) -> list[dict[str, Any]]:
    """Return all hotels of a region, as they are now, without leaving a trace among the supplier's requests."""
    answer = urllib3.request("GET", f"{supplier.url}/hotels?region={region}&limit=10000&quiet=1", retries=False)
    return list(json.loads(answer.data, parse_float=Decimal)["hotels"])


def _expected(supplier: Supplier) -> list[tuple[Any, ...]]:
    hotels: Iterable[dict[str, Any]] = [hotel for region in REGIONS for hotel in _feed(supplier, region)]
    return sorted(
        (hotel["id"], hotel["region"], hotel["name"], hotel["location"]["lat"], hotel["location"]["lon"], hotel["tags"])
        for hotel in hotels
    )


def _table(database: ConnectionInfo) -> list[tuple[Any, ...]]:
    columns = "id, region, name, latitude, longitude, tags"
    with psycopg.connect(conninfo(database)) as connection:
        rows = connection.execute(f"select {columns} from public.hotels where _sluice_deleted_at is null").fetchall()
    return sorted(rows)
