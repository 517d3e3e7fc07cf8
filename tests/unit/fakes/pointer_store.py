"""Pointers in memory."""

from collections.abc import Sequence

from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import RunId, ShardKey, Token
from tests.unit.fakes.memory import Memory


class MemoryPointerStore:
    """The port `PointerStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def add(self, pointer: Pointer, token: Token | None = None) -> None:
        """Record a pointer."""
        ref = pointer.ref
        with self._memory.lock:
            self._memory.require_place(ref)
            if token is not None and ref.shard is None:
                self._memory.still_run(ref.run, token)
            if token is not None and ref.shard is not None:
                self._memory.still_shard(ref.run, ref.shard, token)
            self._memory.put(pointer)

    def of(self, run: RunId, kind: ArtifactKind, shard: ShardKey | None = None) -> list[Pointer]:
        """Return the pointers of one kind, ordered by shard and seq."""
        with self._memory.lock:
            found = [
                pointer
                for ref, pointer in self._memory.pointers.items()
                if (ref.run, ref.kind) == (run, kind) and (shard is None or ref.shard == shard)
            ]
        return sorted(found, key=lambda pointer: (pointer.ref.shard or "", pointer.ref.seq, pointer.ref.variant))

    def named(self, keys: Sequence[str]) -> dict[str, Pointer]:
        """Return a pointer to each of these artifacts."""
        with self._memory.lock:
            return {pointer.key: pointer for pointer in self._memory.pointers.values() if pointer.key in keys}
