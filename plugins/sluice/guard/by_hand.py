"""Acts by hand: a run, and a shard of it, come in; whether there is anything to do goes out, or why it may not be done.

Each rule returns False where the act has been done already, and raises `IllegalTransition`, which says what may be done
instead. The tables of `model.lifecycle` hold in any case.
"""

from datetime import timedelta

from sluice.errors import IllegalTransition
from sluice.guard.takeover import is_taken_over
from sluice.model.lease import Lease
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunStatus, ShardStatus
from sluice.model.run import Run
from sluice.model.shard import Shard


def is_reset_due(run: Run, shard: Shard) -> bool:
    """Whether the shard has anything to begin again from."""
    _require_not_done_with(run)
    if run.status is RunStatus.CANCELLED and not run.origin.is_airflow:
        raise IllegalTransition(f"run {run.id} was cancelled, and nobody goes on with it: run the sync again")
    is_untouched = not shard.exhausted and not shard.chunks and shard.cursor is None
    return not (shard.status is ShardStatus.PENDING and is_untouched)


def is_skip_due(run: Run, shard: Shard) -> bool:
    """Whether the run would have to bring the shard in."""
    if shard.status is ShardStatus.SKIPPED:
        return False
    _require_not_done_with(run)
    if run.status in FINAL_RUN_STATUSES and not run.origin.is_airflow:
        raise IllegalTransition(
            f"run {run.id} is over, {run.status}, and the next one would bring the shard in: run the sync again with the "
            "shards that are wanted (--shards)"
        )
    _require_not_in(shard, "reject its review, or reset the shard first")
    return True


def is_stop_due(run: Run, shard: Shard, *, is_stopped: bool) -> bool:
    """Whether anybody could go on with the shard."""
    if is_stopped:
        return False
    _require_not_done_with(run)
    if run.status in FINAL_RUN_STATUSES:
        raise IllegalTransition(f"run {run.id} is over, {run.status}: nobody works on its shards")
    if shard.status is ShardStatus.SKIPPED:
        raise IllegalTransition(f"shard {shard.key} of run {run.id} is skipped: nobody works on it")
    _require_not_in(shard, "cancel the run, or reject its review, if it shall not be published")
    return True


def is_cancel_due(run: Run, *, is_cleared: bool) -> bool:
    """Whether the run could go on; one that a person has cancelled could if its DagRun `is_cleared` since."""
    if run.status is RunStatus.CANCELLED:
        return is_cleared
    _require_not_done_with(run)
    if run.status in FINAL_RUN_STATUSES:
        raise IllegalTransition(f"run {run.id} is over already, {run.status}: there is nothing to cancel")
    return True


def require_silent(lease: Lease, silence: timedelta, heartbeat: timedelta) -> None:
    """Raise `IllegalTransition` unless the owner of a lease has been silent for longer than two heartbeats."""
    if silence <= 2 * heartbeat:
        raise IllegalTransition(
            f"run {lease.owner} has shown life {max(silence.total_seconds(), 0):.0f} s ago, so it is not dead: cancel it "
            f"(`sluice cancel {lease.owner}`) if it shall make room"
        )


def _require_not_done_with(run: Run) -> None:
    if run.status is RunStatus.SUCCEEDED:
        raise IllegalTransition(
            f"run {run.id} has succeeded, and nothing changes it any more: run the sync again, with --force and the --shards "
            "that are wanted, or take its publication back (`sluice rollback`)"
        )
    if is_taken_over(run) and run.failure is not None:
        raise IllegalTransition(f"run {run.id} is over: {run.failure.message}; do this there")


def _require_not_in(shard: Shard, instead: str) -> None:
    if shard.status is ShardStatus.SUCCEEDED:
        raise IllegalTransition(f"shard {shard.key} of run {shard.run} has come in, and is part of what is reviewed: {instead}")
