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

    def rows_elsewhere(self, raw: Pointer, made_by: str) -> Pointer | None:
        """Return what another run has made of the same chunk."""
        with self._memory.lock:
            held = list(self._memory.pointers.values())
            now = self._memory.clock.now()
        alike = {
            (other.ref.run, other.ref.shard, other.ref.seq)
            for other in held
            if (other.key, other.ref.kind) == (raw.key, ArtifactKind.RAW) and other.ref.run != raw.ref.run
        }
        found = [
            made
            for made in held
            if made.ref.kind is ArtifactKind.ROWS and (made.ref.run, made.ref.shard, made.ref.seq) in alike
            if made.ref.variant.startswith(made_by) and (made.expires_at is None or made.expires_at > now)
        ]
        return max(enumerate(found), key=lambda item: ("-full-" in item[1].ref.variant, item[0]), default=(0, None))[1]

    def named(self, keys: Sequence[str]) -> dict[str, Pointer]:
        """Return a pointer to each of these artifacts."""
        with self._memory.lock:
            return {pointer.key: pointer for pointer in self._memory.pointers.values() if pointer.key in keys}
