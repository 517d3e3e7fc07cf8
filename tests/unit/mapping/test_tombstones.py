"""Records that say that their object is gone: what is read of them, and what becomes of them."""

import json

import pytest
from msgspec import Raw

from sluice.mapping.columns import raw_hash, reading_of
from sluice.mapping.mapper import Mapper
from sluice.model import rows
from sluice.model.base import ObjectKey
from sluice.model.ledger import Remembered
from tests.unit.mapping.workbench import ARTIFACT, map_records, rows_of, sync_spec, watermarked

FIELDS = {
    "id": "text",
    "name": {"type": "text", "required": True},
    "rev": {"type": "bigint", "required": True},
    "gone": "boolean",
    "at": {"type": "timestamptz", "required": True},
}
SPEC = watermarked(sync_spec(FIELDS, object={"key": ["id"], "version": "rev", "deleted": "gone"}), "at")


def record(**values: object) -> str:
    """A record as the supplier sends it."""
    return json.dumps(values)


@pytest.mark.parametrize("more", [{}, {"name": None}, {"name": {"not": "text"}}])
def test_key_version_and_the_field_itself_are_enough(more: dict[str, object]) -> None:
    """Other fields may be missing, null or odd, even required ones and the watermark: they are not read."""
    chunk = map_records(SPEC, record(id="a", rev=4, gone=True, **more))
    (row,) = rows_of(chunk)
    assert (row[rows.KEY], row[rows.VERSION], row[rows.DELETED], row[rows.MAPPED]) == ("a", 4, True, False)
    assert [row[name] for name in FIELDS] == [None] * len(FIELDS)
    assert (chunk.objects, chunk.mapped, chunk.rejects, chunk.high_mark) == (1, 0, (), None)


@pytest.mark.parametrize("gone", [False, None, "false"])
def test_who_is_not_gone_is_a_row(gone: object) -> None:
    """False, null and absent all say that the object is there, and then all that is required has to be."""
    whole = {"name": "A", "rev": 4, "at": "2024-01-01T00:00:00Z"}
    for said in ({"gone": gone}, {}):
        chunk = map_records(SPEC, record(id="a", **whole, **said), record(id="b", rev=1, **said))
        assert [(row[rows.KEY], row[rows.DELETED], row["name"]) for row in rows_of(chunk)] == [("a", False, "A")]
        assert [(reject.key, reject.message) for reject in chunk.rejects] == [("b", "name: is missing; at: is missing")]


def test_the_watermark_moves_on_with_a_tombstone() -> None:
    """The time of a deletion is the supplier's as that of any change."""
    assert map_records(SPEC, record(id="a", rev=4, gone=True, at="2024-05-01T00:00:00Z")).high_mark == "2024-05-01T00:00:00Z"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"id": "a", "gone": True}, "rev: is missing"),
        ({"id": None, "rev": 4, "gone": True}, "id: is null"),
        ({"id": "a", "rev": "four", "gone": True}, 'rev: "four" is no bigint'),
        (
            {"id": "a", "rev": 4, "gone": True, "at": "noon"},
            'at: "noon" is no timestamp (YYYY-MM-DDThh:mm:ss with Z or an offset)',
        ),
        ({"id": "a" * 2001, "rev": 4, "gone": True}, "id: the key is longer than 2000 bytes"),
        ({"id": "a", "rev": 4, "gone": "perhaps", "name": "A", "at": "2024-01-01T00:00:00Z"}, None),
    ],
)
def test_what_cannot_be_told_is_rejected(values: dict[str, object], message: str | None) -> None:
    """Without a key, a version that is required, or a plain yes or no, nobody knows who is gone as of when."""
    (reject,) = map_records(SPEC, record(**values)).rejects
    assert reject.message == (message or 'gone: "perhaps" is neither true nor false')


def test_a_tombstone_is_never_taken_for_what_the_ledger_remembers() -> None:
    """Even where its bytes are known, it is a tombstone."""
    said = record(id="a", rev=4, gone=True).encode()
    known = Remembered(raw_hash=raw_hash(Raw(said), reading_of(SPEC)), row_hash=b"r" * 16, source_version=4)
    chunk = Mapper(SPEC).map_chunk([b"[" + said + b"]"], ARTIFACT, lambda _: {ObjectKey("a"): known})
    assert [row[rows.DELETED] for row in rows_of(chunk)] == [True]


def test_how_records_are_read_is_the_same_without_tombstones() -> None:
    """A ledger written before a sync could have any still knows its objects by their bytes; with them, all are read anew."""
    plain = sync_spec(FIELDS, object={"key": ["id"], "version": "rev"})
    assert reading_of(plain) == 4_827_952_127_279_746_568
    assert reading_of(SPEC) != reading_of(plain)
