"""A `ColdStore` in memory."""

from collections.abc import Iterable

from sluice.model.artifact import Pointer, StoredObject
from sluice.model.base import RunId
from tests.unit.fakes.artifact_store import MemoryArtifactStore


class MemoryColdStore:
    """Copies by key, and rows by run and name; tests may look at both."""

    def __init__(self, store: MemoryArtifactStore) -> None:
        self._store = store
        self.copies: dict[str, bytes] = {}
        self.rows: dict[tuple[str, str], list[str]] = {}

    def copy(self, artifact: Pointer | StoredObject) -> bool:
        """Copy the bytes; a pointer's have to be right."""
        if artifact.key not in self._store.objects:
            return False
        self.copies[artifact.key] = (
            self._store.get(artifact) if isinstance(artifact, Pointer) else self._store.objects[artifact.key]
        )
        return True

    def write(self, sync: str, run: RunId, name: str, rows: Iterable[str]) -> None:
        """Keep the rows."""
        self.rows[run, f"{sync}/{name}"] = list(rows)
