"""What to do next: an act by hand and the run that it was done to come in; a sentence for whoever did it goes out."""

from sluice.model.base import ShardKey
from sluice.model.ledger import Publication
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunStatus
from sluice.model.run import Run


def after_reset(run: Run, shard: ShardKey) -> str:
    """Say how a shard that was reset comes in again."""
    if run.status is RunStatus.WAITING:
        return (
            "What waits for an answer counts no more: once it is approved, the shard is brought in and the run reviewed again."
        )
    if run.status not in FINAL_RUN_STATUSES:
        return "Whoever works on it begins again at once; if nobody does, the review brings it in."
    return _go_on(run, f"the task `shards.fetch` of {shard}")


def after_skip(run: Run) -> str:
    """Say how a run is published without a shard."""
    if run.status is RunStatus.WAITING:
        return "Its review was made without the shard: it stands."
    if run.status not in FINAL_RUN_STATUSES:
        return "The run goes on without it, and deletes nothing for its absence."
    return _go_on(run, "the task `review`")


def after_stop(run: Run, shard: ShardKey) -> str:
    """Say how a shard that was stopped can be gone on with."""
    way = _way_on(run, f"the task `shards.fetch` of {shard}")
    return (
        f"The others go on. `sluice shard reset {run.id} {shard}` begins it anew; to go on with it once the run is over, {way}."
    )


def after_cancel(run: Run, publication: Publication | None, unknown: str | None) -> str:
    """Say how a run that was cancelled ends, what of it is published all the same, and how it could be begun again."""
    if publication is not None and publication.rolled_back_by is None:
        return (
            f"It was published before it could be stopped, as publication {publication.id}: `sluice rollback {publication.id}` "
            f"takes that back. {_after_end(run)}"
        )
    if unknown is not None:
        asked = f"`sluice publications {run.sync}` tells once it can be asked"
        return f"Whether anything of it is published its target does not tell ({unknown}): {asked}. {_after_end(run)}"
    return _after_end(run)


def _after_end(run: Run) -> str:
    if run.origin.is_airflow:
        return (
            f"DagRun {run.origin.dag_run_id} of {run.origin.dag_id} ends: at once if the connection sluice_airflow is defined, "
            "else task by task. To go on with it all the same, clear it, unless it was waiting for a review: that is rejected."
        )
    return f"To ask for the same again: `sluice run {run.sync} --inline`."


def _go_on(run: Run, task: str) -> str:
    way = _way_on(run, task)
    return f"{way[0].upper()}{way[1:]}."


def _way_on(run: Run, task: str) -> str:
    """Say how a run that is over is gone on with."""
    if run.origin.is_airflow:
        return f"clear {task} in DagRun {run.origin.dag_run_id} of {run.origin.dag_id}, with downstream"
    return f"ask for the same again (`sluice run {run.sync} --inline`): it goes on from the checkpoints"
