"""A chunk of pages: what becomes a row, what a reject, and what nobody needs to read."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from sluice.errors import AnswerNotJson, AnswerUnusable, RecordsMissing
from sluice.mapping.columns import raw_hash, reading_of
from sluice.mapping.mapper import MappedChunk, Mapper
from sluice.model import rows
from sluice.model.base import ObjectKey
from sluice.model.ledger import Remembered
from sluice.model.reject import RawAddress
from tests.unit.mapping.workbench import ARTIFACT, map_records, nothing, rows_of, sync_spec

SPEC = sync_spec(
    {"id": "text", "name": {"type": "text", "required": True}, "price": "numeric(10,2)", "at": "timestamptz"},
    object={"key": ["id"], "version": "at"},
)

TOKENS = (b"1", b"-0.0", b'"2.50"', b"[]", b"1e3")
"""Of a number: as it is declared, one that travels as a pair, one that takes a second look, none, and one more."""


def record(key: str, **values: object) -> bytes:
    """A sound record, changed."""
    return json.dumps({"id": key, "name": "Inn", "price": 10, "at": "2024-01-01T00:00:00Z"} | values).encode()


def page(*records: bytes) -> bytes:
    """A page of records."""
    return b"[" + b", ".join(records) + b"]"


def test_a_row() -> None:
    """Key, version, hashes and values of an object."""
    sound = record("h1", price=10.5)
    (row,) = rows_of(map_records(SPEC, sound))
    row_hash = row.pop(rows.ROW_HASH)
    assert len(row_hash) == rows.HASH_BYTES
    assert {name: str(value) for name, value in row.items()} == {
        "_key": "h1",
        "_version": str(1_704_067_200_000_000),
        "_raw_hash": str(xxhash.xxh3_128_digest(sound, reading_of(SPEC))),
        "_mapped": "True",
        "_deleted": "False",
        "_frame": "0",
        "_index": "0",
        "id": "h1",
        "name": "Inn",
        "price": "10.50",
        "at": "2024-01-01 00:00:00+00:00",
    }


def test_seven_poison_values_and_a_good_one() -> None:
    """A batch of eight with seven bad objects maps the eighth, and names each of the seven: object, field, value and reason."""
    poison = [
        record("p1", price=0).replace(b"0,", b"NaN,", 1),
        record("p2", name="\0"),
        record("p3", name="\ud800"),
        record("p4", price="12.345"),
        record("p5", at="2024-01-01T00:00:00"),
        record("p6", price=10**12),
        record("", name="").replace(b'"id": ""', b'"id": null'),
    ]
    chunk = map_records(SPEC, *poison, record("h8"))
    assert [row[rows.KEY] for row in rows_of(chunk)] == ["h8"]
    assert [reject.address for reject in chunk.rejects] == [RawAddress(artifact=ARTIFACT, frame=0, index=n) for n in range(7)]
    assert [(reject.key, reject.field, reject.error, reject.message) for reject in chunk.rejects] == [
        ("p1", "price", "malformed", "price: NaN is not JSON"),
        ("p2", "name", "encoding", 'name: "\\u0000" has a NUL character'),
        ("p3", "name", "encoding", 'name: "\\ud800" has a lone surrogate'),
        ("p4", "price", "precision", 'price: "12.345" has more than 2 fractional digits'),
        ("p5", "at", "type", 'at: "2024-01-01T00:00:00" has no offset from UTC: a timestamp needs Z or ±hh:mm'),
        ("p6", "price", "out-of-range", 'price: "1000000000000" is beyond the range of numeric(10,2)'),
        (None, "id", "required", "id: is null"),
    ]


def test_all_that_is_wrong_with_one_object() -> None:
    """One reject tells every problem of its object."""
    (reject,) = map_records(SPEC, '{"id": "h1", "price": "", "at": 5}').rejects
    assert (reject.key, reject.field, reject.error) == ("h1", "name", "required")
    assert reject.message == (
        "name: is missing; price: an empty string is no numeric(10,2); at: 5 is a number, not timestamptz"
    )


@pytest.mark.parametrize("text", ["1", '"x"', "null", "[]", "true", "{}", '{"name": "Inn"}', '{"id": null}'])
def test_what_has_no_key(text: str) -> None:
    """What is no object, or has no key, is a reject without one, and its neighbours are rows."""
    chunk = map_records(SPEC, record("h1"), text, record("h2"))
    assert [row[rows.KEY] for row in rows_of(chunk)] == ["h1", "h2"]
    assert [(reject.key, reject.address.index) for reject in chunk.rejects] == [(None, 1)]


def test_damage_outside_the_declared_fields() -> None:
    """A record that is no JSON is rejected, even if all that is declared can be read."""
    sound = record("h1")
    chunk = map_records(SPEC, sound.replace(b"}", b', "x": NaN}'), sound.replace(b"}", b', "x": "\xff"}'), sound)
    assert [(reject.key, reject.field, reject.error) for reject in chunk.rejects] == [("h1", None, "malformed")] * 2
    assert chunk.objects == 1


def test_keys_that_are_too_long() -> None:
    """A key that no index takes is rejected here, instead of stopping the publication."""
    fits, long = "é" * 1000, "é" * 1001
    chunk = map_records(SPEC, record(fits), record(long))
    assert [row[rows.KEY] for row in rows_of(chunk)] == [fits]
    assert [(reject.key, reject.error, reject.message) for reject in chunk.rejects] == [
        (None, "out-of-range", "id: the key is longer than 2000 bytes")
    ]


@pytest.mark.parametrize(
    ("fields", "tokens", "key"),
    [
        ({"id": "text"}, ["42", '"42"'], "42"),
        ({"id": "text"}, ['""'], ""),
        ({"id": "text"}, ['"007"'], "007"),
        ({"id": "bigint"}, ["42", '"42"', "42.0", "4.2e1"], "42"),
        ({"id": "numeric"}, ["1.50", "1.5", '"1.500"', "15e-1"], "1.5"),
        ({"id": "numeric(10,2)"}, ["1.5", '"1.50"'], "1.50"),
        ({"id": "boolean"}, ["true", '"true"'], "true"),
        ({"id": "date"}, ['"2024-01-01"'], "2024-01-01"),
        ({"id": "timestamptz"}, ['"2024-01-01T01:00:00+01:00"', '"2024-01-01 00:00:00.000Z"'], "2024-01-01T00:00:00Z"),
        ({"id": "uuid"}, ['"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"'], "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ],
)
def test_keys(fields: dict[str, str], tokens: list[str], key: str) -> None:
    """A key is the canonical text of its field: the same however the supplier spells it."""
    chunk = map_records(sync_spec(dict(fields)), *(f'{{"id": {token}}}' for token in tokens))
    assert [row[rows.KEY] for row in rows_of(chunk)] == [key] * len(tokens)


def test_keys_of_several_fields() -> None:
    """They are a JSON array of texts, in the order of the key, which nothing in the texts can upset."""
    spec = sync_spec({"a": "text", "n": "integer"}, object={"key": ["n", "a"]})
    chunk = map_records(spec, '{"a": "é\\",\\"", "n": 1}', '{"a": "1", "n": 1}')
    assert [row[rows.KEY] for row in rows_of(chunk)] == ['["1","é\\",\\""]', '["1","1"]']


def test_keys_that_differ_in_case_are_different() -> None:
    """Nothing is folded."""
    assert [row[rows.KEY] for row in rows_of(map_records(SPEC, record("a"), record("A")))] == ["a", "A"]


def test_duplicates_are_all_kept_in_order() -> None:
    """Which of them counts is for the diff to say."""
    chunk = map_records(SPEC, record("a", name="1"), record("b"), record("a", name="2"))
    assert [(row[rows.KEY], row["name"]) for row in rows_of(chunk)] == [("a", "1"), ("b", "Inn"), ("a", "2")]


@pytest.mark.parametrize(
    ("kind", "token", "version"),
    [
        ("integer", "7", 7),
        ("bigint", "9007199254740993", 9007199254740993),
        ("timestamptz", '"1970-01-01T00:00:01.000001Z"', 1_000_001),
        ("date", '"1970-01-02"', 86_400_000_000),
        ("date", '"0001-01-01"', -62_135_596_800_000_000),
        ("timestamptz", "null", None),
    ],
)
def test_versions(kind: str, token: str, version: int | None) -> None:
    """A version is a 64-bit integer that orders; an object may have none."""
    spec = sync_spec({"id": "text", "v": kind}, object={"key": ["id"], "version": "v"})
    (row,) = rows_of(map_records(spec, f'{{"id": "1", "v": {token}}}'))
    assert row[rows.VERSION] == version


def test_what_the_ledger_remembers_is_not_read() -> None:
    """An object whose bytes are those remembered gets the ledger's hash and version, even where it would now be rejected."""
    same, changed, new = record("same", price="x"), record("changed"), record("new")
    held = {
        "same": Remembered(raw_hash=raw_hash(Raw(same), reading_of(SPEC)), row_hash=b"r" * 16, source_version=5),
        "changed": Remembered(raw_hash=b"?" * 16, row_hash=b"s" * 16, source_version=5),
    }
    asked: list[Sequence[ObjectKey]] = []

    def remember(keys: Sequence[ObjectKey]) -> dict[ObjectKey, Remembered]:
        asked.append(keys)
        return {key: held[key] for key in keys if key in held}

    chunk = Mapper(SPEC).map_chunk([page(same, changed), page(new, new)], ARTIFACT, remember)
    assert asked == [["same", "changed"], ["new"]]
    table = rows_of(chunk)
    assert [(row[rows.KEY], row[rows.MAPPED]) for row in table] == [
        ("same", False),
        ("changed", True),
        ("new", True),
        ("new", True),
    ]
    assert (table[0][rows.ROW_HASH], table[0][rows.VERSION], table[0]["name"]) == (b"r" * 16, 5, None)
    assert table[1][rows.VERSION] == 1_704_067_200_000_000
    assert (chunk.objects, chunk.mapped, chunk.rejects) == (4, 3, ())


