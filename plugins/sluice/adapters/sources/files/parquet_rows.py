"""A Parquet file in, read row group by row group; each row as JSON out."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final

from sluice.adapters.sources.files.parquet_values import json_values
from sluice.adapters.sources.files.storage import Handle
from sluice.adapters.sources.files.unpacking import Compression, unpacked
from sluice.adapters.sources.files.window import Record
from sluice.errors import AnswerTooLarge, FileUnreadable
from sluice.guard.temporary_files import temporary_file

_BUFFER: Final = 1024 * 1024
"""So much of a column is asked for at a time."""
_ROWS: Final = 1000
_BATCH_BYTES: Final = 8 * 1024 * 1024


def parquet_records(
    handle: Handle, declared: Compression, limit: int, span: tuple[int, int] | None, skip: int
) -> Iterator[Record]:
    """Yield the rows behind the first `skip` ones, of the row groups that begin in `span`, or of all.

    A file that cannot be read from its middle on, or is compressed as a whole, is kept on disk meanwhile.
    """
    with _seekable(handle, declared) as file:
        yield from _rows(file, handle.file.name, limit, span, skip)


def _rows(file: IO[bytes], name: str, limit: int, span: tuple[int, int] | None, skip: int) -> Iterator[Record]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    from sluice.mapping.arrow import tells_of_bytes

    try:
        parquet = ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
        for number in range(parquet.metadata.num_row_groups):
            group = parquet.metadata.row_group(number)
            if span is not None and not span[0] <= _begin(group) < span[1]:
                continue
            if skip >= group.num_rows:
                skip -= group.num_rows
                continue
            for batch in parquet.iter_batches(batch_size=_batch_size(group), row_groups=[number], use_threads=False):
                for raw in json_values(batch, name)[skip:]:
                    if len(raw) > limit:
                        raise AnswerTooLarge(
                            f"{name}: a record is larger than {limit} bytes: raise max_body of the stage", file=name
                        )
                    yield Record(raw, 0, None)
                skip = max(0, skip - batch.num_rows)
    except (ArrowException, OSError) as exc:
        # That this worker's disk cannot be read, or its memory is used up, is not the file's fault.
        if not tells_of_bytes(exc):
            raise
        raise FileUnreadable(f"{name}: is no sound Parquet file ({type(exc).__name__})", file=name) from exc


def _batch_size(group: Any) -> int:
    """Return how many rows to take at a time, so that wide ones are few."""
    return int(max(1, min(_ROWS, _BATCH_BYTES * group.num_rows // max(1, group.total_byte_size))))


def _begin(group: Any) -> int:
    """Return where a row group begins."""
    if not group.num_columns:
        return 0
    column = group.column(0)
    return int(min(filter(None, (column.dictionary_page_offset, column.data_page_offset)), default=0))


@contextmanager
def _seekable(handle: Handle, declared: Compression) -> Iterator[IO[bytes]]:
    """Yield the file so that it can be read at any place; raise `DiskFull` where it is too large to be kept meanwhile."""
    is_packed = declared in ("gzip", "zstd")
    if handle.file.has_ranges and handle.file.size is not None and not is_packed:
        remote = RemoteFile(handle)
        if declared == "none" or remote.read(4) == b"PAR1":
            remote.seek(0)
            yield remote
            return
    parts, _ = unpacked(handle.bytes_from(), declared, handle.file.name)
    with temporary_file() as spool:
        for part in parts:
            spool.write(part)
        spool.seek(0)
        yield spool


class RemoteFile(io.RawIOBase, IO[bytes]):
    """A file that is asked for piece by piece, wherever somebody reads."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._size = handle.file.size or 0
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return so many bytes from here on, or all; fewer only at the end."""
        end = self._size if size is None or size < 0 else min(self._size, self._at + size)
        data = b"".join(self._handle.bytes_from(self._at, end)) if end > self._at else b""
        self._at += len(data)
        return data
