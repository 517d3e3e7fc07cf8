"""A spec comes in; the shards it declares go out, each with the values its requests are made with."""

from typing import Final

from sluice.errors import SpecInvalid
from sluice.model.base import ShardKey
from sluice.model.shard import ShardPlan
from sluice.model.spec import SyncSpec

WHOLE: Final = ShardKey("all")
"""The key of the only shard of a sync that declares none."""


def declared_shards(spec: SyncSpec) -> list[ShardPlan]:
    """Return all shards of a sync."""
    if spec.shards is None:
        return [ShardPlan(key=WHOLE, params={})]
    if spec.shards.kind != "values":
        raise SpecInvalid([f"shards.kind: {spec.shards.kind} is not built yet"])
    return [ShardPlan(key=ShardKey(value), params={spec.shards.name: value}) for value in spec.shards.values]
