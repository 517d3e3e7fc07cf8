"""A block that makes objects by the ten thousand comes in; while it runs, circles among them are looked for rarely."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MADE_BETWEEN: Final = 100_000
"""So many more objects than have gone set off a search; Python's own 700 cost a tenth of what it takes to map a chunk."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Search for circles less often within the block: records and their values are in none, and go as soon as they are done."""
    usual = gc.get_threshold()
    gc.set_threshold(max(usual[0], _MADE_BETWEEN) if usual[0] else 0, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
