"""Lines of separated values in, as a stream; each as a JSON object of texts out, or as a text where it is no such line."""

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec

from sluice.adapters.sources.files.record_pages import as_text
from sluice.adapters.sources.files.window import Record, Window
from sluice.errors import FileUnreadable
from sluice.model.source import CsvFormat

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UTF8: Final = ("utf-8", "ascii")
_DAMAGE: Final = "sluice-damage"
"""What cannot be decoded becomes a lone surrogate, which is not UTF-8 either: so the record that has it is rejected."""

codecs.register_error(_DAMAGE, lambda error: ("\ud800", error.end if isinstance(error, UnicodeDecodeError) else 0))


def in_utf8(parts: Iterator[bytes], encoding: str, name: str) -> tuple[Iterator[bytes], bool]:
    """Return the bytes in UTF-8, and whether that is as they come. A BOM knows better than what is declared."""
    head = b""
    while len(head) < len(codecs.BOM_UTF32_LE) and (part := next(parts, b"")):
        head += part
    parts = chain([head], parts)
    if is_as_utf8(head, encoding):
        return parts, True
    return _recoded(parts, _actual(head, encoding), name), False


def is_as_utf8(head: bytes, encoding: str) -> bool:
    """Whether a file that begins like this can be read as it is."""
    return _actual(head, encoding).removesuffix("-sig") in _UTF8


def _actual(head: bytes, encoding: str) -> str:
    return next((known for bom, known in _BOMS if head.startswith(bom)), codecs.lookup(encoding).name)


def _recoded(parts: Iterator[bytes], encoding: str, name: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(_DAMAGE)
    # A BOM comes through as a character, which is the BOM of UTF-8 then, and left out as such.
    try:
        for part in parts:
            yield decoder.decode(part).encode("utf-8", "surrogatepass")
        yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")
    except UnicodeError as exc:
        raise FileUnreadable(f"{name}: is not encoded as {encoding}", file=name) from exc


class CsvLines:
    """Reads lines of one dialect."""

    def __init__(self, declared: CsvFormat) -> None:
        comma = re.escape(declared.delimiter)
        bare, quoted, value = f"[^{comma}\n]*+", "", f"[^{comma}\n]*+"
        if declared.quote is not None:
            quote = re.escape(declared.quote)
            quoted = f"{quote}[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+{quote}"
            value = f"(?:{quoted}[^{comma}\n]*+|(?!{quote}){bare})"
        line = f"{value}(?:{comma}{value})*+"
        self._line = re.compile(f"{line}\n".encode())
        self._last = re.compile(f"{line}\\Z".encode())
        self._value = re.compile(f"(?:({quoted})([^{comma}]*+)|([^{comma}]*+))({comma}|\\Z)")
        self._delimiter, self._quote = declared.delimiter, declared.quote
        self._columns = declared.columns

    def columns(self, window: Window) -> Sequence[str]:
        """Return the names of the columns: as declared, or those in the first line, behind which the window then begins."""
        if self._columns:
            return self._columns
        for line, _, _ in self._lines(window):
            names = self._values(_decoded(line))
            if names is None or None in names or "\r" in "".join(filter(None, names)):
                window.refuse("the first line does not name the columns")
            if twice := sorted({name or "" for name in names if names.count(name) > 1}):
                window.refuse(f"the first line names columns twice: {', '.join(twice)[:200]}")
            return [name or "" for name in names]
        return ()

    def records(self, window: Window, columns: Sequence[str]) -> Iterator[Record]:
        """Yield each line that is not empty. One with too few or too many values is a text that says so."""
        for line, begin, end in self._lines(window):
            values = self._values(_decoded(line))
            if values is None:
                raw = as_text(b"text behind a closing quote in the line: " + line)
            elif len(values) != len(columns):
                raw = as_text(b"%d values for %d columns in the line: %s" % (len(values), len(columns), line))
            else:
                raw = _json(dict(zip(columns, values, strict=True)))
            yield Record(raw, begin, end)

    def _lines(self, window: Window) -> Iterator[tuple[bytes, int, int]]:
        """Yield each line that is not empty, with where it begins and where the next one does."""
        while True:
            found = self._line.match(window.data, window.at)
            if found is None and window.more():
                continue
            if found is None and (found := self._last.match(window.data, window.at)) is None:
                window.refuse("a line begins with a quote in it that does not close")
            stop = found.end()
            line = window.data[window.at : stop].removesuffix(b"\n").removesuffix(b"\r")
            begin = window.place
            window.require_small(len(line))
            window.at = stop
            if line:
                yield line, begin, window.place
            elif stop == len(window.data) and not window.more():
                return

    def _values(self, line: str) -> list[str | None] | None:
        """Return the values of a line, None for those that are empty and not quoted; None if it breaks the rules of quotes."""
        if self._quote is None or self._quote not in line:
            return [value or None for value in line.split(self._delimiter)]
        quote = self._quote
        values: list[str | None] = []
        for quoted, behind, bare, delimiter in self._value.findall(line):
            if behind or bare.startswith(quote):
                return None
            values.append(quoted[1:-1].replace(quote * 2, quote) if quoted else bare or None)
            if not delimiter:
                break
        return values


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def _json(record: dict[str, str | None]) -> bytes:
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:  # bytes that are no UTF-8 stay so, for the mapping to reject
        return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogateescape")
