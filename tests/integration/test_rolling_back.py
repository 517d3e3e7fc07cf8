"""Publications taken back in a real Postgres: what returns, what stays as others made it, and the record of it."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from sluice.adapters.targets import rolling_back
from sluice.adapters.targets.arrow_copy import read_parquet
from sluice.errors import LedgerMoved, NotUndoable, TargetMismatch
from sluice.model import rows
from sluice.model.base import ObjectKey
from sluice.model.ledger import ObjectState, Outcome
from sluice.model.spec import SyncSpec
from sluice.model.undo import Conflict, ConflictKind
from sluice.ports import ConnectionInfo
from tests.support.ledgered import Table
from tests.unit.mapping.workbench import sync_spec

FIELDS: dict[str, str | dict[str, Any]] = {
    "id": "text",
    "name": "text",
    "price": "numeric(10,2)",
    "more": "json",
    "rev": "bigint",
}


def spec(**target: Any) -> SyncSpec:
    """Things with a version."""
    return sync_spec(FIELDS, object={"key": ["id"], "version": "rev"}, target={"table": "shop.things", **target})


def thing(key: str, rev: int = 1, **values: Any) -> dict[str, Any]:
    """A record of the supplier's."""
    return {"id": key, "name": f"thing {key}", "price": "1.10", "more": {"tags": ["a", None]}, "rev": rev, **values}


@pytest.fixture(params=["soft", "hard"])
def table(database: ConnectionInfo, request: pytest.FixtureRequest) -> Iterator[Table]:
    """A table of either way to delete."""
    with closing(Table(database, spec(deletes=request.param))) as table:
        yield table


def names(table: Table) -> dict[str, str]:
    """The names of the live things."""
    live = "true" if table.spec.target.deletes == "hard" else "_sluice_deleted_at is null"
    query = f"select id, name from shop.things where {live} order by 1"
    return dict(table.hand.execute(query.encode()).fetchall())


def test_created_changed_deleted_and_reappeared_objects_return(table: Table) -> None:
    """Rows and ledger are exactly what they were; what was created leaves a tombstone; both publications name each other."""
    table.bring(thing("a"), thing("b"), thing("c"), thing("d"))
    table.bring(thing("a"), thing("b"), thing("c"), complete=True)
    before = table.rows()
    known = {key: table.ledger_of(key) for key in "abcd"}
    bad = table.bring(thing("a", 2, name="A", price=None, more=None), thing("b"), thing("d", 2), thing("e"), complete=True)
    assert bad.counts == {Outcome.CHANGED: 1, Outcome.CREATED: 1, Outcome.DELETED: 1, Outcome.REAPPEARED: 1}

    undo = table.undo_of(bad)
    assert (undo.objects, undo.restored, undo.live_before, undo.live_after, undo.conflicts) == (4, 4, 4, 3, ())
    back = table.roll_back(bad, undo)

    assert table.rows() == before
    assert {key: table.ledger_of(key) for key in "abcd"} == known
    tombstone = table.ledger.object("hotels", ObjectKey("e"))
    assert tombstone is not None
    assert (tombstone.state, tombstone.publication) == (ObjectState.DELETED, back.id)
    assert (back.counts, back.undoes) == ({Outcome.ROLLED_BACK: 4}, bad.id)
    assert [p.rolled_back_by for p in table.ledger.publications("hotels", 2)] == [None, back.id]
    told = [(event.outcome, event.new_hash is None) for event in table.ledger.events("hotels", ObjectKey("e"))]
    assert told == [(Outcome.CREATED, False), (Outcome.ROLLED_BACK, True)]
    assert table.ledger.events("hotels", ObjectKey("a"))[-1].new_hash == known["a"]["row_hash"]


def test_a_rollback_can_be_taken_back(table: Table) -> None:
    """Redone, the table is what the first publication had made of it; and that can be undone once more."""
    table.bring(thing("a"), thing("b"))
    before = table.rows()
    first = table.bring(thing("a", 2, name="A"), thing("c"), complete=True)
    after = table.rows()
    second = table.roll_back(first)
    third = table.roll_back(second)
    assert table.rows() == after
    assert third.counts == {Outcome.ROLLED_BACK: 3}
    assert table.ledger_of("c")["state"] is ObjectState.LIVE
    table.roll_back(third)
    assert table.rows() == before


