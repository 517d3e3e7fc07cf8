"""Raw data that is to be mapped again: the request for it comes in; whose it is goes out, once it is sure to be there."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sluice.errors import RawDataGone, UsageInvalid
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, ShardKey
from sluice.model.run import SYNC_MODES, Mode, Run, RunRequest, Window
from sluice.model.scalars import spell_instant
from sluice.model.shard import Shard, some_of
from sluice.ports import Services

_MEND = "run the sync in mode full instead: what the supplier has now is then fetched"


def replayed(services: Services, asked: Run | RunRequest) -> list[RunId]:
    """Return the runs that have fetched what a replay maps again, oldest first.

    Raises `NotFound` if there is no such run, `UsageInvalid` if it is of another sync, or none has one of the shards, and
    `RawDataGone` if not all of what they have fetched is kept.
    """
    if asked.replays is not None:
        return [_of_a_run(services, asked, asked.replays)]
    return _of_a_window(services, asked, asked.window) if asked.window is not None else []


def _of_a_run(services: Services, asked: Run | RunRequest, named: RunId) -> RunId:
    run = services.runs.get(named)
    if run.sync != asked.sync:
        raise UsageInvalid(f"run {named} is one of {run.sync}, not of {asked.sync}")
    if run.mode not in (*SYNC_MODES, Mode.REPLAY):
        did = "took a publication back" if run.mode is Mode.ROLLBACK else "took up dead letters"
        raise UsageInvalid(f"run {named} {did}: it has fetched nothing")
    worked = run.worked_by
    fetched = _fetched(services, worked)
    _require_known(asked.shards, fetched, f"run {named} has")
    wanted, gone = _gone(services, worked, fetched, asked.shards)
    if gone:
        others = " for the other shards," if len(gone) < len(wanted) else ""
        raise RawDataGone(
            f"what run {named} has fetched of shard {some_of(gone)} is not kept any more; replay it{others} or {_MEND}"
            if others
            else f"what run {named} has fetched is not kept any more; {_MEND}"
        )
    if not wanted:
        raise RawDataGone(f"run {named} has fetched no shard to its end; {_MEND}")
    return worked


def _of_a_window(services: Services, asked: Run | RunRequest, window: Window) -> list[RunId]:
    span = f"from {spell_instant(window.start)} to {spell_instant(window.end)}"
    runs = [run.id for run in services.runs.fetched_within(asked.sync, window)]
    fetched = {run: _fetched(services, run) for run in runs}
    if not any(fetched.values()):
        raise RawDataGone(f"no run of {asked.sync} that was begun {span} has fetched a shard to its end; {_MEND}")
    there = {key: shard for shards in fetched.values() for key, shard in shards.items()}
    _require_known(asked.shards, there, f"the runs of {asked.sync} that were begun {span} have")
    lost = {run: _gone(services, run, shards, asked.shards)[1] for run, shards in fetched.items()}
    if gone := [f"{run} ({some_of(keys)})" for run, keys in lost.items() if keys]:
        raise RawDataGone(
            f"of the runs that were begun {span}, what was fetched by {some_of(gone)} is not kept any more; leave those shards "
            f"out, take a later window, or {_MEND}"
        )
    return [run for run, shards in fetched.items() if any(not asked.shards or key in asked.shards for key in shards)]


def _fetched(services: Services, run: RunId) -> dict[ShardKey, Shard]:
    """Return the shards of a run that were fetched to their end."""
    return {shard.key: shard for shard in services.shards.of(run) if shard.exhausted}


def _require_known(asked: Sequence[ShardKey], fetched: Iterable[ShardKey], who_has: str) -> None:
    known = set(fetched)
    if unknown := [key for key in asked if key not in known]:
        raise UsageInvalid(f"{who_has} not fetched {some_of(unknown)} to the end; there are: {some_of(sorted(known))}")


def _gone(
    services: Services, run: RunId, fetched: Mapping[ShardKey, Shard], asked: Sequence[ShardKey]
) -> tuple[list[ShardKey], list[ShardKey]]:
    """Return the shards that are asked for of a run, and those of them of which not every chunk is kept."""
    kept = Counter(pointer.ref.shard for pointer in services.pointers.of(run, ArtifactKind.RAW))
    wanted = [shard for key, shard in fetched.items() if not asked or key in asked]
    return [shard.key for shard in wanted], [shard.key for shard in wanted if kept[shard.key] < shard.chunks]
