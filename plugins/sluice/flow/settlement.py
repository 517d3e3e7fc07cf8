"""Settlement: a run that has been through its steps, or was stopped by one, comes in; its final status goes out."""

from typing import Final

import structlog

from sluice import log_events
from sluice.flow.entering import entered
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.turned_down import turned_down
from sluice.guard.log_level import logged_from
from sluice.guard.takeover import is_taken_over
from sluice.model.alert import AlertLevel, alert_for
from sluice.model.base import RunId
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunEvent, RunStatus, ShardStatus, Step
from sluice.model.review import Review
from sluice.model.run import Failure, Mode, Run
from sluice.model.shard import Shard
from sluice.ports import Services

log: Final = structlog.get_logger()

_UNTOLD: Final = "not finished, and its worker has not said why: look at its log"


def settle(services: Services, run_id: RunId) -> Run:
    """End the run and free its flight; one that a step has ended already stays as it is. Tell if the sync keeps failing."""
    run = services.runs.get(run_id)
    ended = run if run.status in FINAL_RUN_STATUSES else _end(services, run)
    _alert(services, ended)
    return ended


def _end(services: Services, before: Run) -> Run:
    # A run that publishing was not done with stays there: who settles it, however often, shall see that.
    with entered(services, before.id, Step.PUBLISH if before.step is Step.PUBLISH else Step.SETTLE) as entry:
        run = entry.run
        shards = services.shards.of(run.id)
        event, failure = _outcome(services, run, shards, services.reviews.latest(run.id))
        ended = services.runs.end(run, event, failure)
        log.info(
            log_events.RUN_SETTLED,
            status=ended.status,
            failure=failure.message if failure else None,
            shards=len(shards),
            records=sum(shard.records for shard in shards),
        )
        return ended


def _alert(services: Services, run: Run) -> None:
    """Raise an alert, once for each run, if the runs of the sync keep failing.

    Whose outcome was another's raises none, nor does a rollback or a redrive: the person who asked for it is there.
    """
    is_asked_for = run.mode in (Mode.ROLLBACK, Mode.REDRIVE)
    is_no_news = run.follows is not None or is_asked_for or is_taken_over(run)
    if run.status not in (RunStatus.FAILED, RunStatus.PARTIAL) or is_no_news:
        return
    policy = services.policy(run.stage)
    alert = alert_for(services.alerts.failed_in_a_row(run.id), policy.alerts)
    if alert is None or not services.alerts.note(run, alert):
        return
    with logged_from(policy.log_level):
        tell = log.error if alert.level is AlertLevel.PAGE else log.warning
        tell(
            log_events.ALERT_RAISED,
            **run.log_context,
            alert=alert.level.value,
            runs=alert.runs,
            failure=f"{run.failure.error}: {run.failure.message}" if run.failure else None,
        )


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
