"""Publications taken back whose table, spec or rows are not those of every day."""

from contextlib import closing
from typing import Any

import pytest

from sluice.errors import TargetMismatch
from sluice.model.ledger import Outcome
from sluice.model.spec import SyncSpec
from sluice.model.undo import ConflictKind
from sluice.ports import ConnectionInfo
from tests.support.ledgered import Table
from tests.unit.mapping.workbench import sync_spec

FIELDS: dict[str, str | dict[str, Any]] = {"id": "text", "t": "integer", "more": "json"}


def spec(fields: dict[str, str | dict[str, Any]] | None = None, **target: Any) -> SyncSpec:
    """Things, one of whose columns is called as the table is in our statements."""
    return sync_spec({**FIELDS, **(fields or {})}, target={"table": "shop.things", **target})


def thing(key: str, t: int = 1, more: Any = None, **values: Any) -> dict[str, Any]:
    """A record of the supplier's."""
    return {"id": key, "t": t, "more": more, **values}


@pytest.mark.parametrize("target", [{"deletes": "soft"}, {"deletes": "hard"}, {"form": "history"}], ids=str)
def test_any_name_and_any_document_returns(database: ConnectionInfo, target: dict[str, Any]) -> None:
    """A column `t` hides no row; a document that is a text, a number or nothing is what it was."""
    live = {"soft": "_sluice_deleted_at is null", "hard": "true", "history": "_sluice_valid_to is null"}
    query = f"select id, t, more::text from shop.things where {live[next(iter(target.values()))]} order by id"
    with closing(Table(database, spec(**target))) as table:
        table.bring(thing("a", more="text"), thing("b", more=1.5), thing("c"), thing("d", more={"x": None}))
        before = table.hand.execute(query.encode()).fetchall()
        assert before[0] == ("a", 1, '"text"')
        bad = table.bring(*(thing(key, 2, more=[]) for key in "abc"), thing("e"), complete=True)
        assert [change.field for change in table.undo_of(bad).changes[:2]] == ["t", "more"]
        table.roll_back(bad)
        assert table.hand.execute(query.encode()).fetchall() == before


def test_a_long_row_is_overwritten_and_returns(database: ConnectionInfo) -> None:
    """However long it is, its before-image is read back whole."""
    with closing(Table(database, spec())) as table:
        table.bring(thing("a", more="x" * 3_000_000))
        before = table.rows()
        table.roll_back(table.bring(thing("a", 2)))
        assert table.rows() == before


def test_a_publication_from_before_its_table_was_widened(database: ConnectionInfo) -> None:
    """The table stays as it is by now, though the spec of the publication says otherwise; the values return."""
    with closing(Table(database, spec())) as table:
        table.bring(thing("a"))
        bad = table.bring(thing("a", 2))
        old = table.spec
        table.respec(spec({"t": "bigint"}, evolution="widen"))
        table.bring(thing("b", 2**40))
        table.respec(old)
        table.roll_back(bad)
        assert table.rows("id, t") == [{"id": "a", "t": 1}, {"id": "b", "t": 2**40}]


def test_a_publication_under_a_new_spec_is_taken_back_and_redone(database: ConnectionInfo) -> None:
    """Rows that an older spec hashed are nobody's edit: neither one that was deleted, nor those that were put back."""
    with closing(Table(database, spec())) as table:
        table.bring(thing("a"), thing("b"), thing("c"))
        before = table.rows("id, t, _sluice_deleted_at")
        table.respec(spec({"stars": "integer"}))
        bad = table.bring(thing("a", 2, stars=4), thing("b", 1, stars=5), complete=True)
        after = table.rows()
        assert bad.counts == {Outcome.CHANGED: 2, Outcome.DELETED: 1}
        assert table.undo_of(bad).conflicts == ()
        back = table.roll_back(bad)
        assert table.rows("id, t, _sluice_deleted_at") == before
        with table.target.held() as rows:
            assert {row.key: row.row_hash for row in rows} == {key: table.ledger_of(key)["row_hash"] for key in "abc"}
        assert table.undo_of(back).conflicts == ()
        table.roll_back(back)
        assert table.rows() == after


def test_a_row_that_others_had_edited_before_is_put_back_and_redone(database: ConnectionInfo) -> None:
    """What the rollback wrote is as it left it, though no publication before had brought it."""
    with closing(Table(database, spec())) as table:
        table.bring(thing("a"))
        table.hand.execute("update shop.things set t = 7")
        back = table.roll_back(table.bring(thing("a", 2)))
        assert table.rows("t") == [{"t": 7}]
        assert table.undo_of(back).conflicts == ()


def test_a_row_that_was_marked_as_deleted_and_then_edited_is_a_conflict(database: ConnectionInfo) -> None:
    """It is compared with what it was before it was marked."""
    with closing(Table(database, spec())) as table:
        table.bring(thing("a"), thing("b"))
        bad = table.bring(complete=True)
        table.hand.execute("update shop.things set t = 9 where id = 'a'")
        assert [(found.key, found.kind) for found in table.undo_of(bad).conflicts] == [("a", ConflictKind.ALTERED)]


def test_a_table_that_has_become_a_history_since(database: ConnectionInfo) -> None:
    """Its versions would be overwritten: that is refused."""
    with closing(Table(database, spec())) as table:
        bad = table.bring(thing("a"))
        table.hand.execute("alter table shop.things add column _sluice_valid_from timestamptz")
        with pytest.raises(TargetMismatch, match="had another form when the publication to take back was made"):
            table.undo_of(bad)
