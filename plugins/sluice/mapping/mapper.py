"""A chunk's pages as they came in; its rows as Parquet, its rejects by name, and what its marks say out."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from sluice.errors import AnswerUnusable
from sluice.mapping.columns import Head, RowsFile, raw_hash, reading_of
from sluice.mapping.keys import key_text
from sluice.mapping.pages import PageSplitter, RecordPage
from sluice.mapping.reader import MISSES, Problem, Reader
from sluice.mapping.violation import MALFORMED, OUT_OF_RANGE, Violation
from sluice.mapping.watermarks import ChunkMarks, mark_order
from sluice.model.base import ObjectKey
from sluice.model.reject import RawAddress, Reject
from sluice.model.rows import Postdated
from sluice.model.spec import SyncSpec
from sluice.ports import Remember

_KEY_BYTES: Final = 2_000
"""Longer keys do not fit into an index of Postgres."""
_UTF8_BYTES: Final = 4


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


class _Record(msgspec.Struct, gc=False):
    """One record whose identity has been read."""

    head: Head
    mark: tuple[Any, Any] | None
    """Its place and its value."""
    raw: Raw
    is_dubious: bool
    is_gone: bool


class Mapper:
    """Maps the records of one shard of a sync."""

    def __init__(self, spec: SyncSpec, until: datetime | None = None, supplied_at: datetime | None = None) -> None:
        """Let no mark above `until` count, and count what is dated after `supplied_at`: see `ChunkMarks`."""
        self._splitter = PageSplitter(spec.source.stored_records)
        self._names = [field.name for field in spec.fields]
        self._reader = Reader(spec.fields, required=spec.object.key)
        self._reading = reading_of(spec)

        named = (*spec.object.key, spec.object.version, spec.object.deleted)
        marking = spec.watermark.fields if spec.watermark else ()
        identity = list(dict.fromkeys(filter(None, (*named, *marking))))
        # A tombstone need not have the watermark nor anything else that is required; of a row, all is read again.
        fields = [spec.field(name).model_copy(update={} if name in named else {"required": False}) for name in identity]
        self._identity = Reader(fields, required=spec.object.key)
        self._key_kinds = self._identity.kinds[: len(spec.object.key)]
        self._key_places = [self._names.index(name) for name in spec.object.key]
        self._key_names = frozenset(spec.object.key)
        self._version = identity.index(spec.object.version) if spec.object.version else None
        self._to_version = self._identity.kinds[self._version].to_version if self._version is not None else None
        self._gone = identity.index(spec.object.deleted) if spec.object.deleted else None
        self._gone_place = self._names.index(spec.object.deleted) if spec.object.deleted else None
        self._order = mark_order(spec)
        self._bounds = (until, supplied_at)
        self._marking = [(name, identity.index(name)) for name in marking]

    def map_chunk(self, pages: Iterable[bytes], artifact_key: str, remember: Remember) -> MappedChunk:
        """Map the pages of the raw artifact `artifact_key`; what `remember` knows by its raw bytes is not read further.

        A bad record is a reject and stops no other. Raises `AnswerNotJson` or `RecordsMissing`, naming artifact and page, if a
        page cannot be taken apart.
        """
        rejects: list[Reject] = []
        records: list[_Record] = []
        marks = ChunkMarks(self._order, *self._bounds) if self._order else None
        for frame, body in enumerate(pages):
            self._identify(self._split(body, artifact_key, frame), artifact_key, frame, records, rejects)
        known = remember(list(dict.fromkeys(record.head.key for record in records)))
        file = RowsFile(self._names, self._reader.kinds)
        for record in records:
            held = known.get(record.head.key)
            if record.is_gone:
                file.add_tombstone(record.head)
            elif held is not None and held.raw_hash == record.head.raw_hash:
                file.add_unmapped(replace(record.head, version=held.source_version), held.row_hash)
            else:
                values = _read(self._reader, record.raw, record.is_dubious)
                if values is None:
                    rejects.append(self._reject(record.raw, artifact_key, record.head.frame, record.head.index))
                    continue
                file.add(record.head, values)
            if marks is not None and record.mark is not None:
                marks.take(record.head.key, record.mark)
        high_mark, postdated = (marks.high_mark, marks.postdated) if marks else (None, None)
        return MappedChunk(
            rows=file.parquet(high_mark, postdated),
            objects=len(file),
            mapped=file.mapped,
            rejects=tuple(sorted(rejects, key=lambda reject: (reject.address.frame, reject.address.index))),
            high_mark=high_mark,
            postdated=postdated,
        )

    def _split(self, body: bytes, artifact_key: str, frame: int) -> RecordPage:
        try:
            return self._splitter.split(body)
        except AnswerUnusable as error:
            message = f"page {frame} of {artifact_key}: {error.message}"
            raise type(error)(message, artifact=artifact_key, frame=frame) from None

    def _identify(self, page: RecordPage, artifact_key: str, frame: int, records: list[_Record], rejects: list[Reject]) -> None:
        """Read key, version and watermark of each record of a page, and hash its bytes."""
        for index, raw in enumerate(page.records):
            is_dubious = index in page.dubious
            values = None if index in page.damaged else _read(self._identity, raw, is_dubious)
            key = self._key(values) if values else None
            mark, problem = self._mark(values) if values else (None, None)
            if values is None or key is None or problem is not None:
                rejects.append(self._reject(raw, artifact_key, frame, index))
                continue
            records.append(
                _Record(
                    head=Head(key, self._version_of(values), raw_hash(raw, self._reading), frame, index),
                    mark=mark,
                    raw=raw,
                    is_dubious=is_dubious,
                    is_gone=self._gone is not None and values[self._gone] is True,
                )
            )

    def _mark(self, values: list[Any]) -> tuple[tuple[Any, Any] | None, Problem | None]:
        """Return the mark of a record, if it has one, or why it cannot be read."""
        for name, place in self._marking:
            if (value := values[place]) is not None and self._order is not None:
                try:
                    return self._order.placed(value), None
                except Violation as violation:
                    return None, Problem(name, violation.error, f"is the watermark, and {violation.message}")
        return None, None

    def _version_of(self, values: list[Any]) -> int | None:
        if self._version is None or self._to_version is None:
            return None
        value = values[self._version]
        return None if value is None else self._to_version(value)

    def _key(self, values: list[Any]) -> ObjectKey | None:
        """Return the text of a key, out of the values that begin with its own; None if it is too long for an index."""
        key = key_text(self._key_kinds, values)
        if len(key) * _UTF8_BYTES > _KEY_BYTES and len(key.encode()) > _KEY_BYTES:
            return None
        return key

    def _reject(self, raw: Raw, artifact_key: str, frame: int, index: int) -> Reject:
        values, problems = self._reader.examine(bytes(raw))
        if self._gone_place is not None and values[self._gone_place] is True:
            _, problems = self._identity.examine(bytes(raw))
        key_values = [values[place] for place in self._key_places]
        has_key = not any(problem.field is None or problem.field in self._key_names for problem in problems)
        key = self._key(key_values) if has_key else None
        if has_key and key is None:
            fields = ", ".join(sorted(self._key_names))
            problems.append(Problem(fields, OUT_OF_RANGE, f"the key is longer than {_KEY_BYTES} bytes"))
        elif not problems and (unreadable := self._mark(self._identity.examine(bytes(raw))[0])[1]) is not None:
            problems.append(unreadable)
        elif not problems:
            problems.append(Problem(None, MALFORMED, "the record is not JSON, though its declared fields can be read"))
        return Reject(
            key=key,
            address=RawAddress(artifact=artifact_key, frame=frame, index=index),
            error=problems[0].error,
            field=problems[0].field,
            message="; ".join(
                f"{problem.field}: {problem.message}" if problem.field else problem.message for problem in problems
            ),
        )


def _read(reader: Reader, raw: Raw, is_dubious: bool) -> list[Any] | None:
    """Return the values of a record's fields; None if it has to be rejected."""
    if not is_dubious:
        try:
            return reader.fast(raw)
        except MISSES:
            pass
    values, problems = reader.examine(bytes(raw))
    return None if problems else values
