"""A chunk's pages as they came in; its rows as Parquet, its rejects by name, and what its marks say out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Final

from msgspec import Raw

from sluice.errors import AnswerUnusable
from sluice.mapping.collecting import rarely_collected
from sluice.mapping.columns import RowsFile, reading_of
from sluice.mapping.identity import Identified, Identity
from sluice.mapping.pages import PageSplitter, RecordPage
from sluice.mapping.reader import Reader
from sluice.mapping.reading import Outcome, outcomes
from sluice.mapping.reject_lines import bytes_hash
from sluice.mapping.team_functions import making
from sluice.mapping.violation import Problem
from sluice.mapping.watermarks import ChunkMarks, mark_order
from sluice.model.base import ObjectKey
from sluice.model.reject import RawAddress, Reject
from sluice.model.rows import Postdated
from sluice.model.spec import SyncSpec
from sluice.ports import Remember, TeamFunction

_PROBLEMS_NAMED: Final = 20
"""Of one object; a person who mends these finds the others."""


@dataclass(frozen=True)
class MappedChunk:
    """What one raw chunk was mapped to."""

    rows: bytes
    """The rows artifact, Parquet: see `model.rows`."""
    objects: int
    """How many rows it has."""
    mapped: int
    """How many of them were read in full; the others are as the ledger remembers them, or gone."""
    rejects: tuple[Reject, ...]
    high_mark: str | None
    postdated: Postdated | None = None


@dataclass(frozen=True)
class _Chunk:
    """What has come of a chunk so far."""

    artifact_key: str
    file: RowsFile
    marks: ChunkMarks | None
    pages: list[RecordPage] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)


class Mapper:
    """Maps the records of one shard of a sync."""

    def __init__(
        self,
        spec: SyncSpec,
        until: datetime | None = None,
        supplied_at: datetime | None = None,
        function: TeamFunction | None = None,
        moved: Callable[[], object] = lambda: None,
    ) -> None:
        """Let no mark above `until` count, and count what is dated after `supplied_at`: see `ChunkMarks`.

        `function` is the team's, of a spec that has one; after each call of it, `moved` is called.
        """
        self._splitter = PageSplitter(spec.source.stored_records)
        self._names = [field.name for field in spec.fields]
        self._reader = Reader(spec.fields, required=spec.object.key)
        self.reading = reading_of(spec, function)
        """The number of this way to make rows of records."""
        self._identity = Identity(spec, self.reading)
        self._making = None if function is None else making(spec, function, self._identity, moved)
        self._order = mark_order(spec)
        self._bounds = (until, supplied_at)
        self._are_new = False
        """Whether the ledger knew none of the objects last looked up: then the next ones are read in full from the first."""

    @rarely_collected()
    def map_chunk(self, pages: Iterable[bytes], artifact_key: str, remember: Remember) -> MappedChunk:
        """Map the pages of the raw artifact `artifact_key`; what `remember` knows by its raw bytes is not read further.

        A bad record is a reject and stops no other. Raises `AnswerNotJson` or `RecordsMissing`, naming artifact and page, if a
        page cannot be taken apart.
        """
        chunk = _Chunk(
            artifact_key,
            RowsFile(self._names, self._reader.kinds),
            ChunkMarks(self._order, *self._bounds) if self._order else None,
        )
        records: list[Identified] = []
        is_looked_up = self._making is not None
        for frame, body in enumerate(pages):
            chunk.pages.append(self._split(body, artifact_key, frame))
            records += self._identified(chunk, frame)
            if records and not is_looked_up:
                # What the ledger knows of one page says what to expect of the others.
                self._take(chunk, records, remember)
                records, is_looked_up = [], True
        if records:
            self._take(chunk, records, remember)
        marks = chunk.marks
        high_mark, postdated = (marks.high_mark, marks.postdated) if marks else (None, None)
        return MappedChunk(
            rows=chunk.file.parquet(self.reading, high_mark, postdated),
            objects=len(chunk.file),
            mapped=chunk.file.mapped,
            rejects=tuple(sorted(chunk.rejects, key=lambda reject: (reject.address.frame, reject.address.index))),
            high_mark=high_mark,
            postdated=postdated,
        )

    def _split(self, body: bytes, artifact_key: str, frame: int) -> RecordPage:
        try:
            return self._splitter.split(body)
        except AnswerUnusable as error:
            message = f"page {frame} of {artifact_key}: {error.message}"
            raise type(error)(message, artifact=artifact_key, frame=frame) from None

    def _identified(self, chunk: _Chunk, frame: int) -> list[Identified]:
        """Return each record of a page with its key, version and watermark, and its bytes hashed."""
        page = chunk.pages[frame]
        is_whole = self._are_new and self._making is None and self._identity.reads_whole
        make, make_all = (chunk.file.make, chunk.file.make_all) if is_whole else (None, None)
        if not page.dubious and not (is_whole and page.damaged):
            at_once = self._identity.of_all(page.records, frame, make_all)
            if at_once is not None:
                return at_once
        identified = []
        for index, raw in enumerate(page.records):
            # What is known by its bytes is sound, so others are looked at later on, unless they are read in full at once.
            is_lost = is_whole and index in page.damaged
            is_dubious = index in page.dubious
            found = None if is_lost else self._identity.of(raw, frame, index, is_dubious=is_dubious, make=make)
            if found is None:
                self._lose(chunk, raw, frame, index)
            else:
                identified.append(found)
        return identified

    def _lose(self, chunk: _Chunk, raw: Raw, frame: int, index: int) -> None:
        """Reject a record of which not even the identity is sound."""
        key, problems = self._identity.problems(raw)
        chunk.rejects.append(_reject(key, RawAddress(artifact=chunk.artifact_key, frame=frame, index=index), problems, raw))

    def _take(self, chunk: _Chunk, records: Sequence[Identified], remember: Remember) -> None:
        """Make of each record what it is, by what `remember` knows of its object: a row, a tombstone, or a reject."""
        known = remember(list(dict.fromkeys(record.head.key for record in records)))
        self._are_new = not known
        as_held = [
            held if (held := known.get(record.head.key)) is not None and held.raw_hash == record.head.raw_hash else None
            for record in records
        ]
        unknown = [record for record, held in zip(records, as_held, strict=True) if held is None]
        lost = _lost(chunk, unknown)
        read = self._read([record for record in unknown if not (record.is_gone or record.made or id(record) in lost)])
        for record, held in zip(records, as_held, strict=True):
            head = record.head
            if id(record) in lost:
                self._lose(chunk, record.raw, head.frame, head.index)
                continue
            if record.is_gone:
                chunk.file.add_tombstone(head)
            elif held is not None:
                chunk.file.add_unmapped(head, held)
            elif record.made:
                chunk.file.add(head, record.made)
            else:
                values = next(read)
                if isinstance(values, tuple):
                    address = RawAddress(artifact=chunk.artifact_key, frame=head.frame, index=head.index)
                    chunk.rejects.append(_reject(head.key, address, values, record.raw))
                    continue
                chunk.file.add(head, chunk.file.make(values))
            if chunk.marks is not None and record.mark is not None:
                chunk.marks.take(head.key, record.mark)

    def _read(self, records: Sequence[Identified]) -> Iterator[Outcome]:
        """Yield what becomes of each object that the ledger does not know as it is."""
        if self._making is not None:
            return iter(self._making(records))
        return outcomes(self._reader, [(record.raw, record.is_dubious) for record in records])


def _lost(chunk: _Chunk, records: Sequence[Identified]) -> set[int]:
    """Return the ids of the records that are damaged. What has been made rows of has been looked at."""
    unseen = [record for record in records if not record.made]
    lost: set[int] = set()
    for frame, of_page in groupby(unseen, lambda record: record.head.frame):
        found = {record.head.index: id(record) for record in of_page}
        lost.update(found[index] for index in chunk.pages[frame].damaged_among(list(found)))
    return lost


def _reject(key: ObjectKey | None, address: RawAddress, problems: Sequence[Problem], raw: Raw) -> Reject:
    return Reject(
        key=key,
        address=address,
        error=problems[0].error,
        field=problems[0].field,
        message=_told(problems),
        raw_hash=bytes_hash(raw),
    )


def _told(problems: Sequence[Problem]) -> str:
    """Return the first problems in words, and how many more there are."""
    texts = [f"{problem.field}: {problem.message}" if problem.field else problem.message for problem in problems]
    more = len(texts) - _PROBLEMS_NAMED
    return "; ".join(texts if more <= 0 else [*texts[:_PROBLEMS_NAMED], f"and {more} more fields"])
