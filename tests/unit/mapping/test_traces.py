"""What artifacts tell of one object: the same values from each of them, and the record as it was sent."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.targets.diffing import DIFF_SCHEMA
from sluice.errors import ArtifactCorrupt
from sluice.mapping.traces import Place, Record, canonical, image_in, place_in, record_at, record_in, row_in
from sluice.model import rows
from sluice.model.base import ObjectKey, ShardKey
from tests.support.rows import write_parquet
from tests.unit.mapping.workbench import map_records, rows_of, sync_spec

KINDS = {
    "id": "text",
    "whole": "bigint",
    "exact": "numeric",
    "fixed": "numeric(12,4)",
    "real": "double precision",
    "yes": "boolean",
    "day": "date",
    "at": "timestamptz",
    "document": "json",
    "words": "text[]",
    "moments": "timestamptz[]",
    "shares": "numeric[]",
    "flags": "boolean[]",
}
SPEC = sync_spec(dict(KINDS))
RECORD = (
    '{"id": "a", "whole": 9007199254740993, "exact": 1.50, "fixed": "7.25", "real": 1e20, "yes": true, "day": "2026-01-31",'
    ' "at": "2026-01-31T12:00:00.000001+01:00", "document": {"b": 1.0, "a": "caf\\u00e9"},'
    ' "words": ["a", "b c", "", null, "null", "\\"\\\\"], "moments": ["2026-01-31T12:00:00+01:00"],'
    ' "shares": [1.50], "flags": [true, null]}'
)
VALUES = {
    "id": "a",
    "whole": "9007199254740993",
    "exact": "1.5",
    "fixed": "7.2500",
    "real": "1e+20",
    "yes": "true",
    "day": "2026-01-31",
    "at": "2026-01-31T11:00:00.000001Z",
    "document": '{"a":"café","b":1}',
    "words": r"""{a,"b c","",NULL,"null","\"\\"}""",
    "moments": "{2026-01-31T11:00:00Z}",
    "shares": "{1.5}",
    "flags": "{true,NULL}",
}
SPELLED = {
    "id": "a",
    "whole": "9007199254740993",
    "exact": "1.500",
    "fixed": "7.2500",
    "real": "1e+20",
    "yes": "true",
    "day": "2026-01-31",
    "at": "2026-01-31 11:00:00.000001+00",
    "document": '{"a": "café", "b": 1.0}',
    "words": r"""{a,"b c","",NULL,"null","\"\\"}""",
    "moments": '{"2026-01-31 11:00:00+00"}',
    "shares": "{1.500}",
    "flags": "{t,NULL}",
}
"""The same row as Postgres casts it to text."""
IMAGE = (
    '{"id":"a","whole":9007199254740993,"exact":1.500,"fixed":7.2500,"real":1e+20,"yes":true,"day":"2026-01-31",'
    '"at":"2026-01-31T11:00:00.000001+00:00","document":{"a": "café", "b": 1.0},"mine":"x",'
    '"words":["a","b c","",null,"null","\\"\\\\"],"moments":["2026-01-31T11:00:00+00:00"],"shares":[1.500],"flags":[true,null]}'
)
"""The same row as Postgres makes JSON of it, with a column that is not of the spec."""
LEDGER = json.dumps({"row_hash": "\\x" + "5" * 32})
KEY = ObjectKey("a")


def place(position: int = 0, raw: bytes | None = None) -> Place:
    """Return a place in the only chunk."""
    return Place(ShardKey("all"), 0, position, raw)


def test_a_row_reads_alike_wherever_it_stands() -> None:
    """In the rows artifact, in the table, and in the undo artifact."""
    chunk = map_records(SPEC, '{"id": "0"}', RECORD)
    held = rows_of(chunk)[1]
    assert row_in(chunk.rows, SPEC, KEY, place(1, held[rows.RAW_HASH])) == VALUES
    assert canonical(SPEC, SPELLED) == VALUES
    undo = write_parquet(pa.table({"key": ["0", "a"], "row": [None, IMAGE], "ledger": [None, LEDGER]}))
    assert image_in(undo, SPEC, KEY) == (VALUES, b"\x55" * 16)
    assert image_in(undo, SPEC, ObjectKey("0")) == image_in(undo, SPEC, ObjectKey("z")) == (None, None)


def test_what_no_publication_writes_is_told_as_it_stands() -> None:
    """NaN and infinity have no canonical form."""
    assert canonical(SPEC, {"exact": "NaN", "at": "infinity"}) == {"exact": "NaN", "at": "infinity"}
    undo = write_parquet(pa.table({"key": ["a"], "row": ['{"id":"a","exact":"NaN"}'], "ledger": [LEDGER]}))
    assert image_in(undo, SPEC, KEY)[0] == {"id": "a", "exact": "NaN"}


def test_another_row_at_the_place_is_not_taken_for_it() -> None:
    """A chunk that was mapped again may have its rows elsewhere, and what was not mapped has no values."""
    chunk = map_records(SPEC, RECORD, '{"id": "b"}')
    first, second = rows_of(chunk)
    assert row_in(chunk.rows, SPEC, KEY, place(1, second[rows.RAW_HASH])) is None
    assert row_in(chunk.rows, SPEC, KEY, place(0, second[rows.RAW_HASH])) is None
    assert row_in(chunk.rows, SPEC, KEY, place(2, first[rows.RAW_HASH])) is None


def test_the_diff_leads_to_the_row() -> None:
    """An object that was absent has an entry, and no row; who is not in the diff has neither."""
    entries: list[dict[str, Any]] = [
        {rows.KEY: "a", rows.SHARD: "all", rows.SEQ: 3, rows.POSITION: 7, rows.RAW_HASH: "\\x" + "5" * 32},
        {rows.KEY: "b", rows.SHARD: "all"},
    ]
    diff = write_parquet(pa.Table.from_pylist(entries, schema=DIFF_SCHEMA))
    assert place_in(diff, KEY) == Place(ShardKey("all"), 3, 7, b"\x55" * 16)
    assert (place_in(diff, ObjectKey("b")), place_in(diff, ObjectKey("c"))) == (None, None)
    with pytest.raises(ArtifactCorrupt):
        place_in(b"no Parquet", KEY)


@given(padding=st.lists(st.sampled_from(["", " ", "\t", "\n"]), min_size=4, max_size=4), before=st.integers(0, 3))
def test_a_record_is_found_as_it_was_sent(padding: list[str], before: int) -> None:
    """White space, escapes and keys that stand twice included; page and place are told."""
    one, two, three, four = padding
    sent = f'{{{one}"id"{two}: "a",{three}"yes":false, "id": "\\u0061"{four}}}'.encode()
    others = b", ".join([b'{"id": "b"}'] * before)
    page = b"[" + others + (b", " if before else b"") + sent + b"]"
    (row,) = rows_of(map_records(SPEC, sent))
    pages = [b'[{"id": "a"}]', b"not JSON", page]
    assert record_in(pages, SPEC, row[rows.RAW_HASH]) == Record(2, before, sent)
    assert record_at(pages, SPEC, 2, before) == Record(2, before, sent)
    assert record_in(pages[:2], SPEC, row[rows.RAW_HASH]) is None
    assert (record_at(pages, SPEC, 2, before + 1), record_at(pages, SPEC, 3, 0)) == (None, None)
