"""Rows of exact values come in; their hashes and their Parquet file go out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from msgspec import Raw

from sluice.errors import ArtifactCorrupt
from sluice.mapping.arrow import tells_of_bytes
from sluice.mapping.exact import ExactType
from sluice.model import rows
from sluice.model.base import ObjectKey
from sluice.model.ledger import Remembered
from sluice.model.rows import Postdated
from sluice.model.spec import SyncSpec
from sluice.ports import TeamFunction

_HIGH_MARK: Final = b"sluice.high_mark"
_READING: Final = b"sluice.reading"
_POSTDATED: Final = b"sluice.postdated"
_HASH: Final = pa.binary(rows.HASH_BYTES)
_HEAD: Final = (
    (rows.KEY, pa.string()),
    (rows.VERSION, pa.int64()),
    (rows.RAW_HASH, _HASH),
    (rows.ROW_HASH, _HASH),
    (rows.MAPPED, pa.bool_()),
    (rows.DELETED, pa.bool_()),
    (rows.FRAME, pa.int32()),
    (rows.INDEX, pa.int32()),
)
_AT_ONCE: Final = 1_000
"""So many rows are put into Arrow's form together."""
_ENCODE: Final = msgspec.msgpack.Encoder().encode


def raw_hash(raw: Raw, reading: int) -> bytes:
    """Return the hash of a record's raw bytes under one way of reading them: read otherwise, the same bytes are new."""
    return xxhash.xxh3_128_digest(raw, reading)


def reading_of(spec: SyncSpec, function: TeamFunction | None = None) -> int:
    """Return a number that changes with whatever decides how a record becomes a row: its fields, and the key and version.

    And the code of the team's function, which is given if the spec has one.
    """
    # Without formats, tombstones and functions the number is what it was before there were any: nothing need be read anew.
    declared = [
        field.model_dump(mode="json", exclude={"description"} | ({"format"} if field.format is None else set()))
        for field in spec.fields
    ]
    identity = spec.object.model_dump(mode="json", exclude={"deleted"} if spec.object.deleted is None else None)
    parts = [spec.version, identity, declared]
    if function is not None:
        parts += [spec.transform.model_dump(mode="json") if spec.transform else None, function.digest]
    return xxhash.xxh3_64_intdigest(msgspec.json.encode(parts))


def row_hash(values: Sequence[Any]) -> bytes:
    """Return the hash of a row: of its values as they are told apart, in the order of the spec, each with its length."""
    return xxhash.xxh3_128_digest(_ENCODE(values))


class Head(msgspec.Struct, frozen=True, gc=False):
    """What is known of an object before its row is."""

    key: ObjectKey
    version: int | None
    raw_hash: bytes
    frame: int
    index: int


class Made(msgspec.Struct, frozen=True, gc=False):
    """A row that a `RowsFile` has taken in, whichever object it will be of."""

    place: int
    hash: bytes


