"""Acts by hand upon runs that are really at work: a process is stopped or called off, and what it leaves is gone on with."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import psycopg
import pytest

from sluice import log_events
from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.state import PostgresAuditStore, PostgresByHandStore, PostgresRunStore, PostgresShardStore
from sluice.errors import CalledOff, Fenced, IllegalTransition, SluiceError, StateUnavailable
from sluice.flow.inline import resume_inline, run_inline
from sluice.flow.pinned_spec import pinned_ledger
from sluice.flow.redo import publish
from sluice.model.audit import Act
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunStatus, ShardStatus, Step, Verdict
from sluice.model.run import Mode, Origin, ReviewMode, RunRequest
from sluice.ports import ConnectionInfo
from sluice.upkeep.by_hand import cancel_run
from tests.support.command_line import CommandLineHere
from tests.support.hotels import asked_for_hotels, expected, hotels_project, read_until, table_of
from tests.support.nouns import MINUTE, POLICY, a_decision, a_pointer, a_run, an_actor, plans
from tests.support.servers import Supplier
from tests.support.small_project import small_project
from tests.unit.fakes.metrics import MemoryMetrics

BRITTANY = ShardKey("brittany")
WHY = ("--reason", "it floods their API", "--by", "ada")
FULL = ("run", "hotels", "--inline", "--mode", "full")


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLineHere:
    """A command line in a project of small pages."""
    return hotels_project(tmp_path, database, artifacts, supplier)


@contextmanager
def at_work(sluice: CommandLineHere, supplier: Supplier) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Yield a process that has checkpointed some pages of the first region, and its run; the supplier answers when told to."""
    supplier.control(delay=0.2)
    with sluice.start("--verbose", *FULL, "--json", stdout=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert read_until(process.stderr, log_events.CHUNK_CHECKPOINTED, times=2) == 2
        supplier.control(delay=600)
        (run,) = sluice.ask("runs")["runs"]
        yield process, run["id"]


def told_by(process: "subprocess.Popen[str]", code: int) -> Any:
    """Return what the process prints at its end, which is this one."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    return json.loads(out)


def test_a_shard_is_stopped_and_reset_while_a_process_works_on_it(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo
) -> None:
    """Its worker leaves it, and publishes the others; once it is reset, the next run brings it in, each row once."""
    with at_work(sluice, supplier) as (process, run):
        stopped = sluice.ask("shard", "stop", run, "brittany", *WHY)
        asked = len(asked_for_hotels(supplier))
        supplier.control(delay=0)
        told = told_by(process, code=4)
    assert stopped["shard"]["failure"] == {"error": "StoppedByHand", "message": "stopped by ada (cli): it floods their API"}
    assert "sluice shard reset" in stopped["next"]
    assert {shard["key"]: shard["status"] for shard in told["shards"]} == {"brittany": "failed", "tokyo": "succeeded"}
    assert "StoppedByHand: stopped by ada (cli)" in told["run"]["failure"]["message"]
    of_brittany = [target for target in asked_for_hotels(supplier)[asked:] if "brittany" in target]
    assert len(of_brittany) <= 2  # what was under way, and what was asked for ahead
    assert table_of(database) == [row for row in expected(supplier) if row[1] == "tokyo"]

    assert "sluice run hotels --inline" in sluice.ask("shard", "reset", run, "brittany", *WHY)["next"]
    assert sluice.ask(*FULL)["run"]["status"] == "succeeded"
    assert table_of(database) == expected(supplier)
    with psycopg.connect(conninfo(database)) as connection:
        told_of = connection.execute("select key, count(*) from sluice_ledger.object_event group by key").fetchall()
    assert set(Counter(dict(told_of)).values()) == {1}
    acts = [(entry["act"], entry["subject"], entry["by"]["name"]) for entry in sluice.ask("audit", "--run", run)["entries"]]
    assert acts[::-1][:1] + acts[:1] == [("stop-shard", "brittany", "ada"), ("reset-shard", "brittany", "ada")]
    assert [entry["act"] for entry in sluice.ask("show", run)["acts"]] == [act for act, _, _ in acts[::-1]]


def test_a_run_is_cancelled_while_a_process_works_on_it(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo
) -> None:
    """Its worker is fenced at its next write, ends as the run has, and leaves nothing in the table; the flight is free."""
    with at_work(sluice, supplier) as (process, run):
        held = sluice.ask("lease", "list")["leases"]
        cancelled = sluice.ask("cancel", run, *WHY)
        supplier.control(delay=0)
        told = told_by(process, code=1)
    assert [lease["owner"] for lease in held] == [run]
    assert (cancelled["run"]["status"], told["run"]["status"]) == ("cancelled", "cancelled")
    assert told["run"]["failure"]["message"] == "cancelled by ada (cli): it floods their API"
    assert sluice.ask("lease", "list")["leases"] == []
    assert "is cancelled" in sluice.call("cancel", run, *WHY).stdout
    assert [entry["act"] for entry in sluice.ask("audit")["entries"]] == ["cancel-run"]
    assert sluice.ask(*FULL)["run"]["status"] == "succeeded"
    assert table_of(database) == expected(supplier)


def test_a_shard_that_is_skipped_is_no_reason_to_delete(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo
) -> None:
    """The run has succeeded without it, and what the table holds of it stays."""
    sluice.ask(*FULL, "--shards", "tokyo")
    supplier.control(fail={"status": 404, "region": "tokyo", "after": 0})
    waiting = sluice.ask(*FULL, "--review", "always", code=3)
    skipped = sluice.ask("shard", "skip", waiting["run"]["id"], "tokyo", *WHY)
    assert (skipped["shard"]["status"], skipped["shard"]["failure"]) == ("skipped", None)
    done = sluice.ask("review", "approve", waiting["run"]["id"])
    supplier.control(fail=None)
    assert (done["run"]["status"], table_of(database)) == ("succeeded", expected(supplier))
    refused = sluice.call("shard", "skip", waiting["run"]["id"], "brittany", *WHY)
    assert (refused.returncode, "has succeeded, and nothing changes it" in refused.stderr) == (1, True)
    assert sluice.call("shard", "skip", waiting["run"]["id"], "tokyo", "--reason", " ").returncode == 2


def test_an_approval_in_hand_publishes_nothing_of_a_cancelled_run(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier
) -> None:
    """Neither one that was given before, nor one that comes after."""
    with small_project(tmp_path, database, artifacts, supplier, MemoryMetrics()) as services:
        request = RunRequest(sync="hotels", mode=Mode.FULL, review=ReviewMode.ALWAYS, shards=(BRITTANY,), origin=Origin())
        for is_approved, verdict in ((True, Verdict.APPROVED), (False, Verdict.REJECTED)):
            run = run_inline(services, request)
            review = services.reviews.latest(run.id)
            assert review is not None
            if is_approved:
                services.reviews.decide(review.id, a_decision())
            cancel_run(services, run.id, an_actor(), partial(pinned_ledger, services))
            with pytest.raises(CalledOff):
                publish(services, run.id)
            assert resume_inline(services, run.id).status is RunStatus.CANCELLED
            assert services.reviews.get(review.id).verdict is verdict
        assert services.ledger(services.spec("hotels")).publications("hotels", 1) == []


def test_of_a_stop_and_the_shards_own_success_one_is_faster(database: ConnectionInfo) -> None:
    """Whoever comes second is refused, by name: never is a stopped shard succeeded, nor a success lost."""
    known = Database(database, StateUnavailable)
    runs, shards, by_hand = PostgresRunStore(known), PostgresShardStore(known), PostgresByHandStore(known)
    keys = [ShardKey(f"s{number:02}") for number in range(20)]
    runs.open(a_run(), POLICY)
    shards.plan(runs.enter(RunId("run-1"), Step.SHARD, MINUTE), plans(*keys), {})
    start = Barrier(2)

    def attempt(act: Any) -> SluiceError | None:
        start.wait(timeout=30)
        try:
            act()
        except SluiceError as error:
            return error
        return None

    for key in keys:
        done = {"exhausted": True, "chunks": 1}
        claimed = shards.claim(RunId("run-1"), key)
        shard = shards.checkpoint(claimed.model_copy(update=done), a_pointer(shard=key), MINUTE)
        acts = (lambda s=shard: shards.succeed(s), lambda k=key: by_hand.stop_shard(RunId("run-1"), k, an_actor()))
        with ThreadPoolExecutor(2) as people:
            succeeded, stopped = people.map(attempt, acts)
        status = shards.get(RunId("run-1"), key).status
        if succeeded is None:
            assert (status, type(stopped)) == (ShardStatus.SUCCEEDED, IllegalTransition)
        else:
            assert (status, type(succeeded), stopped) == (ShardStatus.FAILED, Fenced, None)
    known.close()


def test_the_audit_trail_cannot_be_changed(database: ConnectionInfo) -> None:
    """Not even with the rights of its owner: entries come, and stay as they are. One of a later release can be read."""
    with psycopg.connect(conninfo(database), autocommit=True) as connection:
        connection.execute("insert into sluice_state.audit (actor, via, act) values ('ada', 'cli', 'discard')")
        connection.execute("insert into sluice_state.audit (actor, via, act) values ('ada', 'cli', 'fold')")
        for change in (
            "update sluice_state.audit set actor = 'eve'",
            "delete from sluice_state.audit",
            "truncate sluice_state.audit",
        ):
            with pytest.raises(psycopg.errors.RestrictViolation, match="kept as it was written"):
                connection.execute(change)
    known = Database(database, StateUnavailable)
    assert [entry.act for entry in PostgresAuditStore(known).of(None, None, 9)] == ["fold", Act.DISCARD]
    known.close()
