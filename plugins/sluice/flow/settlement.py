"""Settlement: a run that has been through its steps, or was stopped by one, comes in; its final status goes out."""

from typing import Final

import structlog

from sluice import log_events
from sluice.flow.alerting import judge_row
from sluice.flow.entering import entered
from sluice.flow.measuring import tell_wait, tell_waiting
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.turned_down import turned_down
from sluice.model.base import RunId
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunEvent, ShardStatus, Step
from sluice.model.review import Review
from sluice.model.run import Failure, Run
from sluice.model.shard import Shard
from sluice.ports import Services

log: Final = structlog.get_logger()

_UNTOLD: Final = "not finished, and its worker has not said why: look at its log"


def settle(services: Services, run_id: RunId) -> Run:
    """End the run and free its flight; one that a step has ended already stays as it is. Tell if the sync keeps failing."""
    run = services.runs.get(run_id)
    ended = run if run.status in FINAL_RUN_STATUSES else _end(services, run)
    judge_row(services, ended)
    tell_waiting(services)
    return ended


def _end(services: Services, before: Run) -> Run:
    # A run that publishing was not done with stays there: who settles it, however often, shall see that.
    with entered(services, before.id, Step.PUBLISH if before.step is Step.PUBLISH else Step.SETTLE) as entry:
        run = entry.run
        shards = services.shards.of(run.id)
        review = services.reviews.latest(run.id)
        event, failure = _outcome(services, run, shards, review)
        ended = services.runs.end(run, event, failure)
        # Told here and not where it is decided: that may be a page or a command line, which no metrics are taken from.
        if review is not None and review.decision is not None:
            tell_wait(services, review, run.stage)
        log.info(
            log_events.RUN_SETTLED,
            status=ended.status,
            failure=failure.message if failure else None,
            shards=len(shards),
            records=sum(shard.records for shard in shards),
        )
        return ended


def _outcome(services: Services, run: Run, shards: list[Shard], review: Review | None) -> tuple[RunEvent, Failure | None]:
    failed = [shard for shard in shards if shard.status not in (ShardStatus.SUCCEEDED, ShardStatus.SKIPPED)]
    if review is None:
        return RunEvent.FAIL, _failure(failed) if failed else Failure(error="RunIncomplete", message="nothing was reviewed")
    if ending := turned_down(review):
        return ending
    if unfinished := _unfinished(services, run, review):
        return RunEvent.FAIL, unfinished
    missing = _failure(failed) if failed else _unreviewed(review, shards)
    return (RunEvent.END_PARTIAL, missing) if missing else (RunEvent.SUCCEED, None)


def _unfinished(services: Services, run: Run, review: Review) -> Failure | None:
    """Return what is missing of the publication of an approved review; None: nothing."""
    if review.figures.publishes and services.ledger(pinned_spec(services, run)).publication_of(review.id) is None:
        return Failure(error="RunIncomplete", message=f"review {review.id} was not published")
    if run.step is Step.PUBLISH:
        message = f"review {review.id} is published, but not all that follows is done: go on with publishing"
        return Failure(error="RunIncomplete", message=message)
    return None


def _unreviewed(review: Review, shards: list[Shard]) -> Failure | None:
    if review.covers(shards):
        return None
    return Failure(error="RunIncomplete", message=f"shards came in after review {review.id} was made: review the run again")


def _failure(failed: list[Shard]) -> Failure:
    first = next((shard for shard in failed if shard.failure), failed[0])
    cause = f"{first.failure.error}: {first.failure.message}" if first.failure else _UNTOLD
    others = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    return Failure(error="ShardsFailed", message=f"shard {first.key}{others}: {cause}")
