"""A run that did not bring in everything in; what failed and what to do, for whoever looks at a red DagRun, out."""

from sluice.errors import ReviewNotApproved
from sluice.model.base import RunId
from sluice.model.lifecycle import ShardStatus
from sluice.model.run import Run
from sluice.model.shard import some_of
from sluice.ports import Services


def what_to_mend(services: Services, run: Run) -> str:
    """Say, for a person who looks at a red DagRun, what failed and what to clear."""
    if run.follows is not None:
        return _what_to_mend_elsewhere(services, run, run.follows)
    failed = [shard for shard in services.shards.of(run.id) if shard.status not in {ShardStatus.SUCCEEDED, ShardStatus.SKIPPED}]
    lines = [f"run {run.id} ended {run.status}"]
    if run.failure:
        lines.append(f"{run.failure.error}: {run.failure.message}")
    told = [
        f"shard {shard.key} is {shard.status}" + (f": {shard.failure.error}: {shard.failure.message}" if shard.failure else "")
        for shard in failed
    ]
    if told:
        lines.append(some_of(told, "\n"))
    if failed:
        lines.append(
            f"to bring in what is missing, clear the failed mapped tasks `shards.fetch` ({some_of([s.key for s in failed])}) "
            "with downstream: each goes on from its last checkpoint, then the run is reviewed and published again"
        )
    elif run.failure is None or run.failure.error != ReviewNotApproved.__name__:
        lines.append("to go on, clear the task that failed, with downstream")
    return "\n".join(lines)


def _what_to_mend_elsewhere(services: Services, run: Run, follows: RunId) -> str:
    """Say the same of a run that another one's failure has ended."""
    owner = services.runs.get(follows)
    place = f"DagRun {owner.origin.dag_run_id} of {owner.origin.dag_id}" if owner.origin.is_airflow else "`sluice run --inline`"
    lines = [f"run {run.id} ended {run.status}; it followed run {owner.id} ({place}), which is {owner.status}"]
    if run.failure:
        lines.append(f"{run.failure.error}: {run.failure.message}")
    lines.append(f"see what run {owner.id} lacks, and mend it there; to try here, clear the task `admit`, with downstream")
    return "\n".join(lines)
