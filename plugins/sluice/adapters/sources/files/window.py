"""A stream of bytes in; as much of it as is being looked at out, and the place in the file where that stands."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

from sluice.errors import AnswerTooLarge, FileUnreadable

_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_BOM: Final = b"\xef\xbb\xbf"


class Record(NamedTuple):
    """One record as JSON, and where it stood in what was read."""

    raw: bytes
    begin: int
    end: int | None
    """Where reading may go on behind it; None: it has to begin at the beginning."""


class Window:
    """Looks at a stream part by part: `data` from `at` on is what has not been dealt with yet."""

    def __init__(self, parts: Iterator[bytes], name: str, limit: int, start: int = 0) -> None:
        """Look at the stream of the file `name` from its byte `start` on; no record may have more than `limit` bytes."""
        self.data = b""
        self.at = 0
        self.name = name
        self._parts = parts
        self._limit = limit
        self._base = start
        if start == 0:
            while len(self.data) < len(_BOM) and self.more():
                pass
            self.at = len(_BOM) if self.data.startswith(_BOM) else 0

    @property
    def place(self) -> int:
        """Where in the file `at` is."""
        return self._base + self.at

    def sign(self) -> bytes:
        """Return the next byte that is no white space, having gone up to it; nothing at the end."""
        while True:
            space = _SPACE.match(self.data, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.data):
                return self.data[self.at : self.at + 1]
            if not self.more():
                return b""

    def more(self) -> bool:
        """Take in at least as much again as there is left, so that nothing is looked at often; False if nothing follows."""
        rest = self.data[self.at :]
        self.require_small(len(rest))
        wanted, got, parts = max(len(rest), 1), 0, [rest]
        for part in self._parts:
            parts.append(part)
            got += len(part)
            if got >= wanted:
                break
        self._base += self.at
        self.at = 0
        self.data = b"".join(parts)
        return got > 0

    def pass_by(self, sign: bytes) -> None:
        """Go behind the next such byte, or to the end if there is none."""
        while (found := self.data.find(sign, self.at)) < 0:
            self.at = len(self.data)
            if not self.more():
                return
        self.at = found + 1

    def require_small(self, size: int) -> None:
        """Raise `AnswerTooLarge` unless a record may have so many bytes."""
        if size > self._limit:
            raise AnswerTooLarge(
                f"{self.name}: a record at byte {self.place} is larger than {self._limit} bytes: raise max_body of the stage",
                file=self.name,
                byte=self.place,
            )

    def refuse(self, what: str) -> NoReturn:
        """Raise `FileUnreadable`, naming the place."""
        raise FileUnreadable(f"{self.name}: at byte {self.place} {what}", file=self.name, byte=self.place)
