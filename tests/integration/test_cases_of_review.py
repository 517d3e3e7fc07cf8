"""What other tools get wrong about changes, versions and deletions, each with the right outcome, through the whole flow."""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from sluice.errors import DecisionRefused
from sluice.model import rows
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, Verdict
from sluice.model.review import Choice
from sluice.model.run import SYNC_MODES, Mode
from sluice.ports import ConnectionInfo
from tests.chaos.shop import Thing
from tests.support.stall import Stall, hours, open_stall, price
from tests.unit.mapping.workbench import map_records, rows_of, sync_spec


@pytest.fixture
def stall(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Stall]:
    with open_stall(tmp_path, database, artifacts) as stall:
        yield stall


FORTY = [price(f"p{number:02}", number) for number in range(40)]


def test_an_empty_answer_deletes_nothing_and_a_true_mass_deletion_is_let_through_once(stall: Stall) -> None:
    """Yesterday 40, today `200 []`: blocked, nothing deleted. Then 39 truly gone: let through once, for at most 39."""
    stall.bring(FORTY)
    empty = stall.bring([])
    assert (empty.status, stall.review_of(empty).verdict) == (RunStatus.WAITING, Verdict.BLOCKED)
    assert stall.review_of(empty).reasons == ("the supplier delivered nothing",)
    assert len(stall.prices()) == 40

    gone = stall.bring(FORTY[:1])
    assert (gone.status, stall.review_of(gone).verdict) == (RunStatus.WAITING, Verdict.BLOCKED)
    for refused in (None, 38):
        with pytest.raises(DecisionRefused):
            stall.answer(gone, Choice.APPROVE, deletes_at_most=refused)
    assert (len(stall.prices()), stall.review_of(gone).verdict) == (40, Verdict.BLOCKED)
    assert stall.answer(gone, Choice.APPROVE, deletes_at_most=39).status is RunStatus.SUCCEEDED
    assert stall.prices() == {"p00": 0.0}
    assert stall.publications()[-1].counts == {Outcome.DELETED: 39}

    assert stall.answer(stall.bring(FORTY), Choice.APPROVE).status is RunStatus.SUCCEEDED
    again = stall.bring(FORTY[:1])
    assert stall.review_of(again).verdict is Verdict.BLOCKED
    assert len(stall.prices()) == 40


WITH_DELETIONS = {
    "object": {"key": ["id"], "version": "version", "deleted": "gone"},
    "fields": [
        {"name": "id", "type": "text"},
        {"name": "price", "type": "numeric(10,2)"},
        {"name": "version", "type": "bigint"},
        {"name": "gone", "type": "boolean"},
        {"name": "updated_at", "type": "timestamptz"},
    ],
    "review": {
        "first_load": "auto-approve",
        "auto_approve": {"created": "100%", "changed": "100%", "deleted": "100%"},
        "block": {"deleted": "100%"},
    },
}


@pytest.fixture
def telling(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Stall]:
    """A stall whose supplier says what is gone."""
    with open_stall(tmp_path, database, artifacts, WITH_DELETIONS) as stall:
        yield stall


def told(stall: Stall, key: str) -> list[tuple[Outcome, int | None]]:
    """Return what became of an object, with the version that came in."""
    return [(event.outcome, event.source_version) for event in stall.events(key)]


@pytest.mark.parametrize("mode", SYNC_MODES)
def test_older_never_overwrites_newer_and_what_was_older_is_told(telling: Stall, mode: Mode) -> None:
    """The target holds v5; v3 arrives, then a delete at v4, then v6: it ends at v6, v3 and the delete are stale."""
    telling.bring([price("a", 50, 5)], mode)
    for thing in (price("a", 30, 3), price("a", None, 4, gone=True), price("a", 60, 6)):
        assert telling.bring([thing], mode).status is RunStatus.SUCCEEDED
    assert telling.prices() == {"a": 60.0}
    assert told(telling, "a") == [(Outcome.CREATED, 5), (Outcome.STALE, 3), (Outcome.STALE, 4), (Outcome.CHANGED, 6)]

    telling.bring([price("a", None, 8, gone=True)], mode)
    telling.bring([price("a", 70, 7)], mode)
    assert telling.prices() == {}
    assert told(telling, "a")[4:] == [(Outcome.DELETED, 8), (Outcome.STALE, 7)]


def test_what_repeats_something_old_is_told_of_once(telling: Stall) -> None:
    """A supplier that serves an old copy day after day fills no ledger, and makes no publication of nothing."""
    telling.bring([price("a", 50, 5)])
    for _ in range(3):
        telling.bring([price("a", 30, 3)])
    assert told(telling, "a") == [(Outcome.CREATED, 5), (Outcome.STALE, 3)]
    assert len(telling.publications()) == 2


@pytest.mark.parametrize(
    ("before", "newer", "older", "left"),
    [
        ([price("a", 1, 5)], price("a", 1, 7), price("a", 2, 6), {"a": 1.0}),
        (
            [price("b", 1, 1), price("a", 1, 5), price("a", None, 6, gone=True)],
            price("a", None, 9, gone=True),
            price("a", 2, 8),
            {"b": 1.0},
        ),
        ([price("b", 1, 1)], price("a", None, 4, gone=True), price("a", 2, 3), {"b": 1.0}),
    ],
    ids=["a version alone", "a later deletion of what is gone", "a deletion of what was never here"],
)
def test_a_newer_version_counts_though_it_changes_no_row(
    telling: Stall, before: list[Thing], newer: Thing, older: Thing, left: dict[str, float]
) -> None:
    """The ledger learns of it at once, so that what is older and comes later is known to be old."""
    for thing in before:
        telling.bring([thing], Mode.INCREMENTAL)
    rows_before = telling.prices()
    telling.bring([newer], Mode.INCREMENTAL)
    assert telling.prices() == rows_before
    telling.bring([older], Mode.INCREMENTAL)
    assert telling.prices() == left
    assert told(telling, "a")[-1] == (Outcome.STALE, older["version"])
    telling.bring([price("a", 3, 10)], Mode.INCREMENTAL)
    assert telling.prices() == {**left, "a": 3.0}


