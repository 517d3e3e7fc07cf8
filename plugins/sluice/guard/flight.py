"""Flights: a run and what else there is of its request go in; whether it works, follows or is over already comes out.

Of all runs of one request one works at a time, the owner of its flight. A run that is opened meanwhile follows the owner and
ends as that one does. A run follows an owner and never another follower, and one that has worked itself never follows: so
there are no chains, and no circles. What a follower finds when it is opened again:

- its owner works on: it goes on waiting, until the policy's `wait_timeout` is over;
- its owner waits for a person: the same, though the flight is free meanwhile;
- its owner has ended: so has it, by the same event and with the same failure;
- its owner has died, and nobody has taken over: it is the owner.

A run that takes a publication back has no other's result, either: what it finds depends on the table as it is now.
A run with `force` waits for the flight alone: no outcome but its own will do.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sluice.errors import WaitedInVain
from sluice.model.base import RunId
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunEvent, RunStatus
from sluice.model.run import Failure, Run
from sluice.model.scalars import spell_duration
from sluice.model.stage import StagePolicy


@dataclass(frozen=True)
class Surroundings:
    """What a run meets when it is opened, at one moment of the database's clock, with its request's lease locked."""

    now: datetime
    waited: timedelta
    """For how long it has waited already."""
    holder: RunId | None
    """Which other run has the flight."""
    followed: Run | None
    """The run it follows, as that one is now."""
    newest: Run | None
    """The newest other run of its request that has worked itself."""
    is_outrun: bool
    """Whether a run of the sync has published since the newest one did, or came as far as it has."""


@dataclass(frozen=True)
class Own:
    """The run has the flight, and works."""


@dataclass(frozen=True)
class Follow:
    """The run waits for the owner of the flight."""

    owner: RunId


@dataclass(frozen=True)
class End:
    """The run is over without having worked."""

    event: RunEvent
    follows: RunId
    failure: Failure | None = None


_ENDINGS: Final = {
    RunStatus.SUCCEEDED: RunEvent.SUCCEED,
    RunStatus.PARTIAL: RunEvent.END_PARTIAL,
    RunStatus.FAILED: RunEvent.FAIL,
    RunStatus.CANCELLED: RunEvent.CANCEL,
}


def is_decided(run: Run) -> bool:
    """Whether opening a run that is there already leaves it as it is: it works, has worked, or needs no more than it has."""
    return run.follows is None or run.status is RunStatus.SUCCEEDED


def decide(run: Run, around: Surroundings, policy: StagePolicy) -> Own | Follow | End:
    """Return what becomes of a run that is new, follows, or ended as a follower and is admitted once more."""
    if not run.is_following:
        return _decide_anew(run, around, policy)
    owner = around.holder
    followed = None if run.force else around.followed
    if followed is not None and owner != followed.id:
        if followed.status in FINAL_RUN_STATUSES:
            return End(_ENDINGS[followed.status], followed.id, followed.failure)
        if followed.status is RunStatus.WAITING:
            owner = followed.id
    if owner is None:
        return Own()
    if around.waited > policy.wait_timeout:
        return End(RunEvent.FAIL, owner, _waited_in_vain(run, owner, policy))
    return Follow(owner)


def _decide_anew(run: Run, around: Surroundings, policy: StagePolicy) -> Own | Follow | End:
    if around.holder is not None:
        return Follow(around.holder)
    if around.newest is not None and not run.force and run.undoes is None and _is_fresh(around.newest, around, policy):
        return End(RunEvent.REPLAY, around.newest.id)
    return Own()


def _is_fresh(newest: Run, around: Surroundings, policy: StagePolicy) -> bool:
    """Whether the newest run's result will do: it brought in everything, not long ago, and nobody has published since."""
    if newest.status is not RunStatus.SUCCEEDED or newest.finished_at is None or around.is_outrun:
        return False
    return around.now - newest.finished_at < policy.result_ttl


def _waited_in_vain(run: Run, owner: RunId, policy: StagePolicy) -> Failure:
    return Failure.of(
        WaitedInVain(
            f"run {owner} of the same request did not end within {spell_duration(policy.wait_timeout)} (wait_timeout of stage "
            f"{run.stage}): look at what holds it up, or at the review it waits for; then start this run again"
        )
    )
