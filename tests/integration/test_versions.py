"""Which version wins in a real Postgres: rows and tombstones that come late, together, in either order or out of it."""

from collections.abc import Iterator
from contextlib import closing
from itertools import permutations
from typing import Any

import pytest

from sluice.adapters.targets.arrow_copy import read_parquet
from sluice.errors import LedgerMoved
from sluice.model import rows
from sluice.model.base import ObjectKey
from sluice.model.ledger import ObjectState, Outcome
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo
from tests.support.ledgered import Reviewed, Table
from tests.support.rows import write_parquet
from tests.unit.mapping.workbench import sync_spec

FIELDS: dict[str, str | dict[str, Any]] = {
    "id": "text",
    "price": {"type": "numeric(10,2)", "required": True},
    "rev": "bigint",
    "gone": "boolean",
}


def spec(*, versioned: bool = True, **target: Any) -> SyncSpec:
    """Things with a price, whose records may say that they are gone."""
    identity = {"key": ["id"], "deleted": "gone"} | ({"version": "rev"} if versioned else {})
    return sync_spec(FIELDS, object=identity, target={"table": "shop.things", **target})


def row(key: str, rev: int, price: int) -> dict[str, Any]:
    """A thing as the supplier sends it."""
    return {"id": key, "rev": rev, "price": price}


def tombstone(key: str, rev: int) -> dict[str, Any]:
    """The end of a thing, as the supplier tells it."""
    return {"id": key, "rev": rev, "gone": True}


@pytest.fixture(params=[{}, {"deletes": "hard"}, {"form": "history"}], ids=["soft", "hard", "history"])
def table(database: ConnectionInfo, request: pytest.FixtureRequest) -> Iterator[Table]:
    """An empty table of each form."""
    with closing(Table(database, spec(**request.param))) as table:
        yield table


@pytest.fixture
def plain(database: ConnectionInfo) -> Iterator[Table]:
    """An empty table, for what is the same in all forms."""
    with closing(Table(database, spec())) as table:
        yield table


def prices(table: Table) -> dict[str, int]:
    """What the live things cost."""
    live = {"soft": "_sluice_deleted_at is null", "hard": "true"}[table.spec.target.deletes]
    if table.spec.target.form == "history":
        live = "_sluice_valid_to is null"
    query = f"select id, price::integer from shop.things where {live}"
    return dict(table.hand.execute(query.encode()).fetchall())


def events(table: Table, key: str = "a") -> list[tuple[Outcome, int | None]]:
    """What became of a thing, as of which version."""
    return [(event.outcome, event.source_version) for event in table.ledger.events("hotels", ObjectKey(key))]


def counted(reviewed: Reviewed) -> dict[Outcome, int]:
    """What a run makes of its objects."""
    return dict(reviewed.counts.outcomes)


def test_older_rows_and_deletions_are_stale(table: Table) -> None:
    """The target holds v5; v3 comes, then a deletion at v4, then v6: it ends at v6, and both are on record."""
    table.bring(row("a", 5, 50))
    table.bring(row("a", 3, 30))
    table.bring(tombstone("a", 4))
    assert prices(table) == {"a": 50}
    table.bring(row("a", 6, 60))
    assert prices(table) == {"a": 60}
    assert events(table) == [(Outcome.CREATED, 5), (Outcome.STALE, 3), (Outcome.STALE, 4), (Outcome.CHANGED, 6)]


def test_an_older_row_does_not_raise_the_dead(table: Table) -> None:
    """A deletion has a version, and the ledger remembers it; a newer row comes back."""
    table.bring(row("a", 5, 50))
    table.bring(tombstone("a", 7))
    table.bring(row("a", 6, 60))
    assert prices(table) == {}
    table.bring(row("a", 8, 80))
    assert prices(table) == {"a": 80}
    assert events(table) == [(Outcome.CREATED, 5), (Outcome.DELETED, 7), (Outcome.STALE, 6), (Outcome.REAPPEARED, 8)]


