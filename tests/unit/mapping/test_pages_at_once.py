"""A page read at once and records read one by one, with care: the same rows, rejects and marks come of both."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluice.mapping.mapper import MappedChunk, Mapper
from sluice.model import rows
from sluice.model.base import ObjectKey
from sluice.model.ledger import Remembered
from tests.unit.mapping.workbench import ARTIFACT, nothing, rows_of, sync_spec, watermarked

OPEN = {
    "id": "text",
    "n": {"type": "bigint", "default": 7, "maximum": 2**40},
    "d": "double precision",
    "price": {"type": "numeric(10,2)", "required": True},
    "any": "numeric",
    "data": {"type": "json", "path": "more.data"},
    "deep": {"type": "text", "path": "more.deep"},
    "gone": "boolean",
    "at": "timestamptz",
}
OBJECT = {"key": ["id"], "version": "n", "deleted": "gone"}
SPECS = [
    watermarked(sync_spec(OPEN, object=OBJECT), "at"),
    sync_spec(OPEN, object={"key": ["id", "n", "d"]}),
    sync_spec({"n": "bigint", "doubles": "double precision[]", "more": "json", "deep": {"type": "text", "path": "more.deep"}}),
    sync_spec(
        {
            "id": {"type": "text", "pattern": "[a-z]*", "max_length": 3},
            "same": {"type": "text", "constant": "x"},
            "either": {"type": "text", "coalesce": ["n", "price"]},
            "d": {"type": "double precision", "required": True},
        }
    ),
]
"""Read at once in full; with a key of several; through paths that cross; and with what no column is made of at once."""

SOUND = b'{"id": "%d", "n": 1, "d": 1.5, "price": 2, "any": 3, "more": {"data": {"b": 1, "a": 2}, "deep": "x"}, "at": %b}'
AT = b'"2024-01-01T00:00:00Z"'
TOKENS = [
    *(b"null", b"true", b"false", b"0", b"-0", b"1", b"1.0", b"-0.0", b"0e5", b"1e-400", b"1e400", b"2.50", b"2.505"),
    *(b"%d" % 2**40, b"%d" % (2**40 + 1), b"%d" % 2**63, b"%d" % 2**70, b"0.30000000000000004", b"12345678901234567890.12"),
    *(b'""', b'"x"', b'"1"', b'"-0.0"', b'"true"', AT, b'"2024-01-01T00:00:00"', b'"9999-12-31T23:59:59.999999Z"'),
    *(b'"\xc5\xbe"', b'"\xff"', b'"\xed\xa0\x80"', rb'"\ud83d\ude00"', rb'"\ud800"', rb'"\u0000"', b'"%b"' % (b"k" * 2_001)),
    *(b"[]", b"[1, null, -0.0]", b"{}", b'{"deep": "y", "data": [0.0]}', b'{"deep": 1, "deep": null, "data": "\xff"}'),
    *(b"01", b"NaN", b"[1,]", b'{"a" 1}', b'"\t"'),
]
KEYS = [b"id", b"n", b"d", b"price", b"any", b"more", b"gone", b"at", b"doubles", b"ID", b"other", b"\xff", rb"\u0069d"]
FITTING = {
    b"id": [b'"a"', b'"b"', b'"\xc5\xbe"'],
    b"n": [b"null", b"0", b"-7", b"%d" % 2**40, b'"1"'],
    b"d": [b"null", b"1.5", b"-0.0", b"0e5", b"1e-400", b'"0"'],
    b"price": [b"0", b"2.50", b'"3.1"', b"-0.0"],
    b"any": [b"null", b"1.50", b"1e3"],
    b"more": [b"null", b"{}", b'{"data": {"b": 1.0, "a": [null]}, "deep": "y"}', b'{"deep": "y", "data": "\xff"}'],
    b"gone": [b"null", b"true", b"false"],
    b"at": [b"null", b'"2023-12-31T23:00:00-02:00"', b'"2025-01-01T00:00:00Z"'],
    b"doubles": [b"null", b"[]", b"[1, null, -0.0]"],
    b"ID": [b'"no"'],
    b"other": [b"null", b'"\xff"', b'{"id": "no"}'],
}
"""What each may have: nearly all of it is read, so that whole pages are."""
FIT = [(key, token) for key, tokens in FITTING.items() for token in tokens]
CHANGED = st.lists(st.sampled_from(FIT), min_size=1, max_size=3) | st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(TOKENS)), min_size=1, max_size=3
)
ODD = st.sampled_from([b"null", b"1", b"[]", b'"x"', b"{}", b'{"id": null}', b"NaN", b"[{}]"])


def more(sound: bytes, *members: tuple[bytes, bytes]) -> bytes:
    """A record with some members more, which may be there already: then the last one counts."""
    return sound[:-1] + b"".join(b', "%b": %b' % member for member in members) + b"}"


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """A sound record with some members more, or a few members, or something else."""
    match draw(st.sampled_from(["changed"] * 6 + ["few", "odd"])):
        case "changed":
            return more(SOUND % (draw(st.integers(0, 3)), AT), *draw(CHANGED))
        case "few":
            return b"{" + b", ".join(b'"%b": %b' % member for member in draw(CHANGED)) + b"}"
    return draw(ODD)


def told(chunk: MappedChunk) -> tuple[Any, ...]:
    """All that is known of the objects, less where they stood."""
    found = [{name: row[name] for name in row if name not in (rows.FRAME, rows.INDEX)} for row in rows_of(chunk)]
    rejects = [(reject.key, reject.error, reject.field, reject.message, reject.raw_hash) for reject in chunk.rejects]
    return found, rejects, chunk.high_mark, chunk.postdated, chunk.objects, chunk.mapped


def less_bytes(chunk: MappedChunk) -> tuple[Any, ...]:
    """The same, less the bytes that objects came in."""
    found, rejects, *more = told(chunk)
    return [row | {rows.RAW_HASH: None} for row in found], [reject[:-1] for reject in rejects], *more


def page(found: Sequence[bytes]) -> bytes:
    """A page of these records."""
    return b"[" + b", ".join(found) + b"]"


def with_care(record: bytes) -> bytes:
    """The same record, with what makes a reader look at it token by token."""
    return record[:-1] + (b"" if record == b"{}" else b", ") + rb'"\u0000": 0}' if record.startswith(b"{") else record


def remembering(held: dict[ObjectKey, Remembered], keys: Sequence[ObjectKey]) -> dict[ObjectKey, Remembered]:
    """What a ledger that holds some objects remembers of others."""
    return {key: held[key] for key in keys if key in held}


def agrees(place: int, found: Sequence[bytes]) -> None:
    """What comes of a page is what comes of its records one by one, by whatever way; and again, where half of it is held."""
    spec = SPECS[place]
    ahead = Mapper(spec)
    ahead.map_chunk([page([SOUND % (9, AT)])], ARTIFACT, nothing)
    first = Mapper(spec).map_chunk([page(found)], ARTIFACT, nothing)
    each = Mapper(spec).map_chunk([page([record]) for record in found], ARTIFACT, nothing)
    assert told(first) == told(ahead.map_chunk([page(found)], ARTIFACT, nothing)) == told(each)
    assert less_bytes(first) == less_bytes(Mapper(spec).map_chunk([page(list(map(with_care, found)))], ARTIFACT, nothing))

    held = {
        ObjectKey(row[rows.KEY]): Remembered(raw_hash=row[rows.RAW_HASH], row_hash=row[rows.ROW_HASH], source_version=None)
        for row in rows_of(first)[::2]
    }
    again = Mapper(spec).map_chunk([page(found)], ARTIFACT, lambda keys: remembering(held, keys))
    assert [row[rows.KEY] for row in rows_of(again)] == [row[rows.KEY] for row in rows_of(first)]
    assert told(again)[1:4] == told(first)[1:4]


@pytest.mark.parametrize("member", FIT, ids=str)
def test_each_value_is_the_same_at_once(member: tuple[bytes, bytes]) -> None:
    """A page that has nothing else to be looked at."""
    for place in range(len(SPECS)):
        agrees(place, [more(SOUND % (1, AT), member), SOUND % (2, AT)])


@given(place=st.integers(0, len(SPECS) - 1), found=st.lists(records(), max_size=6))
@example(place=0, found=[])
@example(place=0, found=[b"null", SOUND % (1, AT)])
@example(place=0, found=[SOUND % (number, AT) for number in range(250)] + [b'{"id": 1}'] + [SOUND % (1, AT)] * 250)
@settings(deadline=None, max_examples=40)
def test_a_page_at_once_is_its_records_one_by_one(place: int, found: list[bytes]) -> None:
    """Be it read in full or by identity alone, whatever is in it; an object that the ledger holds is as it was."""
    agrees(place, found)
