"""The command line as a person uses it: a real Postgres, a real S3 API, the demo supplier; processes where they matter."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sluice.adapters.postgres import conninfo
from sluice.cli.person import os_user
from sluice.flow.admission import admit
from sluice.flow.fetcher import fetch
from sluice.flow.gate import hold
from sluice.flow.reviewer import review
from sluice.flow.sharder import plan_shards
from sluice.flow.transformer import transform
from sluice.model.base import RunId, ShardKey
from sluice.model.run import Origin, ReviewMode, RunRequest
from sluice.ports import ConnectionInfo
from sluice.settings import Settings
from sluice.wiring import open_services
from tests.support.airflow_stub import AirflowStub, asking
from tests.support.command_line import CommandLineHere, command_line
from tests.support.dripping_supplier import dripping
from tests.support.servers import Supplier

HOTELS = 488

HASTY = """
  hasty:
    no_progress_timeout: 3s
    lease_ttl: 6s
    heartbeat: 1s
    chunk_age: 1s
    timeouts: {connect: 1s, read: 1s}
    breaker: {open_for: 1s}
    retry: {attempts: 1}
"""


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLineHere:
    """Return a command line with everything it needs."""
    return command_line(tmp_path, database, artifacts, supplier)


def table_of(database: ConnectionInfo) -> list[tuple[Any, ...]]:
    """Return the published rows."""
    with psycopg.connect(conninfo(database)) as connection:
        return connection.execute("select * from public.hotels order by id").fetchall()


def test_a_run_and_all_that_can_be_asked_about_it(sluice: CommandLineHere, database: ConnectionInfo) -> None:
    """A first load is published, its progress goes to stderr, and runs, show, ledger and review tell of it."""
    first = sluice.apart.call("run", "hotels", "--inline", "--json")
    assert first.returncode == 0, first.stderr
    done = json.loads(first.stdout)
    assert done["run"]["status"] == "succeeded"
    assert done["publication"]["counts"]["created"] == HOTELS
    assert {shard["key"]: shard["status"] for shard in done["shards"]} == {"brittany": "succeeded", "tokyo": "succeeded"}
    assert len(table_of(database)) == HOTELS
    assert "tokyo: done, " in first.stderr

    run = done["run"]["id"]
    assert [listed["id"] for listed in sluice.ask("runs")["runs"]] == [run]
    assert sluice.ask("runs", "--status", "failed")["runs"] == []
    told = sluice.ask("show", run)
    assert [(act["act"], act["by"]["name"]) for act in told.pop("acts")] == [("decide-review", "policy")]
    assert told == {key: done[key] for key in ("run", "shards", "review", "publication", "calls")}
    told = sluice.ask("ledger", "hotels", "node/251055437")
    assert told["object"]["state"] == "live"
    assert [event["outcome"] for event in told["events"]] == ["created"]
    assert sluice.ask("ledger", "node/251055437") == told
    shown = sluice.ask("review", "show", run)
    assert shown["review"]["figures"]["outcomes"] == {"created": HOTELS}
    assert [sample["outcome"] for sample in shown["evidence"]["samples"]] == ["created"] * 20
    assert sluice.ask("review", "list")["reviews"] == []


@pytest.mark.parametrize("trouble", [{"delay": 60}, {"fail": {"status": 429, "retry_after": 60}}], ids=["request", "pause"])
def test_an_interrupted_run_ends_at_once_and_is_gone_on_with(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo, trouble: dict[str, Any]
) -> None:
    """Ctrl-C waits neither for a request under way nor for the pause before the next; the run says so and can go on."""
    supplier.control(**trouble)
    with sluice.start("run", "hotels", "--inline") as process:
        while not supplier.requests():
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.1)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130, told
    assert "it goes on from the last checkpoint" in told
    assert "Traceback" not in told
    (run,) = sluice.ask("runs")["runs"]
    assert (run["status"], run["failure"]["error"]) == ("failed", "Interrupted")
    supplier.control(reset=True)
    assert sluice.ask("run", "hotels", "--inline")["run"]["status"] == "succeeded"
    assert len(table_of(database)) == HOTELS


def test_a_run_that_gave_its_supplier_up_ends_at_once(sluice: CommandLineHere) -> None:
    """What came no further for `no_progress_timeout` has failed; the answer that is still coming in keeps no process."""
    stages = sluice.project / "include/stages.yaml"
    stages.write_text(stages.read_text() + HASTY)
    hotels = sluice.project / "include/syncs/hotels.yaml"
    hotels.write_text(hotels.read_text().replace("stage: hotel-content", "stage: hasty"))
    with dripping() as supplier:
        sluice.define("demo_supplier", supplier)
        told = sluice.apart.ask("run", "hotels", "--inline", "--shards", "tokyo", code=1)
    assert "NoProgress" in told["run"]["failure"]["message"]


def test_a_review_that_waits_is_approved_once(sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo) -> None:
    """A run asked to wait publishes nothing until it is approved; the decision names the account that gave it."""
    waiting = sluice.ask("run", "hotels", "--inline", "--review", "always", code=3)
    review = waiting["review"]["id"]
    with psycopg.connect(conninfo(database)) as connection:
        assert connection.execute("select count(*) from sluice_ledger.object").fetchone() == (0,)
    assert [listed["id"] for listed in sluice.ask("review", "list", "--sync", "hotels")["reviews"]] == [review]
    spoken = sluice.call("show", waiting["run"]["id"])
    assert f"sluice review approve {review}" in spoken.stdout

    done = sluice.ask("review", "approve", review, "--comment", "looks right")
    assert done["run"]["status"] == "succeeded"
    assert len(table_of(database)) == HOTELS
    decision = done["review"]["decision"]
    assert (decision["by"], decision["via"], decision["comment"]) == (os_user(), "cli", "looks right")

    assert sluice.ask("review", "approve", review)["publication"] == done["publication"]
    assert sluice.ask("review", "reject", review, code=1)["error"] == "IllegalTransition"


def test_a_packet_is_written_where_it_is_wanted(sluice: CommandLineHere, supplier: Supplier, tmp_path: Path) -> None:
    """Of a review named by itself or by its run; without the name of a file, to one named after the review."""
    waiting = sluice.ask("run", "hotels", "--inline", "--review", "always", code=3)["review"]
    wanted = tmp_path / "packet.html"
    written = sluice.ask("review", "packet", waiting["run"], "-o", str(wanted))
    assert written == {"review": waiting["id"], "file": str(wanted), "bytes": waiting["report"]["bytes"]}
    assert waiting["digest"] in wanted.read_text()
    assert "cannot write" in sluice.ask("review", "packet", waiting["id"], "-o", str(tmp_path / "no" / "x"), code=2)["message"]
    named = sluice.ask("review", "packet", waiting["id"])["file"]
    assert named == f"hotels-{waiting['id']}.html"
    assert (sluice.project / named).read_bytes() == wanted.read_bytes()


def test_a_review_that_is_rejected_publishes_nothing(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo
) -> None:
    """After a rejection the table is as it was, and the run has ended cancelled."""
    sluice.ask("run", "hotels", "--inline")
    before = table_of(database)
    supplier.control(change=5)
    waiting = sluice.ask("run", "hotels", "--inline", "--review", "always", code=3)
    assert waiting["review"]["figures"]["outcomes"]["changed"] > 0
    done = sluice.ask("review", "reject", waiting["run"]["id"], "--comment", "no")
    assert done["run"]["status"] == "cancelled"
    assert table_of(database) == before


def test_deletions_can_be_left_out_of_an_approval(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo
) -> None:
    """What is gone at the supplier waits for a person, who may publish everything else."""
    sluice.ask("run", "hotels", "--inline")
    supplier.control(drop=5, change=1)
    waiting = sluice.ask("run", "hotels", "--inline", "--mode", "full", code=3)
    assert waiting["review"]["figures"]["outcomes"]["deleted"] > 0
    done = sluice.ask("review", "approve", waiting["run"]["id"], "--without-deletes")
    assert done["publication"]["counts"].get("deleted", 0) == 0
    assert done["publication"]["counts"]["changed"] > 0
    assert len(table_of(database)) == HOTELS


def test_a_failed_shard_makes_a_run_partial(sluice: CommandLineHere, supplier: Supplier) -> None:
    """One region the supplier refuses ends the run with 4, names the shard, and the other is published."""
    supplier.control(fail={"status": 403, "region": "tokyo"})
    done = sluice.call("run", "hotels", "--inline")
    assert done.returncode == 4, done.stderr
    assert "tokyo: failed" in done.stderr
    assert "partial" in done.stdout


def test_a_long_pause_ends_an_inline_run_that_goes_on_later(sluice: CommandLineHere, supplier: Supplier) -> None:
    """Nobody sleeps through it: the run ends with 4, says from when on and how it goes on, and does so from its checkpoint."""
    spec = sluice.project / "include/syncs/hotels.yaml"
    spec.write_text(spec.read_text().replace('limit: "500"', 'limit: "100"'))
    supplier.control(fail={"status": 429, "region": "tokyo", "after": 1, "retry_after": 400})
    done = sluice.call("run", "hotels", "--inline")
    assert done.returncode == 4, done.stderr
    words = " ".join(done.stdout.split())
    assert "It asks for a pause of 400 s. Not before 20" in words
    assert "run it again then, from the last checkpoint on" in words
    asked = [target for target in supplier.requests() if "tokyo" in target]
    supplier.control(fail=None)
    assert sluice.ask("run", "hotels", "--inline")["run"]["status"] == "succeeded"
    again = [target for target in supplier.requests() if "tokyo" in target][len(asked) :]
    assert asked[0] not in again


def test_missing_tables_name_the_command_that_makes_them(sluice: CommandLineHere, empty_database: ConnectionInfo) -> None:
    """On a new database a command says `sluice db upgrade`; that makes the tables, and a second time finds nothing to do."""
    for conn_id in ("sluice_state", "sluice_target"):
        sluice.define(conn_id, empty_database)
    assert "sluice db upgrade" in sluice.ask("runs", code=1)["message"]
    upgraded = sluice.ask("db", "upgrade")["upgraded"]
    assert [(entry["connection"], entry["schema"]) for entry in upgraded] == [
        ("sluice_state", "sluice_state"),
        ("sluice_target", "sluice_ledger"),
    ]
    assert all(entry["applied"] for entry in upgraded)
    assert all(not entry["applied"] for entry in sluice.ask("db", "upgrade")["upgraded"])
    assert sluice.ask("runs")["runs"] == []


def test_what_does_not_exist_is_named(sluice: CommandLineHere) -> None:
    """Unknown runs, reviews, objects and shards are errors that name them."""
    assert "nope" in sluice.ask("show", "nope", code=1)["message"]
    assert "no review 'nope'" in sluice.ask("review", "show", "nope", code=1)["message"]
    assert "no object 'nope'" in sluice.ask("ledger", "hotels", "nope", code=1)["message"]
    assert "no object 'nope'" in sluice.ask("ledger", "nope", code=1)["message"]
    assert "at most one sync" in sluice.ask("ledger", "a", "b", "c", code=2)["message"]
    assert "nope" in sluice.ask("run", "hotels", "--inline", "--shards", "nope", code=2)["message"]


def test_an_unreachable_state_is_named(sluice: CommandLineHere) -> None:
    """A database that does not answer is told as such, with what to look at."""
    sluice.environ["AIRFLOW_CONN_SLUICE_STATE"] = "postgres://u:p@127.0.0.1:1/x"
    done = sluice.apart.call("runs")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "`sluice up` starts a local stack" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def waiting_in_airflow(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo, artifacts: ConnectionInfo
) -> tuple[str, str]:
    """Return the run and review ids of a DagRun that waits at its gate."""
    known = {
        "sluice_state": database,
        "sluice_target": database,
        "sluice_artifacts": artifacts,
        "demo_supplier": supplier.connection,
    }

    class Known:
        def get(self, conn_id: str) -> ConnectionInfo:
            return known[conn_id]

    with open_services(Settings(include=sluice.project / "include"), Known()) as services:
        origin = Origin(dag_id="sluice_hotels", dag_run_id="manual__1")
        request = RunRequest(sync="hotels", review=ReviewMode.ALWAYS, shards=(ShardKey("brittany"),), origin=origin)
        run = admit(services, request, RunId("manual-1"))
        for shard in plan_shards(services, run.id):
            fetch(services, run.id, shard.key)
            transform(services, run.id, shard.key)
        made = review(services, run.id)
        hold(services, run.id)
    return run.id, made.id


def test_a_review_in_airflow_is_answered_there(sluice: CommandLineHere, waiting_in_airflow: tuple[str, str]) -> None:
    """The DagRun's gate gets the answer through Airflow's REST API, named by run or review; state is left to the gate."""
    run, made = waiting_in_airflow
    path = "/api/v2/dags/sluice_hotels/dagRuns/manual__1"
    with AirflowStub() as airflow:
        sluice.define("sluice_airflow", airflow.info)
        assert "asks for no answer now" in sluice.ask("review", "approve", made, code=1)["message"]
        airflow.answers["GET", f"{path}/hitlDetails"] = (200, {"hitl_details": [asking()]})
        airflow.answers["PATCH", f"{path}/taskInstances/gate/-1/hitlDetails"] = (200, {"chosen_options": ["Reject"]})
        answered = sluice.ask("review", "reject", run, "--comment", "no")
        form = {"comment": "no", "review_id": made}
        assert airflow.asked[-1][2] == {"chosen_options": ["Reject"], "params_input": form}
        airflow.answers["GET", f"{path}/hitlDetails"] = (200, {"hitl_details": [asking(state="failed")]})
        assert "an answer changes nothing any more" in sluice.ask("review", "approve", run, code=1)["message"]
    assert (answered["run"], answered["answer"], answered["via"]) == (run, "reject", "airflow")
    assert sluice.ask("show", run)["run"]["status"] == "waiting"
    assert sluice.ask("review", "approve", run, code=1)["error"] == "AirflowUnavailable"


def test_a_run_is_asked_of_airflow_and_followed(sluice: CommandLineHere, waiting_in_airflow: tuple[str, str]) -> None:
    """Without --inline the DAG is triggered with the form filled in; --wait ends with 3 once the run waits for a person."""
    dag = "/api/v2/dags/sluice_hotels"
    with AirflowStub() as airflow:
        sluice.define("sluice_airflow", airflow.info)
        airflow.answers["GET", dag] = (200, {"is_paused": False})
        airflow.answers["POST", f"{dag}/dagRuns"] = (200, {"dag_run_id": "manual__1"})
        asked = sluice.ask("run", "hotels", "--shards", "brittany", "--review", "always", "--mode", "full", "--force")
        assert asked["url"] == f"http://127.0.0.1:{airflow.port}/dags/sluice_hotels/runs/manual__1"
        conf = {"shards": ["brittany"], "review": "always", "mode": "full", "force": True}
        assert airflow.asked[-1][2] == {"logical_date": None, "conf": conf}
        sluice.ask("run", "hotels", "--mode", "replay", "--of", "inline-1")
        assert airflow.asked[-1][2]["conf"] == {"review": "policy", "mode": "replay", "replays": "inline-1"}
        followed = sluice.ask("run", "hotels", "--wait", code=3)
        assert (followed["run"]["id"], followed["review"]["id"]) == waiting_in_airflow
        airflow.answers["POST", f"{dag}/dagRuns"] = (200, {"dag_run_id": "manual__2"})
        airflow.answers["GET", f"{dag}/dagRuns/manual__2"] = (200, {"state": "failed"})
        assert sluice.ask("run", "hotels", "--wait", code=1)["dag_run_id"] == "manual__2"
        airflow.answers["GET", dag] = (200, {"is_paused": True})
        assert sluice.ask("run", "hotels", "--wait", code=1)["is_paused"]


def test_a_run_is_replayed(sluice: CommandLineHere) -> None:
    """What it has fetched is mapped again; `show` says of which run. A run that is none, or none at all, is refused by name."""
    first = sluice.ask("run", "hotels", "--inline")["run"]["id"]
    again = sluice.ask("run", "hotels", "--inline", "--mode", "replay", "--of", first)["run"]
    assert (again["status"], again["mode"], again["replays"]) == ("succeeded", "replay", first)
    assert sluice.ask("show", again["id"])["run"]["replays"] == first
    assert sluice.ask("run", "hotels", "--inline", "--mode", "replay", "--of", "nobody", code=1)["error"] == "NotFound"
    assert sluice.ask("run", "hotels", "--inline", "--mode", "replay", code=2)["error"] == "UsageInvalid"
