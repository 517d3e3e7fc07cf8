"""A redrive's shard comes in; the stored records of its dead letters go out as pages, byte for byte, and no supplier is asked.

A page has the records where those of the spec's own pages stand. What it holds is noted as taken up before it goes out, so that
a letter whose object comes right is closed even where nobody could name it. A letter whose bytes are gone is told by number,
stays open, and stops no other.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog
from pydantic import JsonValue

from sluice import log_events
from sluice.errors import ArtifactCorrupt
from sluice.mapping.reject_lines import bytes_hash, read
from sluice.mapping.stored_records import RecordGone, StoredRecords
from sluice.model.reject import DeadLetterLines, RawAddress, Reject
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.ports import Page, PageRequest, Services

log: Final = structlog.get_logger()

_RECORDS: Final = 500
_BYTES: Final = 1_000_000
"""A page ends behind whichever comes first."""


@dataclass
class _OpenPage:
    """Records on their way out, and the letters they are of."""

    records: list[bytes] = field(default_factory=list)
    letters: dict[int, str] = field(default_factory=dict)
    bytes: int = 0
    cursor: JsonValue = None
    """Behind its last record."""

    @property
    def is_full(self) -> bool:
        return len(self.records) >= _RECORDS or self.bytes >= _BYTES


class LetterSource:
    """The dead letters of a shard that a run is to take up, as a supplier would send them."""

    def __init__(self, services: Services, run: Run, shard: Shard, spec: SyncSpec) -> None:
        self._services = services
        self._run = run
        self._shard = shard
        self._path = spec.source.stored_records.split(".") if spec.source.stored_records else []
        self._stored = StoredRecords(services, spec)

    def now(self) -> datetime | None:
        """Nobody is asked, so nobody tells."""
        return None

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the records behind the cursor: first those of letters, then the rest."""
        page = _OpenPage()
        for record, letter, cursor in self._records(request.cursor):
            if page.is_full:
                yield self._closed(page, page.cursor)
                page = _OpenPage()
            page.records.append(record)
            page.bytes += len(record)
            page.cursor = cursor
            if letter is not None:
                page.letters[letter] = bytes_hash(record)
        if page.records:
            yield self._closed(page, None)

    def _closed(self, page: _OpenPage, cursor: JsonValue) -> Page:
        if page.letters:
            self._services.redrives.take_up(self._shard, page.letters)
        body = b"[" + b",".join(page.records) + b"]"
        for name in reversed(self._path):
            body = b"{" + json.dumps(name).encode() + b": " + body + b"}"
        return Page(body, len(page.records), cursor)

    def _records(self, cursor: JsonValue) -> Iterator[tuple[bytes, int | None, JsonValue]]:
        """Yield each record with the number of its letter, if it has one, and the cursor behind it."""
        known = cursor if isinstance(cursor, dict) else {}
        after = known.get("rest")
        if after is None:
            yield from self._of_letters(RawAddress.model_validate(known) if known else None)
            after = 0
        yield from self._of_lines(int(str(after)), int(str(known.get("line", -1))))

    def _of_letters(self, after: RawAddress | None) -> Iterator[tuple[bytes, int | None, JsonValue]]:
        while letters := self._services.redrives.letters(self._run, self._shard.key, after, _RECORDS):
            for letter in letters:
                after = letter.reject.address
                try:
                    record = self._stored.record(letter.reject)
                except RecordGone as gone:
                    _tell_gone([letter.id], 1, after.artifact, str(gone))
                    continue
                yield record, letter.id, after.model_dump()

    def _of_lines(self, first: int, done: int) -> Iterator[tuple[bytes, int | None, JsonValue]]:
        """Yield what has no letter of its own, from behind line `done` of row `first` on."""
        for rest in self._services.redrives.lines(self._run, self._shard.key, first - 1):
            behind = done if rest.id == first else -1
            found = self._found(rest, behind)
            before = [line for start, end in rest.taken for line in range(start, end) if line <= behind]
            self._services.redrives.take_up_lines(self._shard, rest.id, [*before, *found])
            for line, record in found.items():
                yield record, None, {"rest": rest.id, "line": line}

    def _found(self, rest: DeadLetterLines, behind: int) -> dict[int, bytes]:
        """Return the records of lines that can be had: no more than those of one chunk."""
        found: dict[int, bytes] = {}
        gone: dict[int, str] = {}
        for line, reject in self._lines(rest):
            if line > behind:
                try:
                    found[line] = self._stored.record(reject)
                except RecordGone as signal:
                    gone[line] = str(signal)
        if gone:
            _tell_gone([], len(gone), rest.raw_artifact, next(iter(gone.values())))
        return found

    def _lines(self, rest: DeadLetterLines) -> Iterator[tuple[int, Reject]]:
        pointer = self._services.pointers.named([rest.artifact]).get(rest.artifact)
        try:
            lines = self._services.artifacts.get(pointer) if pointer is not None else None
        except ArtifactCorrupt:
            lines = None
        if lines is None:
            _tell_gone([], rest.objects, rest.artifact, "the artifact that says where they stand is gone")
            return
        for line, reject in enumerate(read(lines)):
            if rest.holds(line):
                yield line, reject


def _tell_gone(letters: list[int], objects: int, artifact: str, why: str) -> None:
    log.warning(log_events.LETTERS_UNREADABLE, letters=letters, objects=objects, artifact=artifact, message=why)
