"""A file in; its records out, whatever its format and its compression, from the place on where reading goes on."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import assert_never

from sluice.adapters.sources.files.csv_lines import CsvLines, in_utf8
from sluice.adapters.sources.files.json_lists import json_records
from sluice.adapters.sources.files.parquet_rows import parquet_records
from sluice.adapters.sources.files.separated import LINE_FEED, RECORD_SEPARATOR, separated_records
from sluice.adapters.sources.files.storage import Handle
from sluice.adapters.sources.files.unpacking import Compression, unpacked
from sluice.adapters.sources.files.window import Record, Window
from sluice.adapters.sources.files.xml_elements import xml_records
from sluice.model.source import CsvFormat, FilesSource, FormatSpec, GeoJsonFormat, JsonFormat, JsonLinesFormat, XmlFormat

Span = tuple[int, int]
"""Bytes of a file, from the first to behind the last: the records that begin there are meant."""


@dataclass(frozen=True)
class Start:
    """Where in a file reading goes on."""

    records: int = 0
    """So many of those that are meant have been read."""
    byte: int | None = None
    """They end there; None: that is not known, and they are read once more, and left out."""


class Reading:
    """Reads the files of one source."""

    def __init__(self, source: FilesSource, limit: int) -> None:
        """Read files as declared; no record may have more than `limit` bytes."""
        self._format: FormatSpec = source.format
        self._compression: Compression = source.compression
        self._limit = limit

    def records(self, handle: Handle, span: Span | None, start: Start) -> Iterator[Record]:
        """Yield the records behind `start`.

        Raises `FileUnreadable`, `RecordsMissing`, `AnswerTooLarge`, and what the storage raises.
        """
        declared = self._format
        if declared.kind == "parquet":
            yield from parquet_records(handle, self._compression, self._limit, span, start.records)
            return
        begin = start.byte if start.byte is not None else _before(span)
        parts, tells_places = handle.bytes_from(begin), True
        if begin == 0:
            parts, tells_places = unpacked(parts, self._compression, handle.file.name)
            if declared.kind == "csv":
                parts, is_utf8 = in_utf8(parts, declared.encoding, handle.file.name)
                tells_places = tells_places and is_utf8
        records = self._of(declared, handle, parts, begin, is_within=start.byte is not None)
        if span is not None:
            records = _within(records, span)
        for record in islice(records, 0 if start.byte is not None else start.records, None):
            yield record if tells_places else record._replace(end=None)

    def _of(
        self,
        declared: XmlFormat | CsvFormat | JsonFormat | JsonLinesFormat | GeoJsonFormat,
        handle: Handle,
        parts: Iterator[bytes],
        begin: int,
        *,
        is_within: bool,
    ) -> Iterator[Record]:
        name = handle.file.name
        if declared.kind == "xml":
            return xml_records(parts, declared.element, name, self._limit)
        window = Window(parts, name, self._limit, begin)
        match declared:
            case JsonLinesFormat():
                return separated_records(window, LINE_FEED)
            case JsonFormat():
                return json_records(window, declared.records.split(".") if declared.records else (), is_within=is_within)
            case GeoJsonFormat() if window.sign() == RECORD_SEPARATOR:
                return separated_records(window, RECORD_SEPARATOR)
            case GeoJsonFormat():
                return json_records(window, ("features",), is_within=is_within)
            case CsvFormat():
                return self._csv(CsvLines(declared), handle, window, begin, is_within=is_within)
            case _:
                assert_never(declared)

    def _csv(self, lines: CsvLines, handle: Handle, window: Window, begin: int, *, is_within: bool) -> Iterator[Record]:
        if begin == 0:
            return lines.records(window, lines.columns(window))
        columns = lines.columns(Window(handle.bytes_from(), handle.file.name, self._limit))
        if not is_within:
            window.pass_by(LINE_FEED)
        return lines.records(window, columns)


def _before(span: Span | None) -> int:
    """Return where to begin so that a record which begins with the span is told from the rest of one before it."""
    return 0 if span is None or span[0] <= len(BOM_UTF8) else span[0] - 1


def _within(records: Iterator[Record], span: Span) -> Iterator[Record]:
    for record in records:
        if record.begin >= span[1]:
            return
        if record.begin >= span[0]:
            yield record
