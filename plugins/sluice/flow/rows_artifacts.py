"""Which rows artifacts a run has: one for each raw chunk, the fullest where a chunk was mapped again."""

from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import RunId, ShardKey
from sluice.ports import Services


def rows_artifacts(services: Services, run: RunId) -> dict[tuple[ShardKey, int], Pointer]:
    """Return the pointer of each chunk's rows, by shard and seq.

    Pointers come ordered by variant, and `v3-full` comes behind any `v3-<digest>`, so the fullest one stays.
    """
    pointers = services.pointers.of(run, ArtifactKind.ROWS)
    return {(ShardKey(pointer.ref.shard or ""), pointer.ref.seq): pointer for pointer in pointers}
