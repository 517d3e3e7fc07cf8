"""Settlement: what a run has come to, by its shards, its review and what is published of it."""

import pytest

from sluice.flow.settlement import settle
from sluice.model.base import PublicationId, ReviewId
from sluice.model.ledger import Outcome, Publication
from sluice.model.lifecycle import APPROVALS, FINAL_RUN_STATUSES, RunStatus, ShardStatus, Verdict
from sluice.model.run import Failure, Run
from tests.support.nouns import NOW, a_review
from tests.unit.flow.workshop import NORTH, RUN, SOUTH, Workshop

REFUSED = Failure(error="SupplierRefused", message="403 Forbidden")
ALL, SOME, NONE = "all shards came in", "one failed", "none came in"
LOST = "ShardsFailed: shard north: SupplierRefused: 403 Forbidden"
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
            (shards, verdict, False, RunStatus.FAILED, UNANSWERED)
            for shards in (ALL, SOME)
            for verdict in (Verdict.NEEDS_HUMAN, Verdict.BLOCKED, Verdict.EXPIRED)
        ),
        *((shards, verdict, False, RunStatus.FAILED, UNPUBLISHED) for shards in (ALL, SOME) for verdict in APPROVALS),
        *((ALL, verdict, True, RunStatus.SUCCEEDED, None) for verdict in APPROVALS),
        *((SOME, verdict, True, RunStatus.PARTIAL, LOST) for verdict in APPROVALS),
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
    assert bench.outcome() == (RunStatus.PARTIAL, "ShardsFailed: shard south: not finished")


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
