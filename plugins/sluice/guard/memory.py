"""Lack of memory: a block of work goes in; an error of the tree, which says what to do, comes out where memory was lacking."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sluice.errors import OutOfMemory

_NO_THREAD: Final = "can't start new thread"
"""What Python says, as one `RuntimeError` of many, where there is no room for a stack: mostly the first to be missing."""


@contextmanager
def lack_of_memory_told() -> Iterator[None]:
    """Raise `OutOfMemory` where the block, or what it waits for, gets no memory or no thread."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory from error
    except RuntimeError as error:
        if str(error) != _NO_THREAD:
            raise
        raise OutOfMemory from error
