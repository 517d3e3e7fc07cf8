"""When a function is called at all: for objects that are news to the ledger, under the code that made them."""

from msgspec import Raw

from sluice.mapping.columns import raw_hash, reading_in, reading_of
from sluice.mapping.mapper import Mapper
from sluice.model.ledger import Remembered
from tests.unit.mapping.functions import Function, page_of, spec_with
from tests.unit.mapping.workbench import ARTIFACT, nothing, rows_of, sync_spec

SPEC = spec_with({"id": "text"})


def test_a_known_object_is_not_given_to_the_function() -> None:
    """Its row is as the ledger remembers it; without news the function is not even called."""
    known = '{"id": "1"}'
    function = Function(lambda frame: frame)
    mapper = Mapper(SPEC, function=function)
    held = Remembered(raw_hash=raw_hash(Raw(known.encode()), mapper.reading), row_hash=b"r" * 16, source_version=None)
    seen: list[list[str]] = []
    function.does = lambda frame: seen.append(frame["id"].tolist()) or frame
    chunk = mapper.map_chunk([page_of(known, '{"id": "2"}')], ARTIFACT, lambda _: {"1": held})  # type: ignore[dict-item]
    assert [row["_mapped"] for row in rows_of(chunk)] == [False, True]
    mapper.map_chunk([page_of(known)], ARTIFACT, lambda _: {"1": held})  # type: ignore[dict-item]
    assert seen == [["2"]]


def test_a_tombstone_is_not_given_to_the_function() -> None:
    """It has no row."""
    spec = spec_with({"id": "text", "gone": "boolean"}, object={"key": ["id"], "deleted": "gone"})
    function = Function(lambda frame: frame)
    page = page_of('{"id": "1", "gone": true}')
    chunk = Mapper(spec, function=function).map_chunk([page], ARTIFACT, nothing)
    assert (chunk.objects, function.calls) == (1, 0)


def test_rows_say_how_their_records_were_read() -> None:
    """Under another digest, or at another time of the mapping, the same bytes are new."""
    function, edited = Function(lambda frame: frame), Function(lambda frame: frame, digest=8)
    before = spec_with({"id": "text"}, when="before")
    readings = [reading_of(SPEC, function), reading_of(SPEC, edited), reading_of(before, function)]
    assert len({*readings, reading_of(sync_spec({"id": "text"}))}) == 4
    chunk = Mapper(SPEC, function=edited).map_chunk([page_of('{"id": "1"}')], ARTIFACT, nothing)
    assert reading_in(chunk.rows) == readings[1]
    assert rows_of(chunk)[0]["_raw_hash"] == raw_hash(Raw(b'{"id": "1"}'), readings[1])
