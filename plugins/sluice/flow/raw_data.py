"""Raw data that is to be mapped again: the request for it comes in; whose it is goes out, once it is sure to be there."""

from collections import Counter

from sluice.errors import RawDataGone, UsageInvalid
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId
from sluice.model.run import Mode, RunRequest
from sluice.model.shard import some_of
from sluice.ports import Services

_MEND = "run the sync in mode full instead: what the supplier has now is then fetched"


def replayable(services: Services, request: RunRequest, named: RunId) -> RunId:
    """Return the run that has fetched what the named one stands for.

    Raises `NotFound` if there is no such run, `UsageInvalid` if it is of another sync or has none of the shards, and
    `RawDataGone` if not all of what it has fetched is kept.
    """
    run = services.runs.get(named)
    if run.sync != request.sync:
        raise UsageInvalid(f"run {named} is one of {run.sync}, not of {request.sync}")
    if run.mode is Mode.ROLLBACK:
        raise UsageInvalid(f"run {named} took a publication back: it has fetched nothing")
    worked = run.worked_by
    fetched = {shard.key: shard for shard in services.shards.of(worked) if shard.exhausted}
    if unknown := [key for key in request.shards if key not in fetched]:
        raise UsageInvalid(f"run {named} has not fetched {some_of(unknown)} to the end; it has: {some_of(sorted(fetched))}")
    kept = Counter(pointer.ref.shard for pointer in services.pointers.of(worked, ArtifactKind.RAW))
    wanted = [shard for key, shard in fetched.items() if not request.shards or key in request.shards]
    if gone := [shard.key for shard in wanted if kept[shard.key] < shard.chunks]:
        others = " for the other shards," if len(gone) < len(wanted) else ""
        raise RawDataGone(
            f"what run {named} has fetched of shard {some_of(gone)} is not kept any more; replay it{others} or {_MEND}"
            if others
            else f"what run {named} has fetched is not kept any more; {_MEND}"
        )
    if not wanted:
        raise RawDataGone(f"run {named} has fetched no shard to its end; {_MEND}")
    return worked
