"""What the transformer left of a run: one rows artifact for each raw chunk, and the rejects."""

from collections.abc import Iterable

from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.model.reject import Reject
from sluice.ports import Services


def rows_artifacts(services: Services, run: RunId) -> dict[tuple[ShardKey, int], Pointer]:
    """Return the pointer of each chunk's rows, by shard and seq.

    Pointers come ordered by variant, and `v3-full` comes behind any `v3-<digest>`, so the fullest one stays.
    """
    pointers = services.pointers.of(run, ArtifactKind.ROWS)
    return {(ShardKey(pointer.ref.shard or ""), pointer.ref.seq): pointer for pointer in pointers}


def rejects_of(services: Services, run: RunId, shards: Iterable[ShardKey]) -> list[Reject]:
    """Return what could not be taken in of some shards."""
    pointers = [pointer for shard in sorted(shards) for pointer in services.pointers.of(run, ArtifactKind.REJECTS, shard)]
    return [Reject.model_validate_json(line) for pointer in pointers for line in services.artifacts.get(pointer).splitlines()]
