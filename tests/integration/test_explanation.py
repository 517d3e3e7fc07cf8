"""Why the table holds a value, asked through the whole flow: back to the supplier's own bytes, and to what has expired."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sluice.errors import NotFound
from sluice.mapping.keys import key_named
from sluice.model.base import ObjectKey
from sluice.model.ledger import Outcome
from sluice.ports import ConnectionInfo
from sluice.upkeep.collection import collect
from sluice.upkeep.explanation import explain
from tests.support.places import Places, open_places
from tests.unit.fakes.clock import FakeClock

ODD = '{"id" : "a",\t"rooms":9, "rate":1.50 ,"tags":{"b":"caf\\u00e9","a":"\\ud83c\\udfe8"},  "rooms": 1 }'
"""A key that stands twice, escapes, white space: what no parser would give back."""


@pytest.fixture
def places(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Places]:
    with open_places(tmp_path, database, artifacts) as places:
        yield places


def test_a_value_is_followed_back_to_the_person_and_to_the_bytes(places: Places) -> None:
    """Of three publications by two persons each tells its run, review, row and record, byte for byte as it was sent."""
    sent = [ODD, '{"id":"a","rooms":2,"rate":1.5}', '{"rooms": 2, "id": "a", "rate": 7}']
    runs = [
        places.bring('{"id": "0"}', sent[0], by="ada", comment="first"),
        places.bring('{"id": "0"}', sent[1], by="bob", comment="more rooms"),
        places.bring('{"id": "0"}', sent[2], by="ada"),
    ]
    told = places.why("a")

    assert told.altered is None
    assert [trace.event.outcome for trace in told.traces] == [Outcome.CHANGED, Outcome.CHANGED, Outcome.CREATED]
    assert [trace.run.id for trace in told.traces if trace.run] == [run.id for run in reversed(runs)]
    decisions = [trace.review.decision for trace in told.traces if trace.review]
    assert [(made.by, made.comment) for made in decisions if made] == [("ada", ""), ("bob", "more rooms"), ("ada", "first")]
    assert [(raw.data.decode(), raw.page, raw.index) for trace in told.traces if (raw := trace.raw)] == [
        (text, 0, 1) for text in reversed(sent)
    ]
    oldest = told.traces[-1]
    assert oldest.values == {"id": "a", "rooms": "1", "rate": "1.5", "tags": '{"a":"🏨","b":"café"}', "opened": None}
    assert oldest.raw is not None
    (pointer,) = [kept for kept in places.services.pointers.of(runs[0].id, "raw") if kept.key == oldest.raw.artifact]  # type: ignore[arg-type]
    assert sent[0].encode() in next(iter(places.services.codec.pages(places.services.artifacts.get(pointer))))


def test_each_field_dates_from_the_publication_that_brought_its_value(places: Places) -> None:
    """A field that did not change with the row keeps its origin, and lists its former values, equal ones once."""
    for text in ('{"id":"a","rooms":1,"rate":1.50}', '{"id":"a","rooms":2,"rate":1.5}', '{"id":"a","rooms":2,"rate":7}'):
        places.bring(text)
    first, second, third = sorted(trace.event.publication or 0 for trace in places.why("a").traces)
    told = places.why("a")
    assert {origin.field: (origin.value, origin.publication) for origin in told.origins} == {
        "id": ("a", first),
        "rooms": ("2", second),
        "rate": ("7", third),
        "tags": (None, first),
        "opened": (None, first),
    }
    assert [(origin.value, origin.publication) for origin in told.former("rate")] == [("7", third), ("1.5", first)]
    assert all(origin.is_certain for origin in told.origins)
    recent = places.why("a", limit=2)
    assert recent.earlier == 1
    assert {origin.field: origin.is_certain for origin in recent.origins if origin.field != "tags"} == {
        "id": False,
        "rooms": False,
        "rate": True,
        "opened": False,
    }


def test_a_deletion_a_return_and_a_rejection_are_told(places: Places) -> None:
    """The row that came back is a new origin; a record that was rejected is told with its reason and its bytes."""
    places.bring('{"id":"a","rooms":1}', '{"id":"b"}')
    places.bring('{"id":"b"}')
    assert (places.why("a").present, places.why("a").altered) == (None, None)
    places.bring('{"id":"a","rooms":1}', '{"id":"b","rooms":3}', by="ada")
    bad = '{"id":"a","rooms": "many"}'
    places.bring(bad, '{"id":"b","rooms":4}')
    told = places.why("a")
    outcomes = [Outcome.REJECTED, Outcome.REAPPEARED, Outcome.DELETED, Outcome.CREATED]
    assert [trace.event.outcome for trace in told.traces] == outcomes
    rejected, back, gone, created = told.traces
    assert (rejected.said, rejected.raw and rejected.raw.data) == ('rooms: "many" is no integer', bad.encode())
    assert (gone.values, gone.raw, gone.gone) == (None, None, ())
    assert [(origin.value, origin.publication) for origin in told.former("rooms")] == [
        ("1", back.event.publication),
        ("1", created.event.publication),
    ]


def test_a_deletion_that_the_supplier_told_leads_to_its_record(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo
) -> None:
    """Who is said to be gone is told with the bytes that say so, and has no values since."""
    fields = [{"name": "id", "type": "text"}, {"name": "rooms", "type": "integer"}, {"name": "gone", "type": "boolean"}]
    changes = {"fields": fields, "object": {"key": ["id"], "deleted": "gone"}}
    with open_places(tmp_path, database, artifacts, changes) as places:
        places.bring('{"id":"a","rooms":1}', '{"id":"b"}')
        places.bring('{"id":"b"}', '{"gone" : true, "id":"a"}')
        told = places.why("a")
        gone, created = told.traces
        assert (gone.event.outcome, gone.values, gone.gone) == (Outcome.DELETED, None, ())
        assert gone.raw is not None
        assert gone.raw.data == b'{"gone" : true, "id":"a"}'
        assert (told.present, told.altered) == (None, None)
        assert [(origin.value, origin.publication) for origin in told.former("rooms")] == [("1", created.event.publication)]
        assert places.reconcile().is_in_step


@pytest.mark.parametrize("form", ["upsert", "history"])
def test_a_value_that_was_put_back_is_told_as_such(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, form: str
) -> None:
    """It dates from the publication that undid another, by whom, and its bytes are those it was first made of."""
    with open_places(tmp_path, database, artifacts, {"target": {"table": "public.places", "form": form}}) as places:
        places.bring('{"id":"a","rooms":1, "rate": 5}', '{"id":"0"}')
        places.bring('{"id":"a","rooms":2, "rate": 5}', '{"id":"0"}', '{"id":"b"}', by="ada")
        undone = places.why("a").traces[0].event.publication
        places.take_back(undone, by="bob")
        told = places.why("a")

        back, changed, created = told.traces
        assert (told.altered, back.values, back.gone) == (None, created.values, ())
        assert back.publication is not None
        assert changed.publication is not None
        assert (back.publication.undoes, changed.publication.rolled_back_by) == (undone, back.publication.id)
        assert back.review is not None
        assert back.review.decision is not None
        assert back.review.decision.by == "bob"
        assert told.present is back
        assert (back.raw, told.source_of(back)) == (None, created)
        assert [(origin.value, origin.publication) for origin in told.former("rooms")] == [
            ("1", back.publication.id),
            ("2", undone),
            ("1", created.event.publication),
        ]
        gone = places.why("b")
        assert (gone.present, gone.altered, gone.traces[0].took_out) == (None, None, True)
        assert places.reconcile().is_in_step
        places.sql("update places set rooms = 7 where id = 'a'")
        (found,) = places.reconcile().alterations
        assert [(change.field, change.old, change.new) for change in found.changes] == [("rooms", "1", "7")]


def test_what_has_expired_is_said_to_be_gone_and_the_rest_is_told(places: Places) -> None:
    """The table knows the last row, what that overwrote the one before; the first one is gone, and so are all records."""
    for rooms in (1, 2, 3):
        places.bring(f'{{"id":"a","rooms":{rooms}}}')
    places.sql("update sluice_state.artifact set expires_at = now() - interval '1 day'")
    assert collect(places.services, dry_run=False).artifacts > 0
    later = FakeClock()
    later.move(timedelta(days=36500))
    told = explain(replace(places.services, clock=later), places.spec, ObjectKey("a"), 20)
    review = told.traces[0].review
    assert review is not None
    expired_on = f"{review.diff.expires_at:%Y-%m-%d}"
    third, second, first = told.traces
    assert (third.raw, second.raw, first.raw, first.values) == (None, None, None, None)
    assert third.gone == (f"its raw bytes: expired on {expired_on}",)
    assert second.gone == first.gone == (f"the diff, which leads to its row and its raw bytes: expired on {expired_on}",)
    assert [origin.value for origin in told.former("rooms")] == ["3", "2"]
    assert [origin.is_certain for origin in told.former("rooms")] == [True, False]

    places.sql("delete from sluice_state.decision; delete from sluice_state.review")
    told = places.why("a")
    assert [trace.event.outcome for trace in told.traces] == [Outcome.CHANGED, Outcome.CHANGED, Outcome.CREATED]
    assert "there is no review" in told.traces[0].gone[0]


def test_objects_of_several_key_fields_are_named_by_a_list(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo
) -> None:
    """Numbers in the list may be written as numbers; who is not there is told who stands around."""
    fields = [{"name": "land", "type": "text"}, {"name": "room", "type": "integer"}, {"name": "rooms", "type": "integer"}]
    changes = {"object": {"key": ["land", "room"]}, "fields": fields}
    with open_places(tmp_path, database, artifacts, changes) as places:
        places.bring('{"land":"F, R","room":7,"rooms":1}', '{"land":"GB","room":7,"rooms":1}')
        key = key_named(places.spec, '["F, R", 7]')
        raw = places.why(key).traces[0].raw
        assert raw is not None
        assert raw.data == b'{"land":"F, R","room":7,"rooms":1}'
        with pytest.raises(NotFound, match=r'among \["F, R","7"\], \["GB","7"\]$'):
            places.why(key_named(places.spec, '["G", 7]'))


def test_what_others_changed_in_the_table_is_told(places: Places) -> None:
    """By field, where the row is there; else as removed, or marked as deleted."""
    places.bring('{"id":"a","rooms":1,"rate":1.50}')
    places.sql("update places set rooms = 2, rate = 1.5")
    told = places.why("a")
    assert told.altered == "others have changed its row"
    assert [(change.field, change.old, change.new) for change in told.alterations] == [("rooms", "1", "2")]
    places.sql("update places set rooms = 1, _sluice_deleted_at = now()")
    assert places.why("a").altered == "others have marked its row as deleted"
    places.sql("delete from places")
    assert places.why("a").altered == "others have removed its row"
