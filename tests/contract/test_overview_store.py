"""The contract of `OverviewStore`."""

from sluice.model.alert import Alert, AlertLevel
from sluice.model.base import RunId
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunEvent, Step, Verdict
from sluice.model.review import Figures
from sluice.model.run import Failure, Run
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, NOW, POLICY, a_reject, a_review, a_run, plans

FAILURE = Failure(error="ShardsFailed", message="paris")


def ran(
    stores: Stores, name: str, event: RunEvent, review: Verdict | None = None, *, writes: int = 2, sync: str = "hotels"
) -> Run:
    """Let a run end so, with a review of it or without; return it as it was admitted."""
    run = a_run(name, request_key=name, sync=sync, created_at=NOW)
    stores.runs.open(run, POLICY)
    entered = stores.runs.enter(run.id, Step.REVIEW, MINUTE)
    if review is not None:
        figures = Figures(seen=9, unchanged=7, live_before=9, outcomes={Outcome.CREATED: writes, Outcome.STALE: 4})
        stores.reviews.save(a_review(f"review-{name}", name, sync=sync, verdict=review, figures=figures), entered)
    stores.runs.end(entered, event, FAILURE if event is RunEvent.FAIL else None)
    return run


def test_a_sync_that_never_ran_is_shown_as_such(stores: Stores) -> None:
    """Each that is asked for is in the answer, by name, and no other."""
    ran(stores, "run-1", RunEvent.SUCCEED, sync="rates")
    empty, other = stores.overview.syncs(["rates", "hotels"], 9)
    assert (empty.sync, empty.runs, empty.good_at, empty.published, empty.reviews, empty.letters) == (
        "hotels",
        (),
        None,
        None,
        0,
        0,
    )
    assert (other.sync, [run.id for run in other.runs]) == ("rates", ["run-1"])
    assert stores.overview.syncs([], 9) == []
    assert stores.overview.resting() == []


def test_what_was_published_last_is_found_behind_what_changed_nothing(stores: Stores) -> None:
    """A run that changed nothing, failed or waits has published nothing; one that succeeded is good all the same."""
    ran(stores, "run-1", RunEvent.SUCCEED, Verdict.AUTO_APPROVED)
    ran(stores, "run-2", RunEvent.SUCCEED, Verdict.AUTO_APPROVED, writes=0)
    failed = ran(stores, "run-3", RunEvent.FAIL, Verdict.AUTO_APPROVED)
    stores.alerts.raise_alert(failed, Alert(level=AlertLevel.WARN, runs=1), lambda _: [], MINUTE)
    ran(stores, "run-4", RunEvent.PARK, Verdict.NEEDS_HUMAN)
    (hotels,) = stores.overview.syncs(["hotels"], 3)
    assert [(run.id, run.status) for run in hotels.runs] == [("run-4", "waiting"), ("run-3", "failed"), ("run-2", "succeeded")]
    assert hotels.published is not None
    assert (hotels.published.run, hotels.published.review) == ("run-1", "review-run-1")
    assert hotels.published.outcomes[Outcome.CREATED] == 2
    assert hotels.good_at == NOW
    assert hotels.alert is AlertLevel.WARN
    assert (hotels.reviews, hotels.stage) == (1, "hotel-content")


def test_objects_that_wait_for_a_person_are_counted(stores: Stores) -> None:
    """Those that have a letter each, and those that are lines of one."""
    run = stores.runs.open(a_run(), POLICY)
    (shard,) = stores.shards.plan(run, plans("paris"), {})
    shard = stores.shards.claim(RunId("run-1"), shard.key)
    stores.dead_letters.record(run, shard, [a_reject(f"h{number}", frame=number) for number in range(7)], "rejects-0")
    (hotels,) = stores.overview.syncs(["hotels"], 1)
    assert hotels.letters == 7