def test_a_failed_hard_expectation_is_not_published_unseen(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo
) -> None:
    """Prices that are gone all of a sudden block the review, within whatever limit of changes; a person may let them pass."""
    policy = {
        "first_load": "auto-approve",
        "auto_approve": {"changed": "100%", "created": "100%", "drift": 1000},
        "block": {"expect": [{"field": "price", "nulls_at_most": "25%"}]},
    }
    with open_stall(tmp_path, database, artifacts, {"review": policy}) as stall:
        stall.bring(FORTY)
        assert stall.bring([price(f"p{n:02}", None if n < 10 else n) for n in range(40)]).status is RunStatus.SUCCEEDED
        blocked = stall.bring([price(f"p{n:02}", None if n < 11 else n) for n in range(40)])
        assert stall.review_of(blocked).verdict is Verdict.BLOCKED
        assert stall.review_of(blocked).reasons == ("11 of 40 rows (27.5%) would have no price; block.expect allows 25%",)
        assert stall.prices()["p10"] == 10.0
        assert stall.answer(blocked, Choice.APPROVE).status is RunStatus.SUCCEEDED
        assert stall.prices()["p10"] is None


def test_there_and_back_again_is_two_changes(stall: Stall) -> None:
    """An object that alternates A, B, A is published three times."""
    for amount in (1, 2, 1):
        stall.bring([price("a", amount)])
    assert [publication.counts for publication in stall.publications()] == [
        {Outcome.CREATED: 1},
        {Outcome.CHANGED: 1},
        {Outcome.CHANGED: 1},
    ]
    assert [event.outcome for event in stall.events("a")] == [Outcome.CREATED, Outcome.CHANGED, Outcome.CHANGED]
    assert stall.prices() == {"a": 1.0}


def test_the_same_version_with_other_content_is_a_change(stall: Stall) -> None:
    """Same version, price 10 then 11: ends at 11."""
    stall.bring([price("a", 10, 7)])
    stall.bring([price("a", 11, 7)])
    assert stall.prices() == {"a": 11.0}


@pytest.mark.parametrize(("backfilled", "daily"), [(1, 2), (2, 1)])
def test_a_daily_run_and_an_overlapping_backfill_leave_the_same_table(stall: Stall, backfilled: int, daily: int) -> None:
    """Whichever of the two publishes first, the newest version of each object stands in the end, and nothing is deleted."""
    old = [price("a", 1, 1, hour=1), price("b", 10 * backfilled, backfilled, hour=5), price("c", 1, 1, hour=9)]
    new = [price("b", 10 * daily, daily, hour=6), price("c", 1, 1, hour=9), price("d", 1, 1, hour=10)]
    tables = []
    for order in permutations(("backfill", "daily")):
        stall.sql(
            "drop table if exists prices; truncate sluice_ledger.object, sluice_ledger.object_event, sluice_state.watermark"
        )
        for which in order:
            if which == "backfill":
                stall.bring(old, window=hours(0, 8))
            else:
                stall.bring(new, mode=Mode.INCREMENTAL)
        tables.append(stall.prices())
    assert tables == [{"a": 1.0, "b": 20.0, "c": 1.0, "d": 1.0}] * 2


def hash_of(record: str) -> tuple[str, bytes]:
    """Return the key and the row hash of one record."""
    fields = {"id": "text", "first": "text", "second": "text", "whole": "integer", "exact": "numeric", "free": "json"}
    (row,) = rows_of(map_records(sync_spec(dict(fields)), record))
    return row[rows.KEY], row[rows.ROW_HASH]


def test_where_a_value_stands_tells_rows_apart() -> None:
    """("A", null, "B") and ("A", "B", null) are two rows, and as keys two objects."""
    assert hash_of('{"id": "A", "first": null, "second": "B"}') != hash_of('{"id": "A", "first": "B", "second": null}')
    spec = sync_spec({"a": "text", "b": "text"}, object={"key": ["a", "b"]})
    keys = [row[rows.KEY] for row in rows_of(map_records(spec, '{"a": "A", "b": "B,"}', '{"a": "A,", "b": "B"}'))]
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"id": "A", "first": "x"}', '{"first": "x", "id": "A"}'),
        ('{"id": "A", "free": {"a": 1, "b": 2}}', '{"id": "A", "free": {"b": 2, "a": 1}}'),
        ('{"id": "A", "whole": 1}', '{"id": "A", "whole": 1.0}'),
        ('{"id": "A", "exact": 1}', '{"id": "A", "exact": 1.0}'),
        ('{"id": "A", "free": 1}', '{"id": "A", "free": 1.0}'),
        ('{"id": "A"}', '{"id": "A", "first": null}'),
    ],
    ids=["order of keys", "order of keys in a document", "integer", "numeric", "number in a document", "absent and null"],
)
def test_what_means_the_same_is_the_same_row(one: str, other: str) -> None:
    """The order of keys says nothing; numbers are what their declared type makes of them; what is absent is null."""
    assert hash_of(one) == hash_of(other)


def test_as_text_each_spelling_is_a_value_of_its_own() -> None:
    """1 and 1.0 in a text field are two texts; so are "" and null."""
    hashes = {hash_of(f'{{"id": "A", "first": {token}}}') for token in ("1", "1.0", '""', "null")}
    assert len(hashes) == 4
