"""The bytes of artifacts, and one object, come in; what those hold of it goes out: its place, its row, its raw record.

Values come out as text, the same for equal values whichever artifact they are read from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from sluice.errors import AnswerUnusable
from sluice.mapping.columns import raw_hash, readable, reading_of
from sluice.mapping.exact import exact_type, told_apart
from sluice.mapping.pages import PageSplitter
from sluice.mapping.reader import Reader
from sluice.mapping.spelling import spelled
from sluice.mapping.violation import Violation
from sluice.model import rows
from sluice.model.base import ObjectKey, ShardKey
from sluice.model.fields import FieldSpec
from sluice.model.spec import SyncSpec

Values = dict[str, str | None]

_PLACE: Final = (rows.SHARD, rows.SEQ, rows.POSITION, rows.RAW_HASH)


@dataclass(frozen=True)
class Place:
    """Where the row of an object stands among the artifacts of its run."""

    shard: ShardKey
    seq: int
    position: int
    raw_hash: bytes | None


@dataclass(frozen=True)
class Record:
    """One record as the supplier sent it, and where in its chunk it stands."""

    frame: int
    index: int
    data: bytes


def place_in(diff: bytes, key: ObjectKey) -> Place | None:
    """Return where the diff says that the object's new row stands; None if it has none. Raises `ArtifactCorrupt`."""
    for entry in _entries(diff, [rows.KEY, *_PLACE], rows.KEY, key):
        if entry[rows.SHARD] is not None and entry[rows.SEQ] is not None and entry[rows.POSITION] is not None:
            hashed = entry[rows.RAW_HASH]
            return Place(
                shard=ShardKey(entry[rows.SHARD]),
                seq=entry[rows.SEQ],
                position=entry[rows.POSITION],
                raw_hash=None if hashed is None else bytes.fromhex(hashed.removeprefix("\\x")),
            )
    return None


def row_in(file: bytes, spec: SyncSpec, key: ObjectKey, place: Place) -> Values | None:
    """Return the row that stands at a place of a rows artifact; None if it is another, or was not mapped there.

    Raises `ArtifactCorrupt`.
    """
    with readable():
        source = pq.ParquetFile(pa.BufferReader(file))
        names = set(source.schema_arrow.names)
        fields = [field.name for field in spec.fields if field.name in names]
        table = source.read([rows.KEY, rows.RAW_HASH, rows.MAPPED, *fields]).slice(place.position, 1)
    found = table.select([rows.KEY, rows.RAW_HASH, rows.MAPPED]).to_pylist()
    if found != [{rows.KEY: key, rows.RAW_HASH: place.raw_hash, rows.MAPPED: True}]:
        return None
    return canonical(spec, {name: spelled(table[name].combine_chunks())[0].as_py() for name in fields})


def rows_in(file: bytes, spec: SyncSpec) -> list[tuple[ObjectKey, Values | None]]:
    """Return each object of a rows artifact with its row, None if it has none there. Raises `ArtifactCorrupt`."""
    names = [field.name for field in spec.fields]
    with readable():
        table = pq.read_table(pa.BufferReader(file), columns=[rows.KEY, rows.MAPPED, *names])
    columns = {name: spelled(table[name].combine_chunks()).to_pylist() for name in names}
    heads = zip(table[rows.KEY].to_pylist(), table[rows.MAPPED].to_pylist(), strict=True)
    return [
        (key, canonical(spec, {name: column[place] for name, column in columns.items()}) if is_mapped else None)
        for place, (key, is_mapped) in enumerate(heads)
    ]


def image_in(undo: bytes, spec: SyncSpec, key: ObjectKey) -> tuple[Values | None, bytes | None]:
    """Return the row of an object before a publication, as its undo artifact has it, and the hash the ledger had of it.

    None stands for a row, or a ledger row, that was not there. Raises `ArtifactCorrupt`.
    """
    for entry in _entries(undo, ["key", "row", "ledger"], "key", key):
        known = msgspec.json.decode(entry["ledger"] or b"null")
        hashed = bytes.fromhex(str(known["row_hash"]).removeprefix("\\x")) if known else None
        return (_image(spec, entry["row"].encode()) if entry["row"] else None), hashed
    return None, None


def record_in(pages: Iterable[bytes], spec: SyncSpec, wanted: bytes, reading: int | None = None) -> Record | None:
    """Return the record of a chunk whose raw bytes have this hash; of several the last, which is the one that counted.

    They were hashed under a reading: see `reading_in`. None: under that of the spec.
    """
    splitter, reading = PageSplitter(spec.source.stored_records), reading_of(spec) if reading is None else reading
    found = None
    for frame, body in enumerate(pages):
        try:
            page = splitter.split(body)
        except AnswerUnusable:
            continue
        for index, raw in enumerate(page.records):
            if raw_hash(raw, reading) == wanted:
                found = Record(frame, index, bytes(raw))
    return found


def record_at(pages: Iterable[bytes], spec: SyncSpec, frame: int, index: int) -> Record | None:
    """Return the record at this place of a chunk; None if there is none."""
    splitter = PageSplitter(spec.source.stored_records)
    for number, body in enumerate(pages):
        if number == frame:
            records = splitter.split(body).records
            return Record(frame, index, bytes(records[index])) if index < len(records) else None
    return None


def canonical(spec: SyncSpec, texts: Mapping[str, str | None]) -> Values:
    """Return values, as Postgres or Arrow spell them, in the one form that is the same for equal ones."""
    return {field.name: _alike(field.type, texts[field.name]) for field in spec.fields if field.name in texts}


def _alike(declared: Any, text: str | None) -> str | None:
    if text is None:
        return None
    kind = exact_type(declared)
    try:
        return kind.to_text(told_apart(kind.from_text(text)))
    except Violation:
        return text


def _image(spec: SyncSpec, row: bytes) -> Values:
    """Return the values of a row of the table that Postgres has written down as JSON."""
    present = msgspec.json.decode(row, type=dict[str, msgspec.Raw])
    fields = [FieldSpec(name=field.name, type=field.type) for field in spec.fields if field.name in present]
    reader = Reader(fields)
    values, problems = reader.examine(row)
    odd = {problem.field for problem in problems}
    return {
        field.name: _as_it_stands(bytes(present[field.name]))
        if field.name in odd
        else (None if value is None else kind.to_text(told_apart(value)))
        for field, kind, value in zip(fields, reader.kinds, values, strict=True)
    }


def _as_it_stands(token: bytes) -> str:
    return msgspec.json.decode(token, type=str) if token[:1] == b'"' else token.decode()


def _entries(data: bytes, columns: list[str], name: str, key: ObjectKey) -> list[dict[str, Any]]:
    with readable():
        return list(pq.read_table(pa.BufferReader(data), columns=columns, filters=[(name, "=", key)]).to_pylist())
