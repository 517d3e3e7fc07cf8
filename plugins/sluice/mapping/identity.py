"""A raw record comes in; which object it is of, its version and its mark go out, before anything else of it is read."""

from collections.abc import Callable, Iterable, Sequence
from itertools import count, repeat
from typing import Any, Final

import msgspec
from msgspec import Raw

from sluice.mapping.columns import Head, Made, raw_hash
from sluice.mapping.keys import key_text
from sluice.mapping.reader import MISSES, Reader
from sluice.mapping.reading import outcome
from sluice.mapping.violation import MALFORMED, OUT_OF_RANGE, Problem, Violation
from sluice.mapping.watermarks import mark_order
from sluice.model.base import ObjectKey
from sluice.model.spec import SyncSpec

_KEY_BYTES: Final = 2_000
"""Longer keys do not fit into an index of Postgres."""
_UTF8_BYTES: Final = 4


class Identified(msgspec.Struct, gc=False):
    """One record whose identity has been read."""

    head: Head
    mark: tuple[Any, Any] | None
    """Its place and its value."""
    raw: Raw
    values: Sequence[Any]
    """Those of the identity's fields."""
    is_dubious: bool
    is_gone: bool
    made: Made | None
    """Its row, where all fields have been read already."""


class Identity:
    """Reads key, version, deletion and watermark of the records of one sync."""

    def __init__(self, spec: SyncSpec, reading: int) -> None:
        """Hash raw bytes under the way of reading them: see `raw_hash`."""
        named = (*spec.object.key, spec.object.version, spec.object.deleted)
        marking = spec.watermark.fields if spec.watermark else ()
        self.names: tuple[str, ...] = tuple(dict.fromkeys(filter(None, (*named, *marking))))
        # A tombstone need not have the watermark nor anything else that is required; of a row, all is read again, and judged.
        fields = [
            spec.field(name).unruled.model_copy(update={} if name in named else {"required": False}) for name in self.names
        ]
        self._reader = Reader(fields, required=spec.object.key)
        self._whole = Reader(spec.fields, required=spec.object.key)
        self.reads_whole = self._whole.is_plain
        """Whether all fields of a record are read as fast as its identity is."""
        self._places = [[field.name for field in spec.fields].index(name) for name in self.names]
        """Where its fields stand among all of them."""
        self._reading = reading
        self._key_names = frozenset(spec.object.key)
        self._key_kinds = self._reader.kinds[: len(spec.object.key)]
        self._is_plain = len(self._key_kinds) == 1 and self._key_kinds[0].to_text is str
        self._version = self.names.index(spec.object.version) if spec.object.version else None
        self._to_version = self._reader.kinds[self._version].to_version if self._version is not None else None
        self._gone = self.names.index(spec.object.deleted) if spec.object.deleted else None
        self._order = mark_order(spec)
        self._marking = [(name, self.names.index(name)) for name in marking]

    def of(
        self, raw: Raw, frame: int, index: int, *, is_dubious: bool, make: Callable[[list[Any]], Made] | None = None
    ) -> Identified | None:
        """Return a record with its identity; None if it has to be rejected: see `problems`.

        With `make`, which makes a row of values, all fields are read at once, if they can be: see `reads_whole`. It costs less
        where the row will be wanted.
        """
        row = self._row(raw) if make is not None and not is_dubious else None
        values = outcome(self._reader, raw, is_dubious=is_dubious) if row is None else [row[place] for place in self._places]
        if isinstance(values, tuple):
            return None
        try:
            key, mark = self._key(values), self._mark(values)
        except Violation:
            return None
        if key is None:
            return None
        head = Head(key, self._version_of(values), raw_hash(raw, self._reading), frame, index)
        is_gone = self._gone is not None and values[self._gone] is True
        return Identified(head, mark, raw, values, is_dubious, is_gone, None if row is None or make is None else make(row))

    def of_all(
        self, records: Sequence[Raw], frame: int, make: Callable[[list[Sequence[Any]]], list[Made]] | None = None
    ) -> list[Identified] | None:
        """Return what `of` does of each record of a page, at half the price; None if it has to be asked of each of them.

        `make` makes rows of the columns of all fields.
        """
        whole = self._whole.columns(records) if make is not None else None
        columns = self._reader.columns(records) if make is None else whole and [whole[place] for place in self._places]
        if columns is None:
            return None
        rows = list(zip(*columns, strict=True))
        keys = self._keys(columns[0], rows)
        try:
            marks = [self._mark(row) for row in rows] if self._marking else repeat(None)
        except Violation:
            return None
        if keys is None:
            return None
        hashes = [raw_hash(raw, self._reading) for raw in records]
        versions: Iterable[int | None] = repeat(None) if self._version is None else map(self._version_of, rows)
        gone = repeat(False) if self._gone is None else [value is True for value in columns[self._gone]]
        heads = map(Head, keys, versions, hashes, repeat(frame), count())
        made = make(whole) if make is not None and whole is not None else repeat(None)
        return list(map(Identified, heads, marks, records, rows, repeat(False), gone, made))

    def read(self, record: Raw) -> list[Any]:
        """Return the values of the identity's fields in a record, null where they cannot be read."""
        values = outcome(self._reader, record, is_dubious=False)
        return self._reader.examine(bytes(record))[0] if isinstance(values, tuple) else values

    def problems(self, raw: Raw) -> tuple[ObjectKey | None, list[Problem]]:
        """Return the key of a record that has to be rejected, if it can be read, and all that is wrong with the record."""
        record = bytes(raw)
        values, own = self._reader.examine(record)
        is_tombstone = self._gone is not None and values[self._gone] is True
        problems = own if is_tombstone else self._whole.examine(record)[1]
        has_key = not any(problem.field is None or problem.field in self._key_names for problem in problems)
        key = self._key(values) if has_key else None
        if has_key and key is None:
            fields = ", ".join(sorted(self._key_names))
            problems.append(Problem(fields, OUT_OF_RANGE, f"the key is longer than {_KEY_BYTES} bytes"))
        elif not problems and (unreadable := self._unreadable(values)) is not None:
            problems.append(unreadable)
        elif not problems:
            problems.append(Problem(None, MALFORMED, "the record is not JSON, though its declared fields can be read"))
        return key, problems

    def _row(self, raw: Raw) -> list[Any] | None:
        try:
            return self._whole.fast(raw)
        except MISSES:
            return None

    def _mark(self, values: Sequence[Any]) -> tuple[Any, Any] | None:
        """Return the mark of a record, if it has one; raise `Violation` if it cannot be read."""
        for _, place in self._marking:
            if (value := values[place]) is not None and self._order is not None:
                return self._order.placed(value)
        return None

    def _unreadable(self, values: list[Any]) -> Problem | None:
        """Return why the mark of a record cannot be read, if so."""
        try:
            self._mark(values)
        except Violation as violation:
            name = next(name for name, place in self._marking if values[place] is not None)
            return Problem(name, violation.error, f"is the watermark, and {violation.message}")
        return None

    def _version_of(self, values: Sequence[Any]) -> int | None:
        if self._version is None or self._to_version is None:
            return None
        value = values[self._version]
        return None if value is None else self._to_version(value)

    def _keys(self, first: Sequence[Any], rows: Sequence[Sequence[Any]]) -> Sequence[ObjectKey] | None:
        """Return the keys of all rows, `first` being the values of the first field; None if one is too long."""
        if self._is_plain and set(map(type, first)) == {str}:
            return first if max(map(len, first)) * _UTF8_BYTES <= _KEY_BYTES else None
        keys = [key for row in rows if (key := self._key(row)) is not None]
        return keys if len(keys) == len(rows) else None

    def _key(self, values: Sequence[Any]) -> ObjectKey | None:
        """Return the text of a key, out of the values that begin with its own; None if it is too long for an index."""
        key = values[0] if self._is_plain and type(values[0]) is str else key_text(self._key_kinds, values)
        if len(key) * _UTF8_BYTES > _KEY_BYTES and len(key.encode()) > _KEY_BYTES:
            return None
        return ObjectKey(key)
