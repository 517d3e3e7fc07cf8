"""Pages in the order in which they come in; whether they come no further, though each has a new cursor, out."""

from collections.abc import Sequence
from typing import Final

from msgspec import Raw

from sluice.adapters.sources.rest.reading import Reading

_MOST_REPEATS: Final = 2
"""How often in a row a page may come again: one that has moved, or was cut at an unlucky place, comes no third time."""


class Repeats:
    """Knows a page that comes over and over: cursors that are sealed anew for each answer never lead back.

    What counts and what remembers where it stood looks at that itself. Pages without records say nothing: a supplier that
    filters what it has paged may send many.
    """

    def __init__(self) -> None:
        """Know no page yet."""
        self._records: Sequence[Raw] = ()
        self._times = 0

    def are_endless(self, reading: Reading) -> bool:
        """Note a page; return whether it has come too often in a row."""
        is_again = bool(reading.records) and reading.records == self._records
        self._times = self._times + 1 if is_again else 0
        self._records = reading.records
        return self._times > _MOST_REPEATS
