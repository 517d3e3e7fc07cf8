"""What is too large for memory: a block that needs room on the disk goes in; an empty file, or a `DiskFull`, comes out."""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from sluice.errors import DiskFull

_FULL: Final = (ENOSPC, EDQUOT, EFBIG)
"""No room on the disk, none left of what this user may take, and no file may be so large."""


@contextmanager
def temporary_file() -> Iterator[BinaryIO]:
    """Yield an empty file that only this process sees, and that goes with the block; raise `DiskFull` if it finds no room."""
    try:
        file = TemporaryFile()  # noqa: SIM115  what the block raises is another matter
    except OSError as error:
        raise _told(error) from error
    try:
        with file:
            yield file
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise _told(error) from error


def _told(error: OSError) -> DiskFull:
    return DiskFull(f"{DiskFull.__doc__} ({error.strerror})")
