"""A table that others have edited, compared with its ledger: each kind of edit is told, and what only looks like one is not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.errors import NotFound, TargetMismatch
from sluice.model.evidence import ValueChange
from sluice.model.reconciliation import Alteration, Difference
from sluice.model.run import Mode
from sluice.ports import ConnectionInfo
from tests.support.places import SPEC, Places, open_places


@pytest.fixture
def places(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Places]:
    with open_places(tmp_path, database, artifacts) as places:
        yield places


def place(key: str, rooms: int = 1, rate: str = "1.50") -> str:
    """Return a record."""
    tags = '{"b": 1, "a": [1.0]}'
    return f'{{"id": "{key}", "rooms": {rooms}, "rate": {rate}, "tags": {tags}, "opened": "2026-01-01T01:00:00+01:00"}}'


def test_each_kind_of_edit_is_told(places: Places) -> None:
    """Missing, unknown, changed with its fields, marked as deleted, revived; what nobody touched is in step."""
    places.bring(*map(place, "abcdefg"))
    places.bring(*map(place, "abcdef"))
    assert places.reconcile().is_in_step
    places.sql("delete from places where id = 'a'")
    places.sql("update places set rooms = 7, rate = 'NaN' where id = 'b'")
    places.sql("update places set _sluice_deleted_at = now() where id = 'c'")
    places.sql("update places set _sluice_deleted_at = null where id = 'g'")
    places.sql("insert into places (id) values ('x'), ('y')")
    before = places.sql("select * from sluice_ledger.object order by key")

    found = places.reconcile()
    first, second = sorted(publication for (publication,) in places.sql("select id from sluice_ledger.publication"))
    changes = (ValueChange(field="rooms", old="1", new="7"), ValueChange(field="rate", old="1.5", new="NaN"))
    assert found.alterations == (
        Alteration(key="a", difference=Difference.MISSING, publication=first),
        Alteration(key="x", difference=Difference.UNKNOWN, publication=None),
        Alteration(key="y", difference=Difference.UNKNOWN, publication=None),
        Alteration(key="b", difference=Difference.CHANGED, publication=first, changes=changes),
        Alteration(key="c", difference=Difference.DELETED, publication=first),
        Alteration(key="g", difference=Difference.REVIVED, publication=second),
    )
    assert (found.rows, sum(found.counts.values()), found.unclear, found.published_meanwhile) == (8, 6, 0, 0)
    fewer = places.reconcile(limit=1)
    assert (fewer.counts, len(fewer.alterations)) == (found.counts, 5)
    assert places.sql("select * from sluice_ledger.object order by key") == before


def test_equal_values_in_another_spelling_are_no_edits(places: Places) -> None:
    """1.5 for 1.50, a document in another order, an instant in another zone, a column of somebody's own."""
    places.bring(place("a"))
    places.sql(
        """set time zone 'Asia/Tokyo';
        alter table places add column note text default 'mine';
        update places set rate = 1.5000, tags = '{"a": [1], "b": 1.0}', opened = '2025-12-31 19:00:00-05'"""
    )
    assert places.reconcile().is_in_step
    assert places.why("a").altered is None


def test_rows_that_were_published_under_an_older_spec_are_read_as_it_declared_them(places: Places) -> None:
    """A field that came later changes no row that was not delivered since; an edit of such a row is found all the same."""
    places.bring(place("a"), place("b"), place("c"))
    fields = [*SPEC["fields"], {"name": "stars", "type": "integer"}]
    places.declare(fields=fields, source={**SPEC["source"], "query": {"since": "{{ watermark }}"}, "watermark": "opened"})
    places.bring('{"id": "d", "stars": 5}', mode=Mode.INCREMENTAL)
    assert places.reconcile().is_in_step
    places.sql("update places set rooms = 2 where id = 'b'")
    (found,) = places.reconcile().alterations
    assert (found.key, found.changes) == ("b", (ValueChange(field="rooms", old="1", new="2"),))
    oldest = "select run from sluice_ledger.publication order by id limit 1"
    places.sql(f"delete from sluice_state.artifact where kind = 'spec' and run = ({oldest})")
    assert (places.reconcile().unclear, places.reconcile().is_in_step) == (3, False)


@pytest.mark.parametrize("form", ["upsert", "history"])
def test_in_either_form_of_the_table(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, form: str) -> None:
    """Of a table that keeps every version, the current ones are compared."""
    target = {"table": "public.places", "form": form}
    with open_places(tmp_path, database, artifacts, {"target": target}) as places:
        places.bring(place("a"), place("b"), place("c"))
        places.bring(place("a", rooms=2), place("b", rooms=3))
        assert places.reconcile().is_in_step
        assert places.why("a").altered is None
        current = "" if form == "upsert" else "and _sluice_valid_to is null"
        places.sql(f"update places set rooms = 4 where id = 'a' {current}")
        places.sql(f"delete from places where id = 'b' {current}")
        assert [(one.key, one.difference) for one in places.reconcile().alterations] == [
            ("b", Difference.MISSING),
            ("a", Difference.CHANGED),
        ]


def test_what_cannot_be_compared_is_said_plainly(places: Places) -> None:
    """A sync that has published nothing, and a table that is gone."""
    with pytest.raises(NotFound, match=r"has published nothing yet: there is nothing to compare public\.places with"):
        places.reconcile()
    places.bring(place("a"))
    places.sql("drop table places")
    with pytest.raises(TargetMismatch, match=r"table public\.places of sync places is not there"):
        places.reconcile()
    assert places.why("a").altered == "others have removed its row"
