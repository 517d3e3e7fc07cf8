"""A shard that a person may have taken from its worker, and the fence that he met, come in; how he goes on with it goes out."""

from sluice.errors import Fenced, StoppedByHand
from sluice.model.lifecycle import ShardStatus
from sluice.model.shard import Shard
from sluice.ports import Services


def left_by_hand(services: Services, shard: Shard, fenced: Fenced) -> Shard:
    """Return the shard as a person has left it: skipped, or `pending` to be begun again, which nobody else may be there to do.

    Raises `StoppedByHand` if it was stopped, so that a worker of several shards goes on with the others; and `fenced` if
    somebody else has it, or its run is over.
    """
    present = services.shards.get(shard.run, shard.key)
    if present.status in (ShardStatus.PENDING, ShardStatus.SKIPPED):
        return present
    if present.failure is not None and present.failure.error == StoppedByHand.__name__:
        raise StoppedByHand(f"shard {shard.key} of run {shard.run}: {present.failure.message}", shard=shard.key) from fenced
    raise fenced
