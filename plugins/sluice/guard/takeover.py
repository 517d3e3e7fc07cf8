"""Taking over: two runs of one request go in; whether the newer goes on from what the older has left comes out."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from sluice.model.base import RunId
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Failure, Run
from sluice.model.scalars import spell_duration

TAKEN_OVER: Final = "TakenOver"
"""The error of a run that another goes on from. It never works again: who wakes in it, or clears its tasks, is refused."""


LEFT_FOR_DEAD: Final = "LeftForDead"
"""The error of a run that died at work, and that nobody went on with."""


def is_due(earlier: Run, run: Run, dead: Sequence[Run]) -> bool:
    """Whether `run` goes on from the checkpoints of `earlier`, the newest other run of its request that has worked itself.

    It does so in two cases. `earlier` was at work when its lease ran out: it is among the `dead`. Or it ended failed or
    partial, and processes outside Airflow executed both: there, asking again for the same is how one resumes. A DagRun is
    resumed by clearing its tasks; a later one is a new look at the supplier. A run that waits for a person, was called off
    or succeeded hands nothing over. Nor does any once a later run of its sync has published: that is newer than the
    checkpoints, and an object without a version could not tell. The stores do not offer such a run here. A run with `force`
    goes on from nobody's.

    Handed over is each shard that has made progress within the policy's `takeover`, with its pointers; one that was not
    finished is pending again. With them comes the rest of their plan, as it was planned; without any, all is planned anew. The
    older run keeps rows of its own, so that it can still be explained.
    """
    if run.force:
        return False
    if earlier.id in {gone.id for gone in dead}:
        return True
    resumable = earlier.status in (RunStatus.FAILED, RunStatus.PARTIAL)
    return resumable and not earlier.origin.is_airflow and not run.origin.is_airflow


def taken_over_by(successor: RunId) -> Failure:
    """Return what ended a run that died at work."""
    return Failure(error=TAKEN_OVER, message=f"its lease ran out; run {successor} has taken over")


def left_for_dead(silence: timedelta) -> Failure:
    """Return what ended a run that nobody has heard of for so long, and that nobody has taken over."""
    return Failure(
        error=LEFT_FOR_DEAD,
        message=f"no sign of life for {spell_duration(silence)}: its worker has died; clear its tasks, or run it again",
    )


def is_taken_over(run: Run) -> bool:
    """Whether another run goes on from this one, and answers for its outcome."""
    return run.failure is not None and run.failure.error == TAKEN_OVER and run.follows is None
