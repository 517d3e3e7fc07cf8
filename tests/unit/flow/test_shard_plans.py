"""Shards as a spec declares them: their keys, and the values requests are made with."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import ShardsUnusable, UsageInvalid
from sluice.flow.shard_plans import WHOLE, all_shards
from sluice.model.base import ShardKey
from sluice.model.run import Mode, Window
from sluice.model.shard import ShardPlan
from sluice.ports import ShardQuestion
from tests.unit.fakes.shard_finder import ListedShardFinder
from tests.unit.flow.workshop import Workshop, sync_spec

BEGUN = datetime(2024, 3, 1, 9, 30, tzinfo=UTC)
LISTED = {
    "kind": "listed",
    "name": "city",
    "value": "id",
    "source": {"kind": "rest", "connection": "shop", "path": "/cities", "cursor": {"kind": "none"}},
}


def asked(mode: Mode = Mode.FULL, window: tuple[datetime, datetime] | None = None) -> ShardQuestion:
    """For what shards are wanted."""
    between = None if window is None else Window(start=window[0], end=window[1])
    return ShardQuestion(mode=mode, window=between, begun_at=BEGUN, marks={})


def shards(declared: Any, question: ShardQuestion | None = None) -> list[tuple[str, dict[str, str]]]:
    """Return keys and values of all shards of a sync."""
    spec = sync_spec(shards=declared)
    return [(plan.key, plan.params) for plan in all_shards(Workshop(spec=spec).services, spec, question or asked())]


def test_a_sync_that_declares_none_has_one() -> None:
    """The whole is a shard without values."""
    assert shards(None) == [(WHOLE, {})]


def test_ranges_say_their_last_number_and_the_one_behind() -> None:
    """Suppliers take bounds either way; the last range ends where the spec says."""
    assert shards({"kind": "ranges", "start": 1, "last": 25, "size": 10}) == [
        ("1-10", {"start": "1", "end": "11", "last": "10"}),
        ("11-20", {"start": "11", "end": "21", "last": "20"}),
        ("21-25", {"start": "21", "end": "26", "last": "25"}),
    ]


@given(
    st.integers(min_value=-(10**12), max_value=10**12),
    st.integers(min_value=0, max_value=5_000),
    st.integers(min_value=1, max_value=700),
)
def test_each_number_is_in_exactly_one_range(start: int, more: int, size: int) -> None:
    """Ranges leave no gap and do not overlap, below zero as above."""
    plans = shards({"kind": "ranges", "start": start, "last": start + more, "size": size})
    numbers = [number for _, params in plans for number in range(int(params["start"]), int(params["end"]))]
    assert numbers == list(range(start, start + more + 1))
    assert all(int(params["end"]) == int(params["last"]) + 1 for _, params in plans)
    assert len({key for key, _ in plans}) == len(plans)


def test_more_ranges_leave_the_others_as_they_were() -> None:
    """Keys do not depend on how far the ranges go, or every watermark would end whenever ids grow."""
    ranges = {"kind": "ranges", "size": 10}
    assert shards({**ranges, "last": 99}) == shards({**ranges, "last": 100_000 - 1})[:10]


def test_spans_go_from_the_declared_start_to_the_begin_of_the_run() -> None:
    """A full run covers all there is, and its last span ends when it began, whatever the supplier dates later."""
    assert shards({"kind": "windows", "every": "30d", "start": "2024-01-01T00:00:00+02:00"}) == [
        ("2023-12-31T22:00:00Z", {"start": "2023-12-31T22:00:00Z", "end": "2024-01-30T22:00:00Z"}),
        ("2024-01-30T22:00:00Z", {"start": "2024-01-30T22:00:00Z", "end": "2024-02-29T22:00:00Z"}),
        ("2024-02-29T22:00:00Z", {"start": "2024-02-29T22:00:00Z", "end": "2024-03-01T09:30:00Z"}),
    ]


def test_a_window_is_cut_instead() -> None:
    """A run with a window asks for that and nothing else, declared start or not."""
    window = BEGUN - timedelta(days=3), BEGUN - timedelta(days=1)
    for start in ({}, {"start": "2020-01-01T00:00:00Z"}):
        assert [params for _, params in shards({"kind": "windows", "every": "1d", **start}, asked(window=window))] == [
            {"start": "2024-02-27T09:30:00Z", "end": "2024-02-28T09:30:00Z"},
            {"start": "2024-02-28T09:30:00Z", "end": "2024-02-29T09:30:00Z"},
        ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "give the run a window, or the spec shards.start"),
        ({"start": "2030-01-01T00:00:00Z"}, "shards.start of hotels is 2030-01-01T00:00:00Z, and the run begins before that"),
        ({"start": "2000-01-01T00:00:00Z", "every": "1h"}, "there are more than 10000 spans: raise every"),
    ],
)
def test_spans_that_cannot_be_are_refused(changes: dict[str, str], said: str) -> None:
    """Without an end or a beginning there is nothing to cut, and too many are named before they are made."""
    with pytest.raises(UsageInvalid, match=said):
        shards({"kind": "windows", "every": "1d", **changes})


def test_buckets_are_named_by_all_that_decides_what_is_in_them() -> None:
    """Another count or another salt gives other shards, which have no watermarks yet."""
    plans = shards({"kind": "buckets", "count": 12, "salt": "x"})
    assert plans[7] == ("07 of 12 salted x", {"bucket": "7", "buckets": "12"})
    assert [key for key, _ in shards({"kind": "buckets", "count": 1})] == ["0 of 1"]
    keys = [key for key, _ in plans]
    assert keys == sorted(keys)


def test_what_a_supplier_lists_is_asked_for_where_it_is_said_to_be() -> None:
    """The finder is told for what, and its answer counts."""
    spec = sync_spec(shards=LISTED)
    plan = ShardPlan(key=ShardKey("oslo"), params={"city": "oslo"})
    workshop = Workshop(spec=spec, finder=ListedShardFinder([plan]))
    answers: list[bool] = []
    assert all_shards(workshop.services, spec, asked(), lambda: answers.append(True)) == [plan]
    assert (workshop.finder.questions, answers) == ([asked()], [True])


def test_a_list_that_is_empty_or_too_long_is_refused() -> None:
    """No shard would mean that all objects are gone, and more than there may be would be none that ends."""
    spec = sync_spec(shards=LISTED)
    many = [ShardPlan(key=ShardKey(str(number)), params={}) for number in range(10_001)]
    for plans, said in (([], "taken for out of order, not for empty"), (many, "10,001 shards, and 10,000 are the most")):
        with pytest.raises(ShardsUnusable, match=said):
            all_shards(Workshop(spec=spec, finder=ListedShardFinder(plans)).services, spec, asked())
