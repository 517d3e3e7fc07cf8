"""Settlement: what a run has come to, by its shards, its review and what is published of it."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.flow.settlement import settle
from sluice.guard.takeover import taken_over_by
from sluice.model.alert import AlertLevel
from sluice.model.base import PublicationId, ReviewId, RunId
from sluice.model.ledger import Outcome, Publication
from sluice.model.lifecycle import APPROVALS, FINAL_RUN_STATUSES, RunStatus, ShardStatus, Step, Verdict
from sluice.model.run import Failure, Run
from sluice.model.stage import Alerts, StagePolicy
from tests.support.nouns import NOW, a_decision, a_review
from tests.unit.flow.workshop import NORTH, RUN, SOUTH, Workshop

REFUSED = Failure(error="SupplierRefused", message="403 Forbidden")
ALL, SOME, NONE = "all shards came in", "one failed", "none came in"
LOST = "ShardsFailed: shard north: SupplierRefused: 403 Forbidden"
UNASKED = "ReviewNotApproved: review r is {}: to be asked about it, clear the task `gate` with downstream"
UNANSWERED = "ReviewNotApproved: review r was not answered in time: trigger the run again to have it reviewed again"
UNPUBLISHED = "RunIncomplete: review r was not published"


class Bench:
    """A run whose steps are over, one way or another."""

    def __init__(self, shards: str = ALL, verdict: Verdict | None = Verdict.APPROVED, *, published: bool = True) -> None:
        self.workshop = Workshop()
        self.target = self.workshop.equip()
        run = self.workshop.begin()
        if shards == ALL:
            self.put(NORTH, ShardStatus.SUCCEEDED)
        else:
            self.put(NORTH, ShardStatus.FAILED, REFUSED)
        self.put(SOUTH, ShardStatus.SUCCEEDED if shards != NONE else ShardStatus.PENDING)
        if verdict:
            self.workshop.services.reviews.save(a_review("r", verdict=verdict), run)
        if published:
            counts = {Outcome.CREATED: 1}
            self.target.ledger.published.append(
                Publication(id=PublicationId(1), sync="hotels", review=ReviewId("r"), run=RUN, counts=counts, applied_at=NOW)
            )

    def put(self, key: str, status: ShardStatus, failure: Failure | None = None) -> None:
        """Put a shard into a state."""
        memory = self.workshop.memory
        memory.shards[RUN, key] = memory.shards[RUN, key].model_copy(update={"status": status, "failure": failure})

    def settle(self) -> Run:
        """Run the step."""
        return settle(self.workshop.services, RUN)

    def outcome(self) -> tuple[RunStatus, str | None]:
        """Run the step, and tell what it made of the run."""
        run = self.settle()
        return run.status, f"{run.failure.error}: {run.failure.message}" if run.failure else None


@pytest.mark.parametrize(
    ("shards", "verdict", "published", "status", "failure"),
    [
        (ALL, None, False, RunStatus.FAILED, "RunIncomplete: nothing was reviewed"),
        (SOME, None, False, RunStatus.FAILED, LOST),
        (NONE, None, False, RunStatus.FAILED, "ShardsFailed: shard north, and 1 more: SupplierRefused: 403 Forbidden"),
        *(
            (shards, verdict, False, RunStatus.CANCELLED, f"ReviewNotApproved: review r was {verdict}")
            for shards in (ALL, SOME)
            for verdict in (Verdict.REJECTED, Verdict.SUPERSEDED)
        ),
        *(
            (shards, verdict, False, RunStatus.FAILED, UNASKED.format(verdict))
            for shards in (ALL, SOME)
            for verdict in (Verdict.NEEDS_HUMAN, Verdict.BLOCKED)
        ),
        *((shards, Verdict.EXPIRED, False, RunStatus.FAILED, UNANSWERED) for shards in (ALL, SOME)),
        *((shards, verdict, False, RunStatus.FAILED, UNPUBLISHED) for shards in (ALL, SOME) for verdict in sorted(APPROVALS)),
        *((ALL, verdict, True, RunStatus.SUCCEEDED, None) for verdict in sorted(APPROVALS)),
        *((SOME, verdict, True, RunStatus.PARTIAL, LOST) for verdict in sorted(APPROVALS)),
    ],
)
def test_what_a_run_has_come_to(
    shards: str, verdict: Verdict | None, published: bool, status: RunStatus, failure: str | None
) -> None:
    """Only an approved and published review makes a run succeed, and only if no shard is missing."""
    assert Bench(shards, verdict, published=published).outcome() == (status, failure)


@pytest.mark.parametrize(("shards", "status"), [(ALL, RunStatus.SUCCEEDED), (SOME, RunStatus.PARTIAL)])
def test_a_review_that_changes_nothing_needs_no_publication(shards: str, status: RunStatus) -> None:
    """There is nothing to publish, so nothing is missing."""
    bench = Bench(shards, Verdict.AUTO_APPROVED, published=False)
    reviews = bench.workshop.memory.reviews
    (review,) = reviews.values()
    unchanged = review.figures.model_copy(update={"outcomes": {Outcome.REFRESHED: 2, Outcome.REJECTED: 1}})
    reviews[review.id] = review.model_copy(update={"figures": unchanged})
    assert bench.outcome()[0] is status


def test_a_skipped_shard_is_not_missing() -> None:
    """A person has decided that it need not come in."""
    bench = Bench()
    bench.put(SOUTH, ShardStatus.SKIPPED)
    assert bench.outcome() == (RunStatus.SUCCEEDED, None)


@pytest.mark.parametrize("left", [ShardStatus.PENDING, ShardStatus.RUNNING])
def test_a_shard_that_was_left_unfinished_is_missing(left: ShardStatus) -> None:
    """It has no failure of its own, and is named all the same."""
    bench = Bench()
    bench.put(SOUTH, left)
    assert bench.outcome() == (
        RunStatus.PARTIAL,
        "ShardsFailed: shard south: not finished, and its worker has not said why: look at its log",
    )


def test_the_newest_review_counts() -> None:
    """What became of an earlier one is history: here it was published before a failed shard came in late."""
    bench = Bench()
    run = bench.workshop.memory.runs[RUN]
    bench.workshop.services.reviews.save(a_review("r2", verdict=Verdict.AUTO_APPROVED), run)
    assert bench.outcome() == (RunStatus.FAILED, "RunIncomplete: review r2 was not published")


def test_a_shard_that_came_in_after_the_review_is_missing_from_what_is_published() -> None:
    """Nothing failed any more, and yet the run is not whole: it has to be reviewed again."""
    bench = Bench()
    reviews = bench.workshop.memory.reviews
    (review,) = reviews.values()
    reviews[review.id] = review.model_copy(update={"figures": review.figures.model_copy(update={"shards_failed": 1})})
    message = "RunIncomplete: shards came in after review r was made: review the run again"
    assert bench.outcome() == (RunStatus.PARTIAL, message)


@pytest.mark.parametrize("status", sorted(FINAL_RUN_STATUSES))
def test_a_run_that_is_over_stays_as_it_is(status: RunStatus) -> None:
    """Why a step has ended it is not overwritten, nor is its token spent."""
    bench = Bench()
    runs = bench.workshop.memory.runs
    runs[RUN] = ended = runs[RUN].model_copy(update={"status": status, "failure": REFUSED})
    assert bench.settle() == ended
    assert runs[RUN] == ended


@pytest.mark.parametrize("shards", [ALL, SOME])
def test_settling_twice(shards: str) -> None:
    """The second time finds what the first one wrote, and the flight is free."""
    bench = Bench(shards)
    first = bench.settle()
    assert bench.settle() == first
    assert first.finished_at is not None
    assert bench.workshop.memory.leases == {}


def alerts_of(bench: Bench) -> list[dict[str, object]]:
    """Settle the run, and return the alerts that raises."""
    with capture_logs() as logs:
        bench.settle()
    return [entry for entry in logs if entry["event"] == log_events.ALERT_RAISED]


def failed_before(bench: Bench, times: int) -> None:
    """Let so many runs of the sync have failed before this one."""
    runs = bench.workshop.memory.runs
    present = runs.pop(RUN)
    for number in range(times):
        name = RunId(f"earlier-{number}")
        runs[name] = present.model_copy(update={"id": name, "status": RunStatus.FAILED})
    runs[RUN] = present


def test_a_run_that_fails_raises_an_alert() -> None:
    """It names the sync, how often in a row it failed, and why."""
    assert alerts_of(Bench(SOME)) == [
        {
            "event": log_events.ALERT_RAISED,
            "log_level": "warning",
            "sync": "hotels",
            "stage": "hotel-content",
            "run": RUN,
            "incident": 1,
            "alert": "warn",
            "runs": 1,
            "failure": LOST,
        }
    ]


@pytest.mark.parametrize(
    ("alerts", "told"),
    [
        (Alerts(warn=1, page=2), ["page"]),
        (Alerts(warn=2, page=3), ["warn"]),
        (Alerts(warn=3, page=3), []),
    ],
)
def test_stages_differ_in_when_somebody_is_told(alerts: Alerts, told: list[str]) -> None:
    """The second failure in a row wakes somebody, is warned of, or is not told yet, as the stage has it."""
    bench = Bench(SOME)
    bench.workshop.policy = StagePolicy(alerts=alerts)
    failed_before(bench, 1)
    assert [entry["alert"] for entry in alerts_of(bench)] == told


def test_an_alert_is_raised_once_for_each_incident() -> None:
    """Whoever settles it again, or another run that fails, finds that it was told."""
    bench = Bench(SOME)
    told = [len(alerts_of(bench)), len(alerts_of(bench))]
    failed_before(bench, 1)
    told.append(len(alerts_of(bench)))
    (incident,) = bench.workshop.memory.incidents
    assert (told, incident.level, incident.run) == ([1, 0, 0], AlertLevel.WARN, RUN)
    assert bench.workshop.metrics.of("alerts", stage="hotel-content", tidings="warn") == 1


def test_an_incident_ends_with_a_run_that_succeeds() -> None:
    """That is told as well, once."""
    bench = Bench(SOME)
    bench.settle()
    bench.put(NORTH, ShardStatus.SUCCEEDED)
    runs = bench.workshop.memory.runs
    runs[RUN] = runs[RUN].model_copy(update={"status": RunStatus.RUNNING, "failure": None})
    with capture_logs() as logs:
        bench.settle()
        bench.settle()
    (incident,) = bench.workshop.memory.incidents
    assert incident.ended_at is not None
    assert [entry["incident"] for entry in logs if entry["event"] == log_events.ALERT_ENDED] == [1]


def test_a_run_that_a_step_has_ended_raises_an_alert_too() -> None:
    """Settlement leaves it as it is, and tells of it."""
    bench = Bench()
    runs = bench.workshop.memory.runs
    runs[RUN] = runs[RUN].model_copy(update={"status": RunStatus.FAILED, "failure": REFUSED})
    (alert,) = alerts_of(bench)
    assert alert["failure"] == "SupplierRefused: 403 Forbidden"


@pytest.mark.parametrize(
    ("status", "follows"),
    [(RunStatus.SUCCEEDED, None), (RunStatus.CANCELLED, None), (RunStatus.FAILED, "owner"), (RunStatus.PARTIAL, "owner")],
)
def test_what_raises_no_alert(status: RunStatus, follows: str | None) -> None:
    """Success, a person's decision, and an outcome that was another run's."""
    bench = Bench()
    runs = bench.workshop.memory.runs
    runs[RUN] = runs[RUN].model_copy(update={"status": status, "follows": follows})
    assert alerts_of(bench) == []


def test_a_run_that_was_taken_over_raises_no_alert() -> None:
    """Whoever goes on from it does, if that fails too."""
    bench = Bench(SOME)
    memory = bench.workshop.memory
    failed = {"status": RunStatus.FAILED, "failure": taken_over_by(RunId("run-2"))}
    memory.runs[RUN] = memory.runs[RUN].model_copy(update=failed)
    assert alerts_of(bench) == []
    assert memory.incidents == []


def test_how_long_a_review_has_waited_is_told_once() -> None:
    """Wherever it was decided: whoever ends the run tells, and nobody tells of a review that policy approved at once."""
    bench = Bench(verdict=Verdict.NEEDS_HUMAN)
    bench.workshop.services.reviews.decide(ReviewId("r"), a_decision(at=NOW + timedelta(minutes=7), via="pages"))
    for _ in range(2):
        assert bench.settle().status is RunStatus.SUCCEEDED
    at_once = Bench(verdict=Verdict.AUTO_APPROVED)
    at_once.settle()
    waited = [
        {labels: spans for (name, labels), spans in one.workshop.metrics.spans.items() if name == "review_wait"}
        for one in (bench, at_once)
    ]
    assert waited == [{(("stage", "hotel-content"), ("verdict", "approved")): [timedelta(minutes=7)]}, {}]
    assert bench.workshop.metrics.gauges["reviews_waiting", ()] == 0


def test_a_publication_that_nothing_has_followed_is_no_success() -> None:
    """Publishing was not done: watermarks and dead letters may be as before. Whoever settles it, however often, sees that."""
    bench = Bench()
    services = bench.workshop.services
    services.runs.enter(RUN, Step.PUBLISH, bench.workshop.policy.lease_ttl)
    expected = "RunIncomplete: review r is published, but not all that follows is done: go on with publishing"
    assert bench.outcome() == (RunStatus.FAILED, expected)
    assert bench.workshop.memory.runs[RUN].step is Step.PUBLISH
    again = services.runs.enter(RUN, Step.PUBLISH, bench.workshop.policy.lease_ttl)
    services.runs.reach(again, Step.SETTLE)
    assert bench.outcome() == (RunStatus.SUCCEEDED, None)
