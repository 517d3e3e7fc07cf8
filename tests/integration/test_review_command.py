"""`sluice review` as a person uses it: mass deletion let through once, who may answer, and answers that come too late."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere, command_line
from tests.support.servers import Supplier


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLineHere:
    """Return a command line with everything it needs."""
    return command_line(tmp_path, database, artifacts, supplier)


def declare(sluice: CommandLineHere, **review: Any) -> None:
    """Put these lines into the sync's review policy."""
    path = sluice.project / "include/syncs/hotels.yaml"
    spec = yaml.safe_load(path.read_text())
    spec["review"].update(review)
    path.write_text(yaml.safe_dump(spec, sort_keys=False))


def live(database: ConnectionInfo) -> int:
    """Return how many hotels the table has."""
    with psycopg.connect(conninfo(database)) as connection:
        (count,) = connection.execute("select count(*) from hotels where _sluice_deleted_at is null").fetchone() or (0,)
        return int(count)


def test_a_mass_deletion_is_let_through_by_its_number(
    sluice: CommandLineHere, supplier: Supplier, database: ConnectionInfo
) -> None:
    """Listed and shown with all that a person decides by; a bare yes is refused and says what to answer."""
    sluice.ask("run", "hotels", "--inline")
    before = live(database)
    supplier.control(drop=30)
    waiting = sluice.ask("run", "hotels", "--inline", "--mode", "full", code=3)
    review = waiting["review"]["id"]
    deleted = waiting["review"]["figures"]["outcomes"]["deleted"]
    (listed,) = sluice.ask("review", "list")["reviews"]
    assert (listed["id"], listed["verdict"], listed["deletions"], listed["writes"]) == (review, "blocked", deleted, deleted)
    assert listed["expires_at"] > listed["created_at"]

    refused = sluice.ask("review", "approve", review, code=1)
    assert refused["error"] == "DecisionRefused"
    assert f"approve with deletes_at_most {deleted} or more" in refused["message"]
    assert sluice.ask("review", "approve", review, f"--deletes-at-most={deleted - 1}", code=1)["error"] == "DecisionRefused"
    assert (
        sluice.ask("review", "approve", review, "--deletes-at-most=1", "--without-deletes", code=2)["error"] == "UsageInvalid"
    )
    assert live(database) == before

    done = sluice.ask("review", "approve", review, f"--deletes-at-most={deleted}", "--comment", "they have closed")
    assert (done["publication"]["counts"], live(database)) == ({"deleted": deleted}, before - deleted)
    shown = sluice.ask("review", "show", review)
    assert shown["review"]["decision"]["deletes_at_most"] == deleted
    assert {sample["outcome"] for sample in shown["evidence"]["samples"]} == {"deleted"}
    assert f"at most {deleted} deletions: they have closed" in sluice.call("review", "show", review).stdout


def test_answers_that_are_not_for_this_person_or_this_review(sluice: CommandLineHere) -> None:
    """Whoever is no approver is told who is; whoever answers a superseded review, which one to look at."""
    declare(sluice, approvers=["somebody.else"])
    older = sluice.ask("run", "hotels", "--inline", "--review", "always", code=3)
    refused = sluice.ask("review", "reject", older["run"]["id"], code=1)
    assert refused["error"] == "DecisionRefused"
    assert "somebody.else may (review.approvers)" in refused["message"]

    newer = sluice.ask("run", "hotels", "--inline")
    assert newer["run"]["status"] == "succeeded"
    late = sluice.ask("review", "approve", older["review"]["id"], code=1)
    assert late["error"] == "IllegalTransition"
    assert f"is superseded by review {newer['review']['id']} of run {newer['run']['id']}" in late["message"]
    assert sluice.ask("show", older["run"]["id"])["run"]["status"] == "cancelled"
    assert sluice.ask("review", "list")["reviews"] == []
