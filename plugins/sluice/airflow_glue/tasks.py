"""The bodies of the tasks: each calls one step, and returns what a person wants to see in XCom."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowSkipException

from sluice.airflow_glue.asking import Answered, has_tries_left
from sluice.airflow_glue.known_shards import remember_shards
from sluice.airflow_glue.mending import what_to_mend
from sluice.airflow_glue.params import run_request
from sluice.airflow_glue.shard_groups import fetch_group, spread, transform_group
from sluice.airflow_glue.workplace import Workplace, working
from sluice.errors import FlightTaken, NotFound, ReviewNotApproved, ReviewWaiting, RunIncomplete
from sluice.model.audit import Actor
from sluice.model.base import ShardKey
from sluice.model.lifecycle import WAITING_VERDICTS, RunEvent, RunStatus, Step, Verdict
from sluice.model.review import by_whom
from sluice.model.run import Failure, Origin, Run, Window
from sluice.model.shard import Shard
from sluice.ports import Services

Report = dict[str, Any]
"""What a task leaves in XCom: figures and ids, never data."""

_MOST_REPORTED: Final = 50
"""Shards of one task that are told of one by one."""


@dataclass(frozen=True)
class SyncTasks:
    """The tasks of one sync. Steps are imported when a task runs, so that parsing a DAG stays light."""

    sync: str
    include: Path
    asset: Asset

    def admit(self) -> Report:
        """Open the run that the params ask for. One that follows waits without a worker; one whose end is another's skips."""
        from sluice.flow.admission import admit

        with working(Step.ADMIT, self.include) as work:
            dag_run = work.context["dag_run"]
            origin = Origin(dag_id=dag_run.dag_id, dag_run_id=dag_run.run_id)
            request = run_request(work.services.spec(self.sync), work.context["params"], origin, backfilled(dag_run))
            run = admit(work.services, request.model_copy(update={"by": asked_by(dag_run)}), work.run_id)
            # Before, there may have been no run to note it of: whoever cancels this one from now on means after that clearing.
            work.services.by_hand.note_clearing(run.id, dag_run.clear_number)
            if run.is_following:
                raise _followed(work.services, run)
            if run.follows is not None:
                raise AirflowSkipException(f"run {run.id} is {run.status}, as run {run.follows} of the same request is")
            return {"run": run.id, "mode": run.mode.value, "request_key": run.request_key}

    def shard(self) -> list[dict[str, object]]:
        """Plan the shards, and return one group of them for each mapped task."""
        from sluice.flow.pinned_spec import pinned_spec
        from sluice.flow.sharder import plan_shards

        with working(Step.SHARD, self.include) as work:
            keys = [shard.key for shard in plan_shards(work.services, work.run_id)]
            run = work.services.runs.get(work.run_id)
            remember_shards(pinned_spec(work.services, run), run, keys)
            return spread(keys, work.services.policy(run.stage).groups)

    def fetch(self, group: dict[str, Any]) -> Report:
        """Fetch a group's shards."""
        from sluice.flow.fetcher import fetch

        with working(Step.FETCH, self.include) as work:
            fetch_shard = partial(fetch, work.services, work.run_id)
            return _shards_report(fetch_group(work.services.shards, work.run_id, _keys(group), fetch_shard))

    def transform(self, group: dict[str, Any]) -> Report:
        """Transform those of a group's shards that were fetched."""
        from sluice.flow.redo import transform

        with working(Step.TRANSFORM, self.include) as work:
            transform_shard = partial(transform, work.services, work.run_id)
            return _shards_report(transform_group(work.services.shards, work.run_id, _keys(group), transform_shard))

    def review(self) -> Report:
        """Compare the shards that came in with the ledger."""
        from sluice.flow.redo import review

        with working(Step.REVIEW, self.include) as work:
            made = review(work.services, work.run_id)
            return {
                "review": made.id,
                "verdict": made.verdict.value,
                "reasons": list(made.reasons),
                "figures": made.figures.model_dump(mode="json"),
            }

    def gate(self, work: Workplace, answered: Answered) -> Report:
        """Pass once the newest review is decided. Publish reads the decision again, from our row."""
        from sluice.flow.redo import held

        review = work.services.reviews.latest(work.run_id)
        if answered is None or review is None or review.verdict in WAITING_VERDICTS:
            review = held(work.services, work.run_id)
        if review.verdict in WAITING_VERDICTS:
            raise ReviewWaiting(f"review {review.id} is {review.verdict}", review=review.id)
        if review.verdict is Verdict.EXPIRED:
            raise ReviewNotApproved(
                f"nobody answered in time: review {review.id} has expired, no answer changes that, and nothing is published; "
                "trigger the run again to have it reviewed again"
            )
        return {"review": review.id, "verdict": review.verdict.value, "decided": f"{review.verdict}{by_whom(review)}"}

    def publish(self, work: Workplace, _: Answered) -> Report:
        """Publish what was approved, and emit the asset event; skip where there is nothing to publish, or no approval."""
        from sluice.flow.redo import publish

        review = work.services.reviews.latest(work.run_id)
        if review is not None and review.verdict in {Verdict.REJECTED, Verdict.SUPERSEDED}:
            raise AirflowSkipException(f"review {review.id} was {review.verdict}{by_whom(review)}: nothing is published")
        publication = publish(work.services, work.run_id, is_repeated=has_tries_left(work.context))
        if publication is None or not publication.writes:
            raise AirflowSkipException("the target holds all of it already: nothing was left to publish")
        report: Report = {
            "publication": publication.id,
            "review": publication.review,
            "run": publication.run,
            "counts": {outcome.value: count for outcome, count in publication.counts.items()},
        }
        work.context["outlet_events"][self.asset].extra = report
        return report

    def settle(self) -> Report:
        """End the run; raise `RunIncomplete`, saying what failed and what to clear, unless it brought in everything."""
        from sluice.airflow_glue.notifiers import sender
        from sluice.flow.alerting import deliver
        from sluice.flow.settlement import settle

        with working(Step.SETTLE, self.include) as work:
            try:
                run = work.services.runs.get(work.run_id)
            except NotFound as error:
                raise RunIncomplete("the run was never opened: the log of the task `admit` says why") from error
            run = _stopped_following(work.services, run) if run.is_following else settle(work.services, run.id)
            deliver(work.services, run, sender(work), is_repeated=is_tried_again(work.context))
            if run.status in {RunStatus.FAILED, RunStatus.PARTIAL}:
                raise RunIncomplete(what_to_mend(work.services, run), status=run.status.value)
            return {"run": run.id, "status": run.status.value, **_whose_outcome(work.services, run)}


