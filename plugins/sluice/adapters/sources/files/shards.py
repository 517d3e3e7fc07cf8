"""Files in a supplier's storage; a shard for each of them, or for each part of one that can be read in parts, out."""

import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from sluice.adapters.sources.files.csv_lines import is_as_utf8
from sluice.adapters.sources.files.source import FilesSource, Part
from sluice.adapters.sources.files.storage import Storage, StoredFile
from sluice.adapters.sources.files.unpacking import compression_of
from sluice.errors import CursorExpired, ShardsUnusable, SupplierRefused, SupplierUnavailable
from sluice.model.base import ShardKey
from sluice.model.run import Mode
from sluice.model.shard import ShardPlan
from sluice.model.sharding import MOST_SHARDS
from sluice.ports import PageRequest, ShardQuestion

_LONGEST_NAME: Final = 150
_HEAD: Final = 16


class FileFinder:
    """Finds the shards of a sync of files."""

    def __init__(self, source: FilesSource, split: int | None) -> None:
        """Look for the files of `source`; a shard has at most `split` bytes where a file can be read in parts."""
        self._source = source
        self._spec = source.spec
        self._split = split

    def find(self, question: ShardQuestion, moved: Callable[[], None]) -> list[ShardPlan]:
        """Return the shards; in an incremental run only those of files that are not as they were when they were published.

        Raises `ShardsUnusable` where no file has a name that was asked for, or there are too many.
        """
        plans: list[ShardPlan] = []
        with self._source.storage() as storage:
            for file in self._files(storage, question):
                moved()
                plans += islice(self._plans(storage, file, question), MOST_SHARDS + 1)
                if len(plans) > MOST_SHARDS:
                    raise ShardsUnusable(
                        f"the files are more than {MOST_SHARDS:,} shards: name fewer of them, or raise shards.split"
                    )
        return plans

    def _files(self, storage: Storage, question: ShardQuestion) -> list[StoredFile]:
        window = question.window
        request = PageRequest(
            shard={},
            cursor=None,
            watermark=None,
            window_start=window.start if window else None,
            window_end=window.end if window else None,
        )
        try:
            return self._source.files(storage, request)
        except SupplierRefused as error:
            raise ShardsUnusable(error.message, **error.facts) from error

    def _plans(self, storage: Storage, file: StoredFile, question: ShardQuestion) -> Iterator[ShardPlan]:
        for part in self._parts(storage, file):
            plan = part.plan(_key(part))
            is_known = file.mark is not None and question.marks.get(plan.key) == file.mark
            if not (is_known and question.mode is Mode.INCREMENTAL):
                yield plan

    def _parts(self, storage: Storage, file: StoredFile) -> Iterator[Part]:
        size, split = file.size, self._split
        if split is None or size is None or size <= split or not self._can_be_split(storage, file):
            yield Part(file.name, None, None)
            return
        for start in range(0, size, split):
            yield Part(file.name, (start, min(start + split, size)), file.mark)

    def _can_be_split(self, storage: Storage, file: StoredFile) -> bool:
        """Whether this file can be read from its middle on, is not compressed, and needs not to be put into UTF-8."""
        if not (self._spec.can_be_split and file.has_ranges):
            return False
        try:
            with storage.open(file, 0, _HEAD) as parts:
                head = b"".join(parts)
        except CursorExpired as error:  # there is no shard yet to begin again
            raise SupplierUnavailable(f"{file.name} changes just now: {error.message}", **error.facts) from error
        form = self._spec.format
        is_readable = form.kind != "csv" or is_as_utf8(head, form.encoding)
        return is_readable and compression_of(head, self._spec.compression) == "none"


def _key(part: Part) -> ShardKey:
    """Return the key: the file's name, shortened where it is long, with the bytes where they are not all."""
    name = part.name
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return ShardKey(name if part.span is None else f"{name}#{part.span[0]}-{part.span[1]}")
