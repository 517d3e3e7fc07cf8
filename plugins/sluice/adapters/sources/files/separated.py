"""Records that a certain byte stands between (JSON lines, a sequence of features) in, as a stream; the records out."""

from collections.abc import Iterator
from typing import Final

from sluice.adapters.sources.files.window import Record, Window

LINE_FEED: Final = b"\n"
RECORD_SEPARATOR: Final = b"\x1e"
_SPACE: Final = b" \t\r\n"


def separated_records(window: Window, separator: bytes) -> Iterator[Record]:
    """Yield what stands between the separators, unless it is nothing; the window may begin at one, or behind it.

    A record begins behind its separator, and ends where the next one is.
    """
    blank = _SPACE + separator
    while True:
        end = window.data.find(separator, window.at + 1)
        while end < 0 and window.more():
            end = window.data.find(separator, window.at + 1)
        stop = len(window.data) if end < 0 else end
        piece = window.data[window.at : stop]
        begin = window.place + (1 if piece.startswith(separator) else 0)
        raw = piece.strip(blank)
        window.require_small(len(raw))
        window.at = stop
        if raw:
            yield Record(raw, begin, window.place)
        if end < 0:
            return
