"""A table that keeps each version of an object, against a real Postgres: spans, deletions, and what it held when."""

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sluice.adapters.targets.arrow_copy import read_parquet
from sluice.model.base import PublicationId
from sluice.model.ledger import Outcome
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo
from tests.support.ledgered import Table
from tests.unit.mapping.workbench import sync_spec

FIELDS: dict[str, str | dict[str, Any]] = {
    "id": {"type": "text", "description": "The supplier's id."},
    "part": "integer",
    "name": "text",
    "gone": "boolean",
}
SPANS = "select id, name, _sluice_valid_from, _sluice_valid_to from {} order by 1, 3"
CURRENT = "select id, name from {} where _sluice_valid_to is null order by 1"
AT = (
    "select id, name from {} where _sluice_valid_from <= %(at)s"
    " and (_sluice_valid_to is null or _sluice_valid_to > %(at)s) order by 1"
)


def spec(name: str = "shop.places", sync: str = "places", **target: Any) -> SyncSpec:
    """Places with a key of two fields, whose versions are kept."""
    declared = {"table": name, "form": "history", **target}
    return sync_spec(FIELDS, sync=sync, object={"key": ["id", "part"], "deleted": "gone"}, target=declared)


def place(key: str, name: str | None = None, **values: Any) -> dict[str, Any]:
    """A record of the supplier's."""
    return {"id": key, "part": 1, "name": name or key.upper(), **values}


@pytest.fixture
def table(database: ConnectionInfo) -> Iterator[Table]:
    """An empty history."""
    with closing(Table(database, spec())) as table:
        yield table


def ask(table: Table, query: str, **facts: Any) -> list[tuple[Any, ...]]:
    """Ask the table in SQL."""
    return table.hand.execute(query.format(table.spec.target.table).encode(), facts).fetchall()


def test_a_change_ends_a_version_and_begins_the_next(table: Table) -> None:
    """The end of the one is the beginning of the other: the instant of the publication. What did not change goes on."""
    first = table.bring(place("a"), place("b"))
    second = table.bring(place("a", "A2"), place("b"))
    assert ask(table, SPANS) == [
        ("a", "A", first.applied_at, second.applied_at),
        ("a", "A2", second.applied_at, None),
        ("b", "B", first.applied_at, None),
    ]
    assert second.counts == {Outcome.CHANGED: 1}


def test_a_deletion_ends_and_a_reappearance_begins(table: Table) -> None:
    """Nothing is ever removed: what was there stays, with the time until when; who comes back gets a row of its own."""
    first = table.bring(place("a"), place("b"))
    gone = table.bring(place("b"), complete=True)
    assert ask(table, CURRENT) == [("b", "B")]
    back = table.bring(place("a"), place("b"))
    assert ask(table, SPANS) == [
        ("a", "A", first.applied_at, gone.applied_at),
        ("a", "A", back.applied_at, None),
        ("b", "B", first.applied_at, None),
    ]
    assert (gone.counts, back.counts) == ({Outcome.DELETED: 1}, {Outcome.REAPPEARED: 1})


def test_a_tombstone_ends_the_version(table: Table) -> None:
    """A record may say it, too."""
    table.bring(place("a"), place("b"))
    gone = table.bring(place("a", gone=True))
    assert (gone.counts, ask(table, CURRENT)) == ({Outcome.DELETED: 1}, [("b", "B")])


def test_before_images_are_of_the_versions_that_end(table: Table) -> None:
    """Those before them are left as they are, and thus are no part of it."""
    table.bring(place("a"), place("b"))
    table.bring(place("a", "A2"), place("b"))
    third = table.bring(place("a", "A3"), place("c"), complete=True)
    images = read_parquet(table.images[third.id]).to_pylist()
    assert [(image["key"], image["outcome"]) for image in images] == [
        ('["a","1"]', "changed"),
        ('["b","1"]', "deleted"),
        ('["c","1"]', "created"),
    ]
    assert '"name":"A2"' in images[0]["row"]
    assert images[2]["row"] is None


