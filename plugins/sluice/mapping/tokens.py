"""JSON text that may be damaged inside comes in; where its parts begin and end comes out.

The decoder of the fast path refuses a page as a whole, for one lone surrogate or `NaN` in one record. This scanner looks at
brackets, commas and quotes only, so that the page can still be taken apart and the damage blamed on the record that has it.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},:]|[^\s"\[\]{},:]++|"', re.DOTALL)
_UP_TO_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
MINUS_ZERO: Final = re.compile(rb"-0[,\]}\s]")
"""Within a container, an integer that fast decoders read as 0."""
ODD_ZERO: Final = re.compile(MINUS_ZERO.pattern + rb"|[eE]-[0-9]{3}|\.0{200}")
"""What may be another number than the 0 as which a fast decoder reads it: -0, or one that is too small for a double."""
_CLOSERS: Final = {b"{": b"}", b"[": b"]"}


class Unbalanced(Exception):
    """A signal within the mapping: brackets or quotes do not match, or something is missing between commas."""


class _Item:
    """One item of a container, while its tokens come by."""

    def __init__(self) -> None:
        self.key = b""
        self.tokens = 0
        self.colons = 0
        self.start = -1
        self.end = -1

    def take(self, token: bytes, start: int, end: int) -> None:
        self.tokens += 1
        if token == b":":
            self.colons += 1
            self.start = -1
            return
        if self.tokens == 1:
            self.key = token
        if self.start < 0:
            self.start = start
        self.end = end


def items(text: bytes, start: int = 0) -> Iterator[tuple[bytes, int, int]]:
    """Yield the key token (of a list's item: its first token) and the span of each item of the container at `start`.

    Raises `Unbalanced` if the container does not end, or an item is missing; nothing else is checked.
    """
    opener = _token(text, start)
    closer = _CLOSERS.get(opener[0])
    if closer is None:
        raise Unbalanced
    colons = 1 if opener[0] == b"{" else 0
    place, item, is_first = opener.end(), _Item(), True
    while True:
        token = _token(text, place)
        place = end(text, token.start()) if token[0] in _CLOSERS else token.end()
        if token[0] not in (b",", b"]", b"}"):
            item.take(token[0], token.start(), place)
            continue
        if item.start >= 0 and item.colons == colons:
            yield item.key, item.start, item.end
        elif item.tokens or token[0] == b"," or not is_first:
            raise Unbalanced
        if token[0] == closer:
            return
        if token[0] != b",":
            raise Unbalanced
        item, is_first = _Item(), False


def members(text: bytes, start: int = 0) -> dict[str, tuple[int, int]]:
    """Return the span of each member of the object at `start`; of a key that stands twice, the last one."""
    found = {}
    for token, begin, stop in items(text, start):
        try:
            key = msgspec.json.decode(token, type=str)
        except msgspec.MsgspecError:
            continue
        found[key] = (begin, stop)
    return found


def end(text: bytes, start: int = 0) -> int:
    """Return where the container at `start` ends; raise `Unbalanced` if it does not."""
    place = _token(text, start).start()
    closers: list[bytes] = []
    while True:
        sign = text[place : place + 1]
        if sign in _CLOSERS:
            closers.append(_CLOSERS[sign])
        elif not closers or sign != closers.pop():
            raise Unbalanced
        place += 1
        if not closers:
            return place
        gap = _UP_TO_BRACKET.match(text, place)
        place = gap.end() if gap else place


def opens(text: bytes, start: int = 0) -> bytes:
    """Return the first byte of the value that stands at `start`, behind white space."""
    first = _TOKEN.search(text, start)
    return first[0][:1] if first else b""


def _token(text: bytes, start: int) -> re.Match[bytes]:
    token = _TOKEN.search(text, start)
    if token is None or token[0] == b'"':
        raise Unbalanced
    return token
