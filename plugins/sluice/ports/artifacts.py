"""Bytes in the object store, and how raw chunks are laid out in them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import BinaryIO, Protocol

from sluice.model.artifact import ArtifactRef, Listing, Pointer, StoredObject
from sluice.model.base import RunId


class ArtifactStore(Protocol):
    """Bytes in the object store."""

    def put(self, ref: ArtifactRef, data: bytes, records: int, expires_at: datetime | None) -> Pointer:
        """Store and verify the bytes, and return their pointer. Idempotent: the key derives from `ref` alone."""

    def put_file(self, ref: ArtifactRef, file: BinaryIO, records: int, expires_at: datetime | None) -> Pointer:
        """Store and verify all that a file holds, however much that is, and return its pointer: little is in memory at a time.

        The variant of `ref` is still to come: it is of the bytes, and in the pointer's ref. The same bytes have the same key,
        and a worker that lost its run does not overwrite what its successor has committed.
        """

    def get(self, pointer: Pointer) -> bytes:
        """Return the bytes; raise `ArtifactCorrupt` if they are missing or do not match the pointer's sha-256."""

    def get_file(self, pointer: Pointer, file: BinaryIO) -> None:
        """Write the bytes into an empty file, however many they are; raise as `get` does."""

    def remove(self, artifact: Pointer | StoredObject) -> None:
        """Remove the bytes; nothing happens if they are gone."""

    def listed(self, after: str) -> Listing:
        """Return the next artifacts that there are behind a key, by key: few enough to be held in memory."""


class ColdStore(Protocol):
    """Copies of what is removed, where nothing of Sluice's ever looks or removes anything."""

    def copy(self, artifact: Pointer | StoredObject) -> bool:
        """Copy the bytes within the object store, and verify that; return False if there are none. Again: the same copy.

        Raises `ArtifactCorrupt` if what was copied is not what a pointer was made for.
        """

    def write(self, sync: str, run: RunId, name: str, rows: Iterable[str]) -> None:
        """Store rows of a run's state, each a JSON document, as compressed lines, and verify that; again: in the same place."""


class ChunkCodec(Protocol):
    """Raw chunks: the bodies of consecutive pages, byte for byte, one compressed frame a page."""

    def pack(self, pages: Sequence[bytes], level: int) -> bytes:
        """Return one artifact that holds the pages; `level` is zstd's."""

    def pages(self, data: bytes) -> Iterator[bytes]:
        """Yield the pages, in order; raise `ArtifactCorrupt` if the layout is broken."""