@pytest.mark.parametrize("known_first", [True, False])
def test_the_same_rows_whatever_the_first_page_lets_expect(known_first: bool) -> None:
    """Pages behind one of new objects alone are read in full from the first: all is as if they had not been."""
    spec = sync_spec(
        {"id": "text", "gone": "boolean", "size": "double precision", "data": "json", "at": "timestamptz"},
        object={"key": ["id"], "version": "at", "deleted": "gone"},
    )
    records = [
        *(b'{"id": "h%d", "size": %b, "data": {"b": 1.0}, "at": "2024-01-01T00:00:00Z"}' % pair for pair in enumerate(TOKENS)),
        b'{"id": "%b", "size": 1}' % (b"x" * 2_001),
        b'{"id": "t1", "gone": true, "size": 1, "at": null}',
        b'{"id": "torn", "more": "\xff"}',
        b'{"id": "same", "size": 7.5}',
        b'{"id": "cut", "size": 01}',
    ]
    held = Remembered(raw_hash=raw_hash(Raw(records[-2]), reading_of(spec)), row_hash=b"r" * 16, source_version=5)
    known = {ObjectKey("same"): held} | ({ObjectKey("before"): held} if known_first else {})

    def remember(keys: Sequence[ObjectKey]) -> dict[ObjectKey, Remembered]:
        return {key: known[key] for key in keys if key in known}

    mapper = Mapper(spec)
    once = Mapper(spec).map_chunk([page(b'{"id": "before"}', *records)], ARTIFACT, lambda _: known)
    chunk = mapper.map_chunk([page(b'{"id": "before"}'), page(*records[:-1]), page(records[-1])], ARTIFACT, remember)
    again = mapper.map_chunk([page(b'{"id": "before"}', *records)], ARTIFACT, remember)
    each = Mapper(spec).map_chunk([page(one) for one in (b'{"id": "before"}', *records)], ARTIFACT, remember)

    def told(mapped: MappedChunk) -> list[dict[str, Any]]:
        return [{name: row[name] for name in row if name not in (rows.FRAME, rows.INDEX)} for row in rows_of(mapped)]

    assert told(chunk) == told(once) == told(again) == told(each)
    assert [reject.message for reject in chunk.rejects] == [reject.message for reject in once.rejects]
    assert (chunk.objects, chunk.mapped, len(chunk.rejects)) == (7, 5, 4)


