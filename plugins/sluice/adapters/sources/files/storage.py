"""Where files lie: a name in; what is known of a file, and its bytes from any place on, whatever breaks meanwhile, out."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import structlog

from sluice import log_events
from sluice.errors import SupplierUnavailable

log: Final = structlog.get_logger()


@dataclass(frozen=True)
class StoredFile:
    """A file as it was when it was looked at."""

    name: str
    size: int | None
    """In bytes; None: nobody says."""
    etag: str | None
    modified_at: datetime | None
    has_ranges: bool
    """Whether it can be read from its middle on."""

    @property
    def mark(self) -> str | None:
        """What tells this state of the file from a later one: its ETag, or else name, size and time; None: nothing does."""
        if self.etag:
            return self.etag
        return f"{self.name} {self.size} {self.modified_at.isoformat()}" if self.modified_at else None


class Storage(Protocol):
    """Files of one supplier. All of it raises what `Source.pages` raises."""

    def matching(self, pattern: str) -> list[StoredFile]:
        """Return the files a pattern stands for, by name; none where nothing matches."""

    def look(self, name: str) -> StoredFile:
        """Return the file of exactly that name; raise `SupplierRefused` if there is none."""

    def open(self, file: StoredFile, start: int, end: int | None) -> AbstractContextManager[Iterator[bytes]]:
        """Yield the bytes from `start` to below `end`, None: to its last one, in parts.

        Raises `CursorExpired` if the file is not what it was when it was looked at.
        """


@dataclass(frozen=True)
class Handle:
    """One file that is being read."""

    storage: Storage
    file: StoredFile
    attempts: int
    """After so many broken connections in a row, all but the first of which brought nothing, it is given up."""

    def bytes_from(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from `start` on; where the connection is lost, another one goes on behind what has come."""
        size = self.file.size
        stop = size if end is None or (size is not None and size < end) else end
        place, failures = start, 0
        while stop is None or place < stop:
            is_open = False
            try:
                with self.storage.open(self.file, place, end) as parts:
                    is_open = True
                    for part in parts:
                        if stop is not None:
                            part = part[: stop - place]  # noqa: PLW2901  more than was asked for is nobody's
                        place += len(part)
                        failures = 0
                        yield part
            except SupplierUnavailable as error:
                if not is_open:
                    raise  # whoever opens has been as patient as may be, and may have been asked for a pause
                lost = error
            else:
                if stop is None or place >= stop:
                    return
                lost = SupplierUnavailable(f"{self.file.name}: ends at byte {place}, though it should go on to {stop}")
            if self.file.mark is None and place > start:
                raise SupplierUnavailable(
                    f"{self.file.name}: the connection was lost, and nothing tells whether the file is still the same: the "
                    "next try begins again"
                ) from lost
            failures += 1
            if failures >= self.attempts:
                raise lost
            log.warning(log_events.CALL_RETRIED, attempt=failures, error=type(lost).__name__, message=lost.message, seconds=0.0)
