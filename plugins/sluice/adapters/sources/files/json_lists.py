"""A JSON document with a list of records in, as a stream; the records out, byte for byte, one after the other."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, NoReturn

from sluice.adapters.sources.files.window import Record, Window
from sluice.errors import RecordsMissing

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR: Final = re.compile(rb'[^ \t\r\n,\[\]{}":]++')
_GAP: Final = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
_OPENINGS: Final = frozenset(bytes([sign]) for sign in b'{["-0123456789tfn')
_CLOSERS: Final = {b"{": b"}", b"[": b"]"}


def json_records(window: Window, path: Sequence[str], *, is_within: bool = False) -> Iterator[Record]:
    """Yield the records of the list at a path; `is_within` if the window begins behind one of them.

    Raises `FileUnreadable` for what is no JSON document, or not all of one, `RecordsMissing` where there is no list.
    """
    walk = _Walk(window)
    if not is_within:
        walk.enter(path)
        if walk.sign() == b"]":
            walk.leave(len(path))
            return
        yield walk.record()
    while (sign := walk.sign()) == b",":
        window.at += 1
        yield walk.record()
    if sign != b"]":
        walk.stumble("a comma or the end of the list")
    walk.leave(len(path))


class _Walk:
    """Goes through a document from front to back."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def sign(self) -> bytes:
        """Return the next byte that is no white space, having gone up to it; nothing at the end."""
        return self._window.sign()

    def enter(self, path: Sequence[str]) -> None:
        """Go to the first record of the list."""
        if self.sign() not in _OPENINGS:
            self.stumble("a JSON document")
        for key in path:
            if self.sign() != b"{":
                self._miss(path)
            self._go_to(key, path)
        if self.sign() != b"[":
            self._miss(path)
        self._window.at += 1

    def record(self) -> Record:
        """Return the value that begins here, and go behind it."""
        window = self._window
        sign = self.sign()
        size = self._size(sign)
        window.require_small(size)
        begin = window.place
        raw = window.data[window.at : window.at + size]
        window.at += size
        return Record(raw, begin, window.place)

    def leave(self, depth: int) -> None:
        """Go to the end of the document, seeing that it ends as it should."""
        self._window.at += 1
        self._skip_to_end(depth)
        if self.sign():
            self.stumble("the end of the file")

    def stumble(self, wanted: str) -> NoReturn:
        """Raise `FileUnreadable`: something else stands here."""
        self._window.refuse(f"there is {self.sign()!r} in place of {wanted}" if self.sign() else "the document is cut short")

    def _miss(self, path: Sequence[str]) -> NoReturn:
        name, place = self._window.name, ".".join(path) or "its root"
        raise RecordsMissing(f"{name}: there is no list at {place} (source.format.records)", file=name)

    def _go_to(self, wanted: str, path: Sequence[str]) -> None:
        """Go from an object's bracket to the value of one of its keys."""
        window = self._window
        while True:
            window.at += 1
            sign = self.sign()
            if sign == b"}":
                self._miss(path)
            if sign != b'"':
                self.stumble("a key")
            key = self.record().raw
            if self.sign() != b":":
                self.stumble("a colon")
            window.at += 1
            if _is_text(key, wanted):
                return
            self._skip()
            if self.sign() == b"}":
                self._miss(path)
            if self.sign() != b",":
                self.stumble("a comma")

    def _size(self, sign: bytes) -> int:
        """Return how many bytes the value that begins here has."""
        window = self._window
        while True:
            if sign in _CLOSERS:
                end = self._container_end()
            elif sign == b'"':
                end = found.end() if (found := _STRING.match(window.data, window.at)) else -1
            else:
                found = _SCALAR.match(window.data, window.at)
                if found is None:
                    self.stumble("a value")
                end = found.end()
                if end == len(window.data) and window.more():
                    continue
            if end >= 0:
                return end - window.at
            if not window.more():
                window.refuse("a value begins that is cut short")

    def _container_end(self) -> int:
        """Return where the container that begins here ends; -1 if that has not come yet."""
        data, place = self._window.data, self._window.at
        closers: list[bytes] = []
        while place < len(data):
            sign = data[place : place + 1]
            if sign in _CLOSERS:
                closers.append(_CLOSERS[sign])
            elif sign == b'"':
                return -1
            elif sign != closers.pop():
                self._window.refuse("a value begins whose brackets do not match")
            place += 1
            if not closers:
                return place
            gap = _GAP.match(data, place)
            place = gap.end() if gap else place
        return -1

    def _skip(self) -> None:
        """Go behind the value that begins here, which need not fit into the memory."""
        sign = self.sign()
        if sign in _CLOSERS:
            self._window.at += 1
            self._skip_to_end(1)
        else:
            size = self._size(sign)  # before `at` is read: to see the end of a value moves it
            self._window.at += size

    def _skip_to_end(self, depth: int) -> None:
        """Go behind so many closing brackets that belong to no container which begins on the way."""
        window = self._window
        while depth:
            gap = _GAP.match(window.data, window.at)
            window.at = gap.end() if gap else window.at
            sign = window.data[window.at : window.at + 1]
            if sign in (b"", b'"'):
                if not window.more():
                    window.refuse("the document is cut short")
                continue
            depth += 1 if sign in _CLOSERS else -1
            window.at += 1


def _is_text(token: bytes, wanted: str) -> bool:
    try:
        return bool(json.loads(token) == wanted)
    except ValueError:
        return False