def test_the_same_version_with_another_content_is_a_change(table: Table) -> None:
    """Price 10, then 11, both as of one version: it ends at 11."""
    table.bring(row("a", 1, 10))
    assert table.bring(row("a", 1, 11)).counts == {Outcome.CHANGED: 1}
    assert prices(table) == {"a": 11}


@pytest.mark.parametrize("versioned", [True, False])
def test_back_and_forth_is_three_publications(database: ConnectionInfo, *, versioned: bool) -> None:
    """A, B, A: each is a change of its own, whether the source says so by a version or not."""
    with closing(Table(database, spec(versioned=versioned))) as table:
        published = [table.bring(row("a", rev, price)) for rev, price in ((1, 10), (2, 20), (3, 10))]
        assert [list(publication.counts) for publication in published] == [
            [Outcome.CREATED],
            [Outcome.CHANGED],
            [Outcome.CHANGED],
        ]
        assert (len({publication.id for publication in published}), prices(table)) == (3, {"a": 10})


DAILY = [row("a", 3, 30), row("b", 2, 20), tombstone("c", 4), row("d", 1, 10)]
BACKFILL = [row("a", 2, 20), row("b", 3, 30), row("c", 3, 30), tombstone("d", 2), row("e", 1, 10)]
SINCE = [row("c", 1, 10), row("d", 1, 10)]


@pytest.mark.parametrize("order", list(permutations([DAILY, BACKFILL])), ids=["daily-first", "backfill-first"])
@pytest.mark.parametrize("at_once", [True, False], ids=["reviewed-together", "one-after-the-other"])
def test_a_daily_run_and_a_backfill_in_either_order(
    table: Table, order: tuple[list[dict[str, Any]], ...], *, at_once: bool
) -> None:
    """Whichever is published first, and whether or not the other was reviewed by then, the newest of each thing stays."""
    table.bring(*SINCE)
    if at_once:
        for reviewed in [table.review(*records) for records in order]:
            table.publish(reviewed)
    else:
        for records in order:
            table.bring(*records)
    assert prices(table) == {"a": 30, "b": 30, "e": 10}


def test_within_a_run_the_newest_counts_and_then_the_last(plain: Table) -> None:
    """A tombstone and a row of the same version: the later page wins."""
    plain.bring(row("a", 1, 10), row("b", 1, 10), row("c", 1, 10), row("d", 1, 10))
    run = [tombstone("a", 2), row("a", 2, 20), row("b", 2, 20), tombstone("b", 2), tombstone("c", 3), row("c", 2, 20)]
    publication = plain.bring(*run, row("d", 3, 30), tombstone("d", 2))
    assert publication.counts == {Outcome.CHANGED: 2, Outcome.DELETED: 2}
    assert prices(plain) == {"a": 20, "d": 30}


def test_a_tombstone_is_no_absence(plain: Table) -> None:
    """It deletes in a run that saw little; who was never held is noted, who is gone already is unchanged; all were seen."""
    plain.bring(row("a", 1, 10), row("b", 1, 10), row("c", 1, 10))
    plain.bring(tombstone("b", 2))
    again = plain.review(tombstone("a", 2), tombstone("b", 2), tombstone("x", 2))
    assert counted(again) == {Outcome.DELETED: 1, Outcome.REFRESHED: 1}
    assert (again.counts.seen, again.counts.unchanged, again.counts.vanished, again.counts.noted) == (3, 1, 0, 1)
    whole = plain.review(tombstone("a", 2), complete=True)
    assert (counted(whole), whole.counts.seen, whole.counts.vanished) == ({Outcome.DELETED: 2}, 1, 1)


def test_ignored_deletions_are_counted(plain: Table) -> None:
    """Nothing is done about them, but whoever looks can see how many there are."""
    plain.bring(row("a", 1, 10), row("b", 1, 10), row("c", 1, 10))
    ignored = plain.review(tombstone("a", 2), row("b", 1, 10), complete=True, deletes=False)
    assert (counted(ignored), ignored.counts.vanished, ignored.counts.unchanged) == ({}, 2, 1)


