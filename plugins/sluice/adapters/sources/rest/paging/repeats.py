"""Pages in the order in which they come in; whether they come no further, though each has a new cursor, out."""

from typing import Final

from sluice.adapters.sources.rest.paging.page_numbers import digest_of
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
        self._digest = ""
        self._times = 0

    def are_endless(self, reading: Reading) -> bool:
        """Note a page; return whether it has come too often in a row."""
        digest = digest_of(reading) if reading.records else ""
        self._times = self._times + 1 if digest and digest == self._digest else 0
        self._digest = digest
        return self._times > _MOST_REPEATS
