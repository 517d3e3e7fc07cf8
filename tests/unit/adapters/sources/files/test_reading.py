"""reading: a file of any size takes no more memory than a few of its records."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from typing import Any

import pytest

from sluice.adapters.sources.files.reading import Reading, Start
from sluice.adapters.sources.files.storage import Handle, StoredFile
from sluice.model.source import FilesSource

RECORDS = 5_000


class EndlessStorage:
    """A file that is made while it is read."""

    def __init__(self, parts: Callable[[], Iterator[bytes]]) -> None:
        self._parts = parts

    def matching(self, pattern: str) -> list[StoredFile]:
        return [self.look(pattern)]

    def look(self, name: str) -> StoredFile:
        return StoredFile(name, None, '"1"', None, has_ranges=False)

    @contextmanager
    def open(self, file: StoredFile, *span: int | None) -> Iterator[Iterator[bytes]]:
        assert (file.name, span) == ("file", (0, None))
        yield self._parts()


@pytest.mark.parametrize(
    ("declared", "head", "record", "tail"),
    [
        ("jsonl", b"", b'{"id": 1, "name": "%s"}\n' % (b"x" * 980), b""),
        ("json", b'[{"id": 0}', b',{"id": 1, "name": "%s"}' % (b"x" * 980), b"]"),
        ("geojson", b'{"features": [{"id": 0}', b',{"id": 1, "name": "%s"}' % (b"x" * 980), b"]}"),
        ({"kind": "csv"}, b"id,name\n", b'1,"%s"\n' % (b"x" * 980), b""),
        ({"kind": "csv", "encoding": "cp1252"}, b"id,name\n", b'1,"%s"\n' % (b"x" * 980), b""),
        ({"kind": "xml", "element": "f/h"}, b"<f>", b"<h><id>1</id><name>%s</name></h>" % (b"x" * 980), b"</f>"),
        ({"kind": "json", "records": "b"}, b'{"a": ["0"', b',"%s"' % (b"x" * 980), b'], "b": []}'),
    ],
    ids=lambda value: str(value)[:30],
)
def test_memory_does_not_grow_with_the_file(declared: Any, head: bytes, record: bytes, tail: bytes) -> None:
    """Five megabytes come by, and few of them are held at a time."""
    source = FilesSource.model_validate({"kind": "files", "connection": "files", "files": ["file"], "format": declared})
    storage = EndlessStorage(lambda: chain([head], repeat(record, RECORDS), [tail]))
    tracemalloc.start()
    try:
        found = Reading(source, 1 << 20).records(Handle(storage, storage.look("file"), attempts=1), None, Start())
        number = sum(1 for _ in found)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert number in (RECORDS, RECORDS + 1, 0)
    assert (number == 0) is (declared == {"kind": "json", "records": "b"})
    assert peak < 1_000_000