def test_the_ledger_knows_the_tombstone(plain: Table) -> None:
    """Its version and bytes; a newer one is noted, and an old row is behind it, then."""
    plain.bring(row("a", 1, 10))
    before = plain.ledger_of("a")
    plain.bring(tombstone("a", 2))
    known = plain.ledger_of("a")
    assert (known["state"], known["source_version"], known["row_hash"]) == (ObjectState.DELETED, 2, before["row_hash"])
    assert known["raw_hash"] != before["raw_hash"]
    assert plain.bring(tombstone("a", 5), row("b", 1, 10)).counts == {Outcome.CREATED: 1}
    assert plain.ledger_of("a")["source_version"] == 5
    assert counted(plain.review(row("a", 4, 40))) == {Outcome.STALE: 1}


def test_a_deletion_for_absence_keeps_the_version(plain: Table) -> None:
    """Nobody has told a newer one: the same version may come back."""
    plain.bring(row("a", 3, 30), row("b", 1, 10))
    plain.bring(row("b", 1, 10), complete=True)
    assert plain.ledger_of("a")["source_version"] == 3
    assert plain.bring(row("a", 3, 30)).counts == {Outcome.REAPPEARED: 1}


@pytest.mark.parametrize(
    ("meanwhile", "outcome", "left"),
    [
        (row("a", 3, 30), Outcome.DELETED, {}),
        (row("a", 5, 50), Outcome.STALE, {"a": 50}),
        (tombstone("a", 5), Outcome.STALE, {}),
        (tombstone("a", 3), None, {}),
        (tombstone("a", 4), None, {}),
    ],
)
def test_a_tombstone_that_was_reviewed_before_others_published(
    plain: Table, meanwhile: dict[str, Any], outcome: Outcome | None, left: dict[str, int]
) -> None:
    """Its version tells what is left of it; who is gone by then as of something older is gone as of this."""
    plain.bring(row("a", 2, 20), row("b", 2, 20))
    reviewed = plain.review(tombstone("a", 4), row("b", 3, 30))
    plain.bring(meanwhile)
    counts = plain.publish(reviewed).counts
    assert counts == {Outcome.CHANGED: 1} | ({outcome: 1} if outcome else {})
    assert prices(plain) == {"b": 30} | left
    assert plain.ledger_of("a")["source_version"] == max(4, meanwhile["rev"])


@pytest.mark.parametrize("since", [4, 3])
def test_what_came_back_meanwhile_is_asked_about(plain: Table, since: int) -> None:
    """Neither is a row of the same version deleted unasked, nor one whose deletion nobody saw at review."""
    plain.bring(row("a", 2, 20))
    if since < 4:
        plain.bring(tombstone("a", 2))
    reviewed = plain.review(tombstone("a", 4), row("b", 1, 10))
    plain.bring(row("a", since, 30))
    with pytest.raises(LedgerMoved):
        plain.publish(reviewed)
    assert prices(plain) == {"a": 30}


def test_without_versions_the_last_word_counts(database: ConnectionInfo) -> None:
    """Rows and tombstones as they come; but not what was reviewed before the other was published."""
    with closing(Table(database, spec(versioned=False))) as table:
        table.bring(row("a", 9, 90))
        table.bring(tombstone("a", 1))
        assert prices(table) == {}
        table.bring(row("a", 0, 10))
        reviewed = table.review(tombstone("a", 1))
        table.bring(row("a", 0, 20))
        with pytest.raises(LedgerMoved):
            table.publish(reviewed)
        assert prices(table) == {"a": 20}


def test_artifacts_of_an_older_release_are_rows(plain: Table) -> None:
    """What it has stored can still be reviewed and published."""
    old = write_parquet(read_parquet(plain.review(row("a", 1, 10)).rows).drop_columns([rows.DELETED]))
    plain.publish(plain.review_rows(old))
    assert prices(plain) == {"a": 10}
