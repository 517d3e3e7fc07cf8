"""What the transformer left of a run: one rows artifact for each raw chunk, and the rejects."""

from collections.abc import Container
from typing import Final

from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import ShardStatus
from sluice.ports import Services

_FULL: Final = "-full-"


def variant_of(version: int, reading: int, *, full: bool = False) -> str:
    """Return how the variants of artifacts begin that were made by a version of the transformation, read in the same way.

    Of a chunk whose objects were all mapped, whatever the ledger remembers of them, it says so.
    """
    return f"v{version}-{reading:016x}" + (_FULL if full else "-")


def rows_artifacts(services: Services, run: RunId) -> dict[tuple[ShardKey, int], Pointer]:
    """Return the pointer of each chunk's rows, by shard and seq.

    Of a chunk that was mapped in full later on, that stays.
    """
    pointers = sorted(services.pointers.of(run, ArtifactKind.ROWS), key=lambda pointer: _FULL in pointer.ref.variant)
    return {(ShardKey(pointer.ref.shard or ""), pointer.ref.seq): pointer for pointer in pointers}


def staged_artifacts(services: Services, run: RunId) -> list[Pointer]:
    """Return the pointers to all that a review of the run would be of: rows and rejects of the shards that have come in."""
    arrived = {shard.key for shard in services.shards.of(run) if shard.status is ShardStatus.SUCCEEDED}
    rows = [pointer for (shard, _), pointer in sorted(rows_artifacts(services, run).items()) if shard in arrived]
    return rows + rejects_artifacts(services, run, arrived)


def rejects_artifacts(services: Services, run: RunId, shards: Container[ShardKey]) -> list[Pointer]:
    """Return the pointers to the rejects of some shards, by shard: asked for at once, since there may be thousands of them."""
    return [pointer for pointer in services.pointers.of(run, ArtifactKind.REJECTS) if pointer.ref.shard in shards]
