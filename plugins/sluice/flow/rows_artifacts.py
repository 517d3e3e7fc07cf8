"""What the transformer left of a run: one rows artifact for each raw chunk, and the rejects."""

from collections.abc import Container

from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import ShardStatus
from sluice.ports import Services


def rows_artifacts(services: Services, run: RunId) -> dict[tuple[ShardKey, int], Pointer]:
    """Return the pointer of each chunk's rows, by shard and seq.

    Pointers come ordered by variant, and `v3-full-<digest>` comes behind any `v3-<digest>`, so the fullest one stays.
    """
    pointers = services.pointers.of(run, ArtifactKind.ROWS)
    return {(ShardKey(pointer.ref.shard or ""), pointer.ref.seq): pointer for pointer in pointers}


def staged_artifacts(services: Services, run: RunId) -> list[Pointer]:
    """Return the pointers to all that a review of the run would be of: rows and rejects of the shards that have come in."""
    arrived = {shard.key for shard in services.shards.of(run) if shard.status is ShardStatus.SUCCEEDED}
    rows = [pointer for (shard, _), pointer in sorted(rows_artifacts(services, run).items()) if shard in arrived]
    return rows + rejects_artifacts(services, run, arrived)


def rejects_artifacts(services: Services, run: RunId, shards: Container[ShardKey]) -> list[Pointer]:
    """Return the pointers to the rejects of some shards, by shard: asked for at once, since there may be thousands of them."""
    return [pointer for pointer in services.pointers.of(run, ArtifactKind.REJECTS) if pointer.ref.shard in shards]