def test_what_a_later_publication_changed_is_left_alone_and_named(table: Table) -> None:
    """Rollback of yesterday's publication when today's changed two of its rows: those two are conflicts."""
    table.bring(*(thing(key) for key in "abcd"))
    yesterday = table.bring(*(thing(key, 2, name=f"bad {key}") for key in "abc"), thing("e", 2))
    today = table.bring(thing("a", 3, name="good a"), thing("e", 3, name="good e"))

    undo = table.undo_of(yesterday)
    assert undo.conflicts == (
        Conflict(key=ObjectKey("a"), kind=ConflictKind.PUBLISHED, publication=today.id),
        Conflict(key=ObjectKey("e"), kind=ConflictKind.PUBLISHED, publication=today.id),
    )
    assert undo.conflicts[0].why == f"publication {today.id} changed it"
    table.roll_back(yesterday, undo)
    assert names(table) == {"a": "good a", "b": "thing b", "c": "thing c", "d": "thing d", "e": "good e"}
    known = table.ledger.object("hotels", ObjectKey("a"))
    assert known is not None
    assert known.publication == today.id


def test_what_others_changed_in_the_table_is_left_alone_and_named(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value changed in psql, a row removed, one put back that was deleted: conflicts, however few rows are read at a time.

    Columns of theirs are none.
    """
    monkeypatch.setattr(rolling_back, "_ROWS_AT_A_TIME", 2)
    table.bring(*(thing(key) for key in "abcde"))
    table.hand.execute("alter table shop.things add column note text default 'none'")
    bad = table.bring(*(thing(key, 2, name="bad") for key in "abcd"), complete=True)
    table.hand.execute("update shop.things set name = 'mine' where id = 'a'")
    table.hand.execute("delete from shop.things where id = 'b'")
    table.hand.execute("update shop.things set note = 'mine' where id = 'c'")
    if table.spec.target.deletes == "soft":
        table.hand.execute("update shop.things set _sluice_deleted_at = null where id = 'e'")
    else:
        table.hand.execute("insert into shop.things (id, name) values ('e', 'mine')")

    undo = table.undo_of(bad)
    assert [(conflict.key, conflict.kind) for conflict in undo.conflicts] == [
        ("a", ConflictKind.ALTERED),
        ("b", ConflictKind.GONE),
        ("e", ConflictKind.ALTERED),
    ]
    table.roll_back(bad, undo)
    assert [(row["id"], row["name"], row["note"]) for row in table.rows("id, name, note")][:3] == [
        ("a", "mine", "none"),
        ("c", "thing c", "mine"),
        ("d", "thing d", "none"),
    ]


def test_a_row_that_was_removed_returns_with_the_columns_of_others(database: ConnectionInfo) -> None:
    """As far as the table still has them; generated ones are made anew, and a column added since takes its default."""
    with closing(Table(database, spec(deletes="hard"))) as table:
        table.bring(thing("a"), thing("b"))
        table.hand.execute("alter table shop.things add column number bigint generated always as identity")
        table.hand.execute("alter table shop.things add column long text generated always as (name || '!') stored")
        table.hand.execute("alter table shop.things add column note text, add column lost text")
        table.hand.execute("update shop.things set note = 'mine', lost = 'mine'")
        before = table.rows("id, name, price, more, rev, number, long, note")
        bad = table.bring(thing("a"), complete=True)
        table.hand.execute("alter table shop.things drop column lost, add column late text default 'late'")
        table.roll_back(bad)
        assert table.rows("id, name, price, more, rev, number, long, note") == before
        assert table.rows("id, late") == [{"id": "a", "late": "late"}, {"id": "b", "late": "late"}]


def test_a_column_of_the_publication_that_was_dropped_since(table: Table) -> None:
    """It is refused, naming the column: nothing could be put back into it."""
    table.bring(thing("a"))
    bad = table.bring(thing("a", 2))
    table.hand.execute("alter table shop.things drop column price")
    with pytest.raises(TargetMismatch, match="lost columns that the publication to take back had written: price"):
        table.undo_of(bad)


def test_what_changed_since_the_review_goes_back_to_review(table: Table) -> None:
    """Nothing is written; the same holds for a publication that somebody else has taken back."""
    table.bring(thing("a"), thing("b"))
    bad = table.bring(thing("a", 2, name="bad"), thing("b", 2, name="bad"))
    undo = table.undo_of(bad)
    table.hand.execute("update shop.things set name = 'mine' where id = 'a'")
    with pytest.raises(LedgerMoved, match=r"1 objects of publication .* first of them: a"):
        table.roll_back(bad, undo)
    assert names(table) == {"a": "mine", "b": "bad"}

    back = table.roll_back(bad)
    with pytest.raises(NotUndoable, match=f"taken back meanwhile by publication {back.id}"):
        table.roll_back(bad, undo)


def test_versions_stay_protected(table: Table) -> None:
    """What was created comes back only in a version that is not older than the one that was taken out."""
    table.bring(thing("a"))
    table.roll_back(table.bring(thing("b", 5)))
    assert table.bring(thing("b", 4)).counts == {Outcome.STALE: 1}
    assert table.bring(thing("b", 5)).counts == {Outcome.REAPPEARED: 1}


def test_the_diff_tells_what_is_put_back_and_what_is_taken_out(table: Table) -> None:
    """A row that returns has a place; the preview names fields, before and after."""
    table.bring(thing("a"), thing("b"))
    bad = table.bring(thing("a", 2, name="x" * 300), thing("c", 2))
    undo = table.undo_of(bad)
    diff = read_parquet(undo.diff).to_pylist()
    assert [(row[rows.KEY], row[rows.OUTCOME], row[rows.POSITION]) for row in diff] == [
        ("a", "rolled-back", 0),
        ("c", "rolled-back", None),
    ]
    assert [(change.field, change.objects) for change in undo.changes] == [("name", 1), ("rev", 1)]
    assert undo.changes[0].samples == (("a", "x" * 199 + "…", "thing a"),)
    changed, created = undo.samples
    assert [(value.field, value.new) for value in changed.values] == [("name", "thing a"), ("rev", "1")]
    assert ({value.new for value in created.values}, len(created.values)) == ({None}, 5)


def test_values_return_exactly(database: ConnectionInfo) -> None:
    """Whatever a column may hold is what it was, to the last bit."""
    with closing(Table(database, spec())) as table:
        table.bring(thing("a"))
        table.hand.execute(
            "alter table shop.things add column d double precision, add column raw json, add column at timestamptz,"
            " add column b bytea, add column list text[], add column n numeric"
        )
        table.hand.execute(
            'update shop.things set d = 0.1::float8 + 0.2, raw = \'{"b": 1,  "a": 1.0, "a": 2}\', b = \'\\x00ff\','
            " at = '2026-01-31 12:00:00.123456+05', list = '{x,NULL,\"a,b\"}', n = 12345678901234567890.0123456789"
        )
        text = "id, name, price::text, more::text, d, raw::text as raw, at, b, list, n::text as n"
        before = table.rows(text)
        bad = table.bring(complete=True)
        table.hand.execute("delete from shop.things")
        assert table.undo_of(bad).conflicts == ()
        table.roll_back(bad)
        assert table.rows(text) == before


def test_composite_keys(database: ConnectionInfo) -> None:
    """Each part finds its column."""
    parted = spec().model_copy(update={"object": spec().object.model_copy(update={"key": ("id", "name")})})
    with closing(Table(database, parted)) as table:
        table.bring(thing("a", name="x"), thing("a", name="y"))
        before = table.rows("name, id, price")
        table.roll_back(table.bring(thing("a", 2, name="x", price="2"), thing("b", 2, name="z")))
        assert table.rows("name, id, price") == before


def test_a_history_keeps_all_versions(database: ConnectionInfo) -> None:
    """Taking back adds versions: the former values are valid again, and nothing that was is lost."""
    with closing(Table(database, spec(form="history"))) as table:
        table.bring(thing("a"), thing("b"), thing("c"))
        bad = table.bring(thing("a", 2, name="bad"), thing("b"), thing("d", 2), complete=True)
        back = table.roll_back(bad)
        valid = table.hand.execute("select id, name from shop.things where _sluice_valid_to is null order by id").fetchall()
        assert valid == [("a", "thing a"), ("b", "thing b"), ("c", "thing c")]
        assert back.counts == {Outcome.ROLLED_BACK: 3}
        versions = table.hand.execute("select id, count(*) from shop.things group by id order by id").fetchall()
        assert versions == [("a", 3), ("b", 1), ("c", 2), ("d", 1)]
        table.roll_back(back)
        valid = table.hand.execute("select id, name from shop.things where _sluice_valid_to is null order by id").fetchall()
        assert valid == [("a", "bad"), ("b", "thing b"), ("d", "thing d")]