class RowsFile:
    """The rows of one chunk, as they come."""

    def __init__(self, names: Sequence[str], kinds: Sequence[ExactType]) -> None:
        self._schema = pa.schema([*_HEAD, *((name, kind.arrow) for name, kind in zip(names, kinds, strict=True))])
        self._paired = [index for index, kind in enumerate(kinds) if kind.is_paired]
        self._heads: list[tuple[Any, ...]] = []
        self._made = 0
        self._rows: list[Sequence[Any]] = []
        """The last ones; those before are in Arrow's form, which takes a fraction of the memory."""
        self._columns: list[list[pa.Array]] = []
        self._places: list[int | None] = []
        """Of each object the place of its row among the rows; of most there is none, where little has changed."""

    def __len__(self) -> int:
        return len(self._heads)

    @property
    def mapped(self) -> int:
        """How many of the objects have a row."""
        return len(self._places) - self._places.count(None)

    def make(self, values: list[Any]) -> Made:
        """Take in the values of a row, which has yet to be added."""
        apart = values
        if self._paired:
            apart = values.copy()
            for index in self._paired:
                if type(pair := values[index]) is tuple:
                    values[index], apart[index] = pair
        self._rows.append(values)
        self._made += 1
        if len(self._rows) >= _AT_ONCE:
            self._settle()
        return Made(self._made - 1, row_hash(apart))

    def make_all(self, columns: Sequence[Sequence[Any]]) -> list[Made]:
        """Take in rows as `make` does, field by field."""
        stored, apart = list(columns), list(columns)
        for index in self._paired:
            stored[index] = [value[0] if type(value) is tuple else value for value in columns[index]]
            apart[index] = [value[1] if type(value) is tuple else value for value in columns[index]]
        made = list(map(Made, count(self._made), map(row_hash, zip(*apart, strict=True))))
        self._rows.extend(zip(*stored, strict=True))
        self._made += len(made)
        if len(self._rows) >= _AT_ONCE:
            self._settle()
        return made

    def add(self, head: Head, row: Made) -> None:
        """Take in an object with its row."""
        self._heads.append((head.key, head.version, head.raw_hash, row.hash, True, False, head.frame, head.index))
        self._places.append(row.place)

    def add_unmapped(self, head: Head, held: Remembered) -> None:
        """Take in an object that the ledger holds already, with the version and the hash that the ledger has of its row."""
        _, row, version = held
        self._heads.append((head.key, version, head.raw_hash, row, False, False, head.frame, head.index))
        self._places.append(None)

    def add_tombstone(self, head: Head) -> None:
        """Take in an object that is gone."""
        self._heads.append((head.key, head.version, head.raw_hash, row_hash([]), False, True, head.frame, head.index))
        self._places.append(None)

    def _settle(self) -> None:
        self._columns.append(list(_arrays(self._rows, list(self._schema)[len(_HEAD) :])))
        self._rows = []

    def parquet(self, reading: int, high_mark: str | None = None, postdated: Postdated | None = None) -> bytes:
        """Return the file; how its records were read, and what their marks say, travels in its metadata."""
        if self._rows or not self._columns:
            self._settle()
        rows = [pa.chunked_array(column) for column in zip(*self._columns, strict=True)]
        if self._places != list(range(self._made)):
            places = pa.array(self._places, pa.int32())
            rows = [column.take(places) for column in rows]
        arrays = [*_arrays(self._heads, list(self._schema)[: len(_HEAD)]), *rows]
        metadata = {_READING: f"{reading:016x}".encode()}
        if high_mark is not None:
            metadata[_HIGH_MARK] = high_mark.encode()
        if postdated is not None:
            metadata[_POSTDATED] = postdated.model_dump_json().encode()
        table = pa.Table.from_arrays(arrays, schema=self._schema.with_metadata(metadata))
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", compression_level=1, use_dictionary=False, write_statistics=False)
        return bytes(sink.getvalue())


def _arrays(rows: Sequence[Sequence[Any]], fields: Sequence[pa.Field]) -> Iterator[pa.Array]:
    columns = zip(*rows, strict=True) if rows else [()] * len(fields)
    return (pa.array(column, field.type) for column, field in zip(columns, fields, strict=True))


@contextmanager
def readable() -> Iterator[None]:
    """Raise `ArtifactCorrupt` where the block finds bytes that are no Parquet file."""
    try:
        yield
    except (pa.ArrowException, OSError) as exc:
        if not tells_of_bytes(exc):
            raise
        raise ArtifactCorrupt(f"the bytes of a Parquet artifact cannot be read: {exc}") from exc


def high_mark_of(data: bytes) -> str | None:
    """Return the high mark that a rows file carries; raise `ArtifactCorrupt` if it is none."""
    mark = _metadata_of(data).get(_HIGH_MARK)
    return None if mark is None else str(mark, "utf-8")


def postdated_of(data: bytes) -> Postdated | None:
    """Return what a rows file says of records dated after their fetch; raise `ArtifactCorrupt` if it is none."""
    told = _metadata_of(data).get(_POSTDATED)
    return None if told is None else Postdated.model_validate_json(told)


def reading_in(data: bytes) -> int | None:
    """Return how the records of a rows file were read; None: an older release has not said. Raises `ArtifactCorrupt`."""
    told = _metadata_of(data).get(_READING)
    return None if told is None else int(told, 16)


def _metadata_of(data: bytes) -> dict[bytes, bytes]:
    with readable():
        return pq.read_schema(pa.BufferReader(data)).metadata or {}


def keys_of(data: bytes) -> set[ObjectKey]:
    """Return the keys of the objects in a rows file; raise `ArtifactCorrupt` if it is none."""
    with readable():
        return set(pq.read_table(pa.BufferReader(data), columns=[rows.KEY])[rows.KEY].to_pylist())


def places_of(data: bytes, positions: Sequence[int]) -> list[tuple[int, int]] | None:
    """Return frame and index, in the raw chunk, of some rows of a rows file; None: an older release wrote it without them."""
    with readable():
        file = pq.ParquetFile(pa.BufferReader(data))
        if rows.FRAME not in file.schema_arrow.names:
            return None
        found = file.read(columns=[rows.FRAME, rows.INDEX]).take(pa.array(positions, pa.int32()))
    return list(zip(found[rows.FRAME].to_pylist(), found[rows.INDEX].to_pylist(), strict=True))
