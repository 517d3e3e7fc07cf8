"""One request, several processes: one works, the others wait for it, take over when it is killed, or have its result."""

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

WAITS = "waits for run inline-"

Project = Callable[..., CommandLineHere]


@pytest.fixture
def project(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> Project:
    """Return what makes a command line in a project whose stage has this policy."""

    def make(**policy: Any) -> CommandLineHere:
        return hotels_project(tmp_path, database, artifacts, supplier, **policy)

    return make


@contextmanager
def at_work(sluice: CommandLineHere, supplier: Supplier, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """Yield a process that has checkpointed some pages, and whose supplier answers no more until it is told to."""
    supplier.control(delay=0.2)
    with sluice.start("--verbose", "run", "hotels", "--inline", *options) as process:
        assert process.stderr is not None
        assert read_until(process.stderr, log_events.CHUNK_CHECKPOINTED, times=3) == 3
        supplier.control(delay=600)
        yield process


@contextmanager
def following(sluice: CommandLineHere, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """Yield a process that waits for another one's run."""
    with sluice.start("run", "hotels", "--inline", "--json", *options, stdout=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert read_until(process.stderr, WAITS, times=1) == 1
        yield process


def told_by(process: "subprocess.Popen[str]", code: int = 0) -> Any:
    """Return what the process prints at its end, which is this one."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    return json.loads(out)


def pages(supplier: Supplier) -> int:
    """Return how many pages there are."""
    return sum(-(-len(feed(supplier, region)) // PAGE) for region in REGIONS)


def test_of_two_processes_one_works_and_one_follows(project: Project, supplier: Supplier, database: ConnectionInfo) -> None:
    """The second ends with the first one's outcome and publication, and no page is asked for twice."""
    sluice = project()
    with at_work(sluice, supplier) as owner, following(sluice) as follower:
        supplier.control(delay=0)
        told = told_by(follower)
        owner.communicate(timeout=60)
        assert owner.returncode == 0
    (owners_run,) = [run for run in sluice.ask("runs")["runs"] if run["follows"] is None]
    assert (told["run"]["status"], told["run"]["follows"]) == ("succeeded", owners_run["id"])
    assert told["publication"]["run"] == owners_run["id"]
    assert set(Counter(asked_for_hotels(supplier)).values()) == {1}
    assert table_of(database) == expected(supplier)


@pytest.mark.parametrize(("takeover", "goes_on"), [("1d", True), ("0s", False)])
def test_a_follower_takes_over_when_the_owner_is_killed(
    project: Project, supplier: Supplier, database: ConnectionInfo, takeover: str, *, goes_on: bool
) -> None:
    """It asks only for what had not been checkpointed; where the stage wants that, for everything again."""
    sluice = project(takeover=takeover)
    with at_work(sluice, supplier) as owner, following(sluice) as follower:
        owner.kill()
        owner.wait(timeout=30)
        asked, checkpointed = len(asked_for_hotels(supplier)), checkpointed_pages(database)
        supplier.control(delay=0)
        told = told_by(follower)
    assert (told["run"]["status"], told["run"]["follows"]) == ("succeeded", None)
    assert checkpointed >= 3
    assert len(asked_for_hotels(supplier)) - asked == pages(supplier) - (checkpointed if goes_on else 0)
    assert table_of(database) == expected(supplier)
    (dead,) = sluice.ask("runs", "--status", "failed")["runs"]
    assert dead["failure"]["error"] == "TakenOver"


def test_a_partial_outcome_is_everybodys(project: Project, supplier: Supplier) -> None:
    """The follower's exit code, too, is its owner's."""
    sluice = project()
    with at_work(sluice, supplier) as owner, following(sluice) as follower:
        supplier.control(delay=0, fail={"status": 404, "region": "tokyo", "after": 0})
        told = told_by(follower, code=4)
        owner.communicate(timeout=60)
        assert owner.returncode == 4
    assert told["run"]["status"] == "partial"
    assert "shard tokyo: SupplierRefused" in told["run"]["failure"]["message"]


def test_ctrl_c_stops_a_follower_alone(project: Project, supplier: Supplier) -> None:
    """Its run has failed; the owner goes on to its end."""
    sluice = project()
    with at_work(sluice, supplier) as owner, following(sluice) as follower:
        follower.send_signal(signal.SIGINT)
        follower.communicate(timeout=30)
        assert follower.returncode == 130
        supplier.control(delay=0)
        owner.communicate(timeout=60)
        assert owner.returncode == 0
    runs = {run["status"]: run for run in sluice.ask("runs")["runs"]}
    assert runs["failed"]["failure"]["error"] == "Interrupted"
    assert runs["failed"]["follows"] == runs["succeeded"]["id"]


def test_a_follower_waits_no_longer_than_its_stage_wants(project: Project, supplier: Supplier) -> None:
    """It has waited in vain then, and says for whom."""
    sluice = project(wait_timeout="3s")
    with at_work(sluice, supplier) as owner:
        told = sluice.ask("run", "hotels", "--inline", code=1)
        owner.kill()
    assert told["run"]["failure"]["error"] == "WaitedInVain"
    assert f"run {told['run']['follows']} of the same request did not end within 3s" in told["run"]["failure"]["message"]


def test_a_result_is_replayed_while_it_is_recent(project: Project, supplier: Supplier, database: ConnectionInfo) -> None:
    """Asked again in time, nobody works; later, or with --force, all of it is done again."""
    sluice = project(result_ttl="1h")
    first = sluice.ask("run", "hotels", "--inline", "--mode", "full")
    asked = len(asked_for_hotels(supplier))
    replay = sluice.ask("run", "hotels", "--inline", "--mode", "full")
    assert (replay["run"]["status"], replay["run"]["follows"]) == ("succeeded", first["run"]["id"])
    assert replay["publication"]["id"] == first["publication"]["id"]
    assert len(asked_for_hotels(supplier)) == asked

    assert sluice.ask("run", "hotels", "--inline", "--mode", "full", "--force")["run"]["follows"] is None
    assert len(asked_for_hotels(supplier)) == 2 * asked
    with psycopg.connect(conninfo(database)) as connection:
        connection.execute("update sluice_state.run set finished_at = finished_at - interval '1 hour'")
    assert sluice.ask("run", "hotels", "--inline", "--mode", "full")["run"]["follows"] is None
    assert len(asked_for_hotels(supplier)) == 3 * asked


def test_force_waits_for_the_flight_and_then_does_all_of_it_again(project: Project, supplier: Supplier) -> None:
    """The other run's outcome is not taken, nor what it has fetched."""
    sluice = project(result_ttl="1h")
    with at_work(sluice, supplier, "--mode", "full") as owner, following(sluice, "--mode", "full", "--force") as forced:
        supplier.control(delay=0)
        told = told_by(forced)
        owner.communicate(timeout=60)
        assert owner.returncode == 0
    assert (told["run"]["status"], told["run"]["follows"], told["run"]["force"]) == ("succeeded", None, True)
    assert set(Counter(asked_for_hotels(supplier)).values()) == {2}


def checkpointed_pages(database: ConnectionInfo) -> int:
    """Return how many pages state knows of."""
    with psycopg.connect(conninfo(database)) as connection:
        row = connection.execute("select sum(pages) from sluice_state.shard").fetchone()
    return int(row[0]) if row else 0