def test_remembering_what_was_mapped_changes_nothing() -> None:
    """A second sync of the same bytes maps nothing and has the same keys and hashes."""
    pages = [page(*(record(f"h{n}", price=n) for n in range(5)))]
    first = Mapper(SPEC).map_chunk(pages, ARTIFACT, nothing)
    held = {
        ObjectKey(row[rows.KEY]): Remembered(
            raw_hash=row[rows.RAW_HASH], row_hash=row[rows.ROW_HASH], source_version=row[rows.VERSION]
        )
        for row in rows_of(first)
    }
    second = Mapper(SPEC).map_chunk(pages, ARTIFACT, lambda _: held)
    assert (second.objects, second.mapped) == (5, 0)
    head = (rows.KEY, rows.VERSION, rows.RAW_HASH, rows.ROW_HASH)
    assert [[row[name] for name in head] for row in rows_of(second)] == [[row[name] for name in head] for row in rows_of(first)]


@pytest.mark.parametrize(
    ("change", "is_read"),
    [
        ({"fields": {"id": "text", "name": "text", "price": "numeric(8,2)"}}, True),
        ({"fields": {"id": "text", "price": "text"}}, True),
        ({"version": 2}, True),
        ({"object": {"key": ["id"], "version": "price"}}, True),
        ({"description": "Prices."}, False),
        ({"tenant": "other"}, False),
    ],
)
def test_a_spec_that_reads_records_otherwise_reads_them_anew(change: dict[str, object], is_read: bool) -> None:
    """The same bytes are known only as long as the fields, the key and the versions mean the same."""
    fields = {"id": "text", "price": "integer"}
    (row,) = rows_of(map_records(sync_spec(fields), record("h1")))
    held = Remembered(raw_hash=row[rows.RAW_HASH], row_hash=row[rows.ROW_HASH], source_version=None)
    changed = sync_spec(**{"fields": fields, **change})  # type: ignore[arg-type]
    assert Mapper(changed).map_chunk([page(record("h1"))], ARTIFACT, lambda _: {ObjectKey("h1"): held}).mapped == is_read


