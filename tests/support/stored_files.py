"""Files in memory, that come in parts of any size: what a reader makes of them out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sluice.adapters.sources.files.reading import Reading, Span, Start
from sluice.adapters.sources.files.storage import Handle, StoredFile
from sluice.adapters.sources.files.window import Record
from sluice.errors import SupplierRefused, SupplierUnavailable
from sluice.model.source import FilesSource


@dataclass
class MemoryStorage:
    """Files by name. Connections break where the test says so."""

    contents: dict[str, bytes]
    part: int = 1 << 16
    has_ranges: bool = True
    breaks: list[int] = field(default_factory=list)
    """After how many bytes each connection breaks, one after the other."""
    breaks_by: Exception = field(default_factory=lambda: SupplierUnavailable("the connection broke"))
    opened: list[tuple[int, int | None]] = field(default_factory=list)

    def matching(self, pattern: str) -> list[StoredFile]:
        return [self.look(name) for name in sorted(self.contents) if name.startswith(pattern.rstrip("*"))]

    def look(self, name: str) -> StoredFile:
        if name not in self.contents:
            raise SupplierRefused(f"no {name}")
        return StoredFile(name, len(self.contents[name]), f'"{len(self.contents[name])}"', None, self.has_ranges)

    @contextmanager
    def open(self, file: StoredFile, start: int, end: int | None) -> Iterator[Iterator[bytes]]:
        self.opened.append((start, end))
        yield self._parts(self.contents[file.name][start:end], self.breaks.pop(0) if self.breaks else None)

    def _parts(self, data: bytes, breaks_after: int | None) -> Iterator[bytes]:
        for place in range(0, len(data), self.part):
            if breaks_after is not None and place >= breaks_after:
                raise self.breaks_by
            yield data[place : place + self.part]


def records_of(
    content: bytes | MemoryStorage,
    declared: Any,
    *,
    part: int = 1 << 16,
    span: Span | None = None,
    start: Start | None = None,
    limit: int = 1 << 20,
    compression: str = "auto",
) -> list[Record]:
    """Return the records of a file of a declared format."""
    storage = content if isinstance(content, MemoryStorage) else MemoryStorage({"file": content}, part)
    source = FilesSource.model_validate(
        {"kind": "files", "connection": "files", "files": ["file"], "format": declared, "compression": compression}
    )
    handle = Handle(storage, storage.look("file"), attempts=3)
    return list(Reading(source, limit).records(handle, span, start or Start()))


def raws_of(content: bytes | MemoryStorage, declared: Any, **more: Any) -> list[bytes]:
    """Return the bytes of the records."""
    return [record.raw for record in records_of(content, declared, **more)]
