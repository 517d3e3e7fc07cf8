"""Files below a connection of type http: a path in, what is known of the file and its bytes out."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from sluice.adapters.sources.files.storage import StoredFile
from sluice.adapters.sources.transport.client import HttpClient, Stream
from sluice.adapters.sources.transport.request import Request
from sluice.errors import CursorExpired, FileUnreadable, SupplierRefused
from sluice.guard.retries import http_date

_RANGE: Final = re.compile(r"bytes (?:[0-9]+-[0-9]+|\*)/([0-9]{1,18})")
_BEGIN: Final = re.compile(r"bytes ([0-9]{1,18})-")
_LENGTH: Final = re.compile(r"([0-9]{1,18})")
_WEAK: Final = "W/"
_UNPACKED_LATER: Final = ("", "identity", "gzip", "x-gzip", "zstd")
"""Encodings of the way that a file may have by itself as well."""


class HttpFiles:
    """Files that one client asks for, which is open while they are read."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def matching(self, pattern: str) -> list[StoredFile]:
        """Return the one file: over HTTP nothing is listed."""
        return [self.look(pattern)]

    def look(self, name: str) -> StoredFile:
        """Ask for the first byte alone, which tells as well whether parts of the file can be had."""
        try:
            with self._client.stream(_request(name, {"Range": "bytes=0-0"})) as answer:
                return _described(name, answer.headers, has_ranges=answer.status == HTTPStatus.PARTIAL_CONTENT)
        except SupplierRefused as error:
            if error.facts.get("status") != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
        with self._client.stream(_request(name, {})) as answer:  # it is empty
            return _described(name, answer.headers, has_ranges=False)

    @contextmanager
    def open(self, file: StoredFile, start: int, end: int | None) -> Iterator[Iterator[bytes]]:
        """Yield the bytes in parts; where the server has no ranges, what stands before them is received and left out."""
        wanted: dict[str, str] = {}
        if file.has_ranges and (start or end is not None):
            wanted["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
            if file.etag and not file.etag.startswith(_WEAK):
                wanted["If-Range"] = file.etag
        try:
            with self._client.stream(_request(file.name, wanted)) as answer:
                is_part = answer.status == HTTPStatus.PARTIAL_CONTENT
                if not _is_same(file, _described(file.name, answer.headers, has_ranges=is_part)):
                    raise _changed(file)
                if is_part and _begin(answer) != start:
                    raise FileUnreadable(f"{answer.shown}: the server sends other bytes than were asked for", file=file.name)
                if answer.encoding not in _UNPACKED_LATER:
                    raise FileUnreadable(f"{answer.shown}: is encoded as {answer.encoding[:40]!r}, which nobody asked for")
                yield answer.parts if is_part else _between(answer, start, end)
        except SupplierRefused as error:
            if error.facts.get("status") == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise _changed(file) from error
            raise


def _request(name: str, headers: Mapping[str, str]) -> Request:
    return Request(path=name if name.startswith("/") else f"/{name}", headers={"Accept": "*/*", **headers})


def _described(name: str, headers: Mapping[str, str], *, has_ranges: bool) -> StoredFile:
    told = (
        _RANGE.fullmatch(headers.get("content-range", ""))
        if has_ranges
        else _LENGTH.fullmatch(headers.get("content-length", ""))
    )
    size = int(told[1]) if told else None
    file = StoredFile(
        name=name,
        size=size,
        etag=headers.get("etag") or None,
        modified_at=http_date(headers.get("last-modified")),
        has_ranges=has_ranges and size is not None,
    )
    # Where nothing tells one state of a file from another, two parts of it may be of two.
    return file if file.mark is not None else replace(file, has_ranges=False)


def _begin(answer: Stream) -> int | None:
    told = _BEGIN.match(answer.headers.get("content-range", ""))
    return int(told[1]) if told else None


def _is_same(known: StoredFile, found: StoredFile) -> bool:
    """Whether two answers tell of the same state of a file, by what both of them tell."""
    if known.etag or found.etag:
        return known.etag == found.etag
    is_same_size = None in (known.size, found.size) or known.size == found.size
    return is_same_size and known.modified_at == found.modified_at


def _between(answer: Stream, start: int, end: int | None) -> Iterator[bytes]:
    place = 0
    for part in answer.parts:
        kept = part[max(0, start - place) : None if end is None else max(0, end - place)]
        place += len(part)
        if kept:
            yield kept
        if end is not None and place >= end:
            return


def _changed(file: StoredFile) -> CursorExpired:
    return CursorExpired(f"{file.name} is not the file any more that was begun with, so it is read from its beginning")