def test_addresses_lead_to_the_bytes() -> None:
    """A reject's frame and index are those of its page and record."""
    bad = b'{"id": "x"}'
    pages = [page(record("a")), page(), page(record("b"), bad)]
    (reject,) = Mapper(SPEC).map_chunk(pages, ARTIFACT, nothing).rejects
    assert reject.address == RawAddress(artifact=ARTIFACT, frame=2, index=1)


@pytest.mark.parametrize(
    ("body", "error"), [(b"<html>", AnswerNotJson), (b'[{"id": 1}', AnswerNotJson), (b"{}", RecordsMissing)]
)
def test_a_page_that_cannot_be_taken_apart(body: bytes, error: type[AnswerUnusable]) -> None:
    """The error names the artifact and the page."""
    with pytest.raises(error, match=f"page 1 of {ARTIFACT}: ") as caught:
        Mapper(SPEC).map_chunk([page(record("a")), body], ARTIFACT, nothing)
    assert caught.value.facts == {"artifact": ARTIFACT, "frame": 1}


SOUND = page(record("h1"), record("h2", name="\u00e9\\"), record("h3", x={"y": [1, "z"]}))


@given(
    start=st.integers(0, len(SOUND)),
    length=st.integers(0, 6),
    patch=st.binary(max_size=4) | st.sampled_from([b'"', b"{", b",", b"\\u0000"]),
)
@example(start=1, length=0, patch=b"[" * 5000)
@settings(deadline=None, max_examples=500)
def test_no_bytes_upset_it(start: int, length: int, patch: bytes) -> None:
    """However a page is damaged, it is refused by name, or every one of its records is a row or a reject."""
    body = SOUND[:start] + patch + SOUND[start + length :]
    try:
        chunk = Mapper(SPEC).map_chunk([body], ARTIFACT, nothing)
    except AnswerUnusable:
        return
    places = {reject.address.index for reject in chunk.rejects}
    assert len(places) == len(chunk.rejects)
    assert places <= set(range(chunk.objects + len(places)))
    assert len(rows_of(chunk)) == chunk.objects


def test_a_message_is_bounded_however_many_fields_are_wrong() -> None:
    """The first are named, each with a short value, the others counted."""
    fields: dict[str, str | dict[str, Any]] = {"id": "text", **{f"n{place}": "integer" for place in range(300)}}
    record = {"id": "a", **{f"n{place}": "👩" * 100 for place in range(300)}}
    (reject,) = map_records(sync_spec(fields), json.dumps(record)).rejects
    assert reject.message.startswith('n0: "\\ud83d\\udc69')
    assert reject.message.endswith("; and 280 more fields")
    assert len(reject.message) < 20 * 1_000
