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
from sluice.errors import AnswerUnusable, ArtifactCorrupt, NotFound, SpecInvalid, StateUnreadable
from sluice.flow.damage import note
from sluice.flow.pinned_spec import pinned_spec
from sluice.mapping.pages import PageSplitter
from sluice.mapping.reject_lines import bytes_hash, read
from sluice.model.artifact import Pointer
from sluice.model.base import RunId
from sluice.model.reject import DeadLetterRest, RawAddress, Reject
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.ports import Page, PageRequest, Services

log: Final = structlog.get_logger()

_RECORDS: Final = 500
_BYTES: Final = 1_000_000
"""A page ends behind whichever comes first."""


class _Gone(Exception):
    """A signal within this module: why the bytes at an address cannot be had."""


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
        self._chunks = _Chunks(services, spec)

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
        yield from self._of_rest(int(str(after)), int(str(known.get("line", -1))))

    def _of_letters(self, after: RawAddress | None) -> Iterator[tuple[bytes, int | None, JsonValue]]:
        while letters := self._services.redrives.letters(self._run, self._shard.key, after, _RECORDS):
            for letter in letters:
                after = letter.reject.address
                try:
                    record = self._chunks.record(letter.reject)
                except _Gone as gone:
                    _tell_gone([letter.id], 1, after.artifact, str(gone))
                    continue
                yield record, letter.id, after.model_dump()

    def _of_rest(self, first: int, done: int) -> Iterator[tuple[bytes, int | None, JsonValue]]:
        """Yield what has no letter of its own, from behind line `done` of row `first` on."""
        for rest in self._services.redrives.rest(self._run, self._shard.key, first - 1):
            behind = done if rest.id == first else -1
            found = self._found(rest, behind)
            before = [line for start, end in rest.taken for line in range(start, end) if line <= behind]
            taken = before if rest.redriven_by == self._run.id else []
            self._services.redrives.take_up_rest(self._shard, rest.id, [*taken, *found])
            for line, record in found.items():
                yield record, None, {"rest": rest.id, "line": line}

    def _found(self, rest: DeadLetterRest, behind: int) -> dict[int, bytes]:
        """Return the records of lines that can be had: no more than those of one chunk."""
        found: dict[int, bytes] = {}
        gone: dict[int, str] = {}
        for line, reject in self._lines(rest):
            if line > behind:
                try:
                    found[line] = self._chunks.record(reject)
                except _Gone as signal:
                    gone[line] = str(signal)
        if gone:
            _tell_gone([], len(gone), rest.raw_artifact, next(iter(gone.values())))
        return found

    def _lines(self, rest: DeadLetterRest) -> Iterator[tuple[int, Reject]]:
        try:
            for line, reject in enumerate(read(_stored(self._services, _pointer(self._services, rest.artifact)))):
                if rest.holds(line):
                    yield line, reject
        except _Gone as gone:
            _tell_gone([], rest.objects, rest.artifact, str(gone))


class _Chunks:
    """Raw chunks, read from front to back: who asks in the order of addresses has each of them read once."""

    def __init__(self, services: Services, spec: SyncSpec) -> None:
        self._services = services
        self._spec = spec
        self._artifact: str | None = None
        self._why: str | None = None
        """Why the present chunk cannot be read; None: it can."""
        self._pages: Iterator[tuple[int, bytes]] = iter(())
        self._frame = -1
        self._found: list[bytes] = []
        self._splitter = PageSplitter(spec.source.stored_records)

    def record(self, reject: Reject) -> bytes:
        """Return the bytes of a record; raise `_Gone`."""
        address = reject.address
        if address.artifact != self._artifact or address.frame < self._frame:
            self._open(address.artifact)
        if self._why is not None:
            raise _Gone(self._why)
        while self._frame < address.frame:
            self._turn(address.frame)
        record = self._found[address.index] if address.index < len(self._found) else b""
        if not record or (reject.raw_hash is not None and bytes_hash(record) != reject.raw_hash):
            raise _Gone("its bytes are not where they were: today's spec finds the records of a page elsewhere")
        return record

    def _open(self, artifact: str) -> None:
        self._artifact, self._frame, self._found, self._why = artifact, -1, [], None
        try:
            pointer = _pointer(self._services, artifact)
            self._pages = enumerate(self._services.codec.pages(_stored(self._services, pointer)))
            self._splitter = PageSplitter(self._spec_of(pointer.ref.run).source.stored_records)
        except _Gone as gone:
            self._why = str(gone)

    def _turn(self, wanted: int) -> None:
        """Turn to the next page; it is taken apart only if it is the one that is wanted."""
        try:
            self._frame, body = next(self._pages)
            self._found = [bytes(raw) for raw in self._splitter.split(body).records] if self._frame == wanted else []
        except StopIteration:
            self._why = "its chunk has fewer pages than it had"
        except (ArtifactCorrupt, AnswerUnusable) as error:
            self._why = error.message
        if self._why is not None:
            raise _Gone(self._why)

    def _spec_of(self, run: RunId) -> SyncSpec:
        """Return the spec by which the pages were fetched, as long as it is known."""
        try:
            return pinned_spec(self._services, self._services.runs.get(run))
        except (NotFound, SpecInvalid, StateUnreadable):
            return self._spec


def _pointer(services: Services, artifact: str) -> Pointer:
    found = services.pointers.named([artifact])
    if artifact not in found:
        raise _Gone("nothing points to them any more")
    return found[artifact]


def _stored(services: Services, pointer: Pointer) -> bytes:
    try:
        return services.artifacts.get(pointer)
    except ArtifactCorrupt as error:
        note(services, pointer, error)
        raise _Gone(error.message) from error


def _tell_gone(letters: list[int], objects: int, artifact: str, why: str) -> None:
    log.warning(log_events.LETTERS_UNREADABLE, letters=letters, objects=objects, artifact=artifact, message=why)