def asked_by(dag_run: Any) -> Actor | None:
    """Return who has triggered the DagRun; None for one that was due."""
    user = dag_run.triggering_user_name
    return Actor(name=user, via="airflow") if user else None


def backfilled(dag_run: Any) -> Window | None:
    """Return the data interval of a backfill's run; other runs have no window but the one they are given."""
    start, end = dag_run.data_interval_start, dag_run.data_interval_end
    if dag_run.run_type != "backfill" or start is None or end is None or start >= end:
        return None
    return Window(start=start, end=end)


def is_tried_again(context: Any) -> bool:
    """Whether a task that asks nobody is tried again should this try of it fail."""
    attempt = context["ti"]
    return bool(attempt.try_number <= attempt.max_tries)


def _followed(services: Services, run: Run) -> FlightTaken:
    """Return why the run waits, and when it looks again: its owner's lease has been renewed by then, or has run out."""
    return FlightTaken(
        f"run {run.id} follows run {run.follows}, which works on the same request",
        owner=run.follows,
        expires_at=services.clock.now() + services.policy(run.stage).lease_ttl,
    )


def _stopped_following(services: Services, run: Run) -> Run:
    """End a run whose admission gave up while it followed."""
    message = f"it waits for run {run.follows} no longer: the log of the task `admit` says why"
    return services.runs.end(run, RunEvent.FAIL, Failure(error=RunIncomplete.__name__, message=message))


def _whose_outcome(services: Services, run: Run) -> Report:
    """Return the run that this one followed, or whose result it has, and what that one has published."""
    from sluice.flow.pinned_spec import pinned_spec

    if run.follows is None:
        return {}
    review = services.reviews.latest(run.follows)
    publication = services.ledger(pinned_spec(services, run)).publication_of(review.id) if review else None
    return {"follows": run.follows, "publication": publication.id if publication else None}


def _keys(group: dict[str, Any]) -> list[ShardKey]:
    return [ShardKey(key) for key in group["shards"]]


def _shards_report(shards: list[Shard]) -> Report:
    """Return what a person wants to see of a task's shards: each of a few, of many how many there are of each status."""
    if len(shards) > _MOST_REPORTED:
        return {
            "shards": len(shards),
            "statuses": dict(Counter(shard.status.value for shard in shards)),
            "pages": sum(shard.pages for shard in shards),
            "records": sum(shard.records for shard in shards),
        }
    return {
        shard.key: {"status": shard.status.value, "pages": shard.pages, "records": shard.records, "attempt": shard.attempt}
        for shard in shards
    }