def test_columns_keys_and_comments(table: Table) -> None:
    """As psql shows them: key and instant identify a version, one of an object is valid, and no span is turned round."""
    table.bring(place("a"))
    columns = ask(
        table,
        "select attname, format_type(atttypid, atttypmod), attnotnull, col_description(attrelid, attnum)"
        " from pg_attribute where attrelid = '{}'::regclass and attnum > 0 order by attnum",
    )
    assert columns == [
        ("id", "text", True, "The supplier's id."),
        ("part", "integer", True, None),
        ("name", "text", False, None),
        ("gone", "boolean", False, None),
        ("_sluice_valid_from", "timestamp with time zone", True, "When this version was published."),
        (
            "_sluice_valid_to",
            "timestamp with time zone",
            False,
            "When a later version, or the object's deletion, was published; null while this one is valid.",
        ),
    ]
    keys = ask(table, "select pg_get_indexdef(indexrelid) from pg_index where indrelid = '{}'::regclass order by 1")
    assert [key.split(" USING ")[1] for (key,) in keys] == [
        "btree (id, part) WHERE (_sluice_valid_to IS NULL)",
        "btree (id, part, _sluice_valid_from)",
    ]
    with pytest.raises(psycopg.errors.CheckViolation):
        table.hand.execute("update shop.places set _sluice_valid_to = _sluice_valid_from")


def test_a_clock_that_went_back_turns_no_span_round(table: Table) -> None:
    """Publications of a sync follow one another, whatever the server's clock says."""
    first = table.bring(place("a"))
    table.hand.execute("update sluice_ledger.publication set applied_at = applied_at + interval '1 hour'")
    table.hand.execute("update shop.places set _sluice_valid_from = _sluice_valid_from + interval '1 hour'")
    second = table.bring(place("a", "A2"))
    assert (second.applied_at - first.applied_at).total_seconds() == pytest.approx(3600.000001, abs=1e-7)
    assert ask(table, CURRENT) == [("a", "A2")]


def test_rows_from_before_the_ledger_end_as_well(table: Table) -> None:
    """What somebody else left in the table as valid is ended by the first version Sluice publishes of it."""
    table.bring(place("a"))
    table.hand.execute("insert into shop.places (id, part, name, _sluice_valid_from) values ('b', 1, 'theirs', 'epoch')")
    table.bring(place("a"), place("b"))
    assert ask(table, CURRENT) == [("a", "A"), ("b", "B")]


def test_two_syncs_may_share_a_history(database: ConnectionInfo, table: Table) -> None:
    """Each ends and begins what is its own."""
    table.bring(place("a"))
    with closing(Table(database, spec(sync="others"), turn=100)) as others:
        others.bring(place("b"))
        others.bring(place("c"), complete=True)
    table.bring(place("a", "A2"), complete=True)
    assert ask(table, CURRENT) == [("a", "A2"), ("c", "C")]


KEYS = st.sampled_from("abc")
STEPS = st.lists(st.tuples(st.dictionaries(KEYS, st.sampled_from("xy")), st.sets(KEYS), st.booleans()), min_size=1, max_size=6)
_NUMBERS = count()


@given(steps=STEPS)
@example(steps=[({"a": "x"}, set(), False), ({}, {"a"}, False), ({"a": "x"}, set(), False), ({"a": "y"}, set(), True)])
@example(steps=[({"a": "x"}, set(), False), ({"a": "y"}, set(), False), ({"a": "x"}, set(), False)])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_past_can_be_asked_for(database: ConnectionInfo, steps: list[tuple[dict[str, str], set[str], bool]]) -> None:
    """After any sequence of runs the table tells what it held at the instant of each; of an object, spans never overlap."""
    number = next(_NUMBERS)
    states: dict[PublicationId, tuple[Any, dict[str, str]]] = {}
    state: dict[str, str] = {}
    with closing(Table(database, spec(f"shop.places_{number}", f"sync_{number}"), turn=1000 * number)) as table:
        for rows, tombstones, complete in steps:
            records = [place(key, name) for key, name in rows.items()] + [place(key, gone=True) for key in tombstones]
            publication = table.bring(*records, complete=complete)
            delivered = {**rows, **dict.fromkeys(tombstones, "")}
            kept = {} if complete else {key: name for key, name in state.items() if key not in delivered}
            state = kept | {key: name for key, name in delivered.items() if name}
            states[publication.id] = publication.applied_at, state
        for at, expected in states.values():
            assert ask(table, AT, at=at) == sorted(expected.items())
        overlaps = (
            "select count(*) from {0} a join {0} b on (a.id, a.part) = (b.id, b.part)"
            " and a._sluice_valid_from < b._sluice_valid_from"
            " and coalesce(a._sluice_valid_to, 'infinity') > b._sluice_valid_from"
        )
        assert ask(table, overlaps) == [(0,)]
        assert ask(table, "select count(*) from {} where _sluice_valid_from >= _sluice_valid_to") == [(0,)]
