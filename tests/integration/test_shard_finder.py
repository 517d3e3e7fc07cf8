"""Shards that a supplier lists: asked for over HTTP, cut the same way for the same list."""

from typing import Any

import pytest

from sluice.adapters.sources.finder import SourceShardFinder
from sluice.errors import CursorExpired, ShardsUnusable, SupplierRefused
from sluice.mapping.buckets import bucket_of
from sluice.model.run import Mode, Window
from sluice.model.shard import ShardPlan
from sluice.model.stage import StagePolicy
from sluice.ports import ShardQuestion
from tests.support.nouns import MINUTE, NOW
from tests.support.restraints import lone_source
from tests.support.scripted_supplier import ScriptedSupplier, answer, scripted
from tests.unit.flow.workshop import sync_spec


def cities(*names: Any, more: str | None = None) -> bytes:
    """A page that lists cities."""
    return answer({"cities": [{"id": name} for name in names], "next": more})


def found(
    supplier: ScriptedSupplier, window: Window | None = None, moved: list[int] | None = None, **more: Any
) -> list[ShardPlan]:
    """Return the shards of a sync over what the supplier lists."""
    source = {
        "kind": "rest",
        "connection": "shop",
        "path": "/cities",
        "query": {"since": "{{ window.start }}"},
        "records": "cities",
        "cursor": {"path": "next", "parameter": "cursor"},
    }
    spec = sync_spec(shards={"kind": "listed", "name": "city", "value": "id", "source": source, **more})
    question = ShardQuestion(mode=Mode.FULL, window=window, begun_at=NOW, marks={})
    answered = moved if moved is not None else []
    finder = SourceShardFinder(spec, lambda lister: lone_source(lister, supplier.connection(), StagePolicy()))  # type: ignore[arg-type]
    return finder.find(question, lambda: answered.append(len(supplier.asked)))


def test_each_value_of_all_pages_is_a_shard() -> None:
    """Pages are followed to the last, a value that stands twice counts once, and the order of the list does not matter."""
    moved: list[int] = []
    with scripted(cities("oslo", 7, more="c2"), cities("bern", "oslo")) as supplier:
        plans = found(supplier, moved=moved)
        assert [(plan.key, plan.params) for plan in plans] == [(key, {"city": key}) for key in ("7", "bern", "oslo")]
        assert supplier.asked == ["/cities", "/cities?cursor=c2"]
    assert len(moved) == 2


def test_a_list_may_depend_on_the_window() -> None:
    """It is asked for what the run is asked for."""
    with scripted(cities("oslo")) as supplier:
        found(supplier, window=Window(start=NOW, end=NOW + MINUTE))
        assert supplier.asked == ["/cities?since=2026-01-31T12%3A00%3A00Z"]


def test_values_are_spread_over_buckets() -> None:
    """Each value is in the bucket that its hash says, joined by commas; a bucket without values is no shard."""
    names = [f"c{number}" for number in range(9)]
    with scripted(cities(*reversed(names)), cities(*names)) as supplier:
        plans = found(supplier, buckets=16, salt="x")
        assert found(supplier, buckets=16, salt="x") == plans
    held = {plan.key: plan.params["city"].split(",") for plan in plans}
    assert sorted(name for members in held.values() for name in members) == names
    assert held == {key: sorted(members) for key, members in held.items()}
    assert all(key == f"{bucket_of(name, 16, 'x'):02} of 16 salted x" for key, members in held.items() for name in members)


@pytest.mark.parametrize(
    ("page", "more", "said"),
    [
        (cities(), {}, r"shards\.source \(/cities of connection shop\) lists nothing"),
        (cities("a,b"), {"buckets": 2}, "lists 'a,b': the values of a bucket are joined by commas"),
        (cities(None), {}, "neither a text nor a number at `id`"),
        (cities(*range(10_001)), {}, "more than 10,000 values, each of which would be a shard: spread them over fewer"),
        (cities(*range(100_001)), {"buckets": 2}, "lists more than 100,000 records"),
        (
            cities(*(f"{number:0200}" for number in range(1_000))),
            {"buckets": 2},
            r"of bucket 0 of 2 have \d{2,3},\d{3} bytes, and 64,000 at most .*: raise shards\.buckets",
        ),
    ],
    ids=["nothing", "comma", "no value", "too many shards", "too many records", "too large a bucket"],
)
def test_a_list_that_cannot_be_used_says_why(page: bytes, more: dict[str, Any], said: str) -> None:
    """A run of no shards, or of wrong ones, would take objects for gone."""
    with scripted(page) as supplier, pytest.raises(ShardsUnusable, match=said):
        found(supplier, **more)


def test_a_list_that_is_refused_is_the_suppliers_answer() -> None:
    """What the source raises passes as it is."""
    with scripted(answer({}, "403 Forbidden")) as supplier, pytest.raises(SupplierRefused, match="403"):
        found(supplier)


def test_a_list_whose_cursor_has_expired_is_read_once_more() -> None:
    """From the beginning: what was listed before is not mixed with it."""
    gone = answer({}, "410 Gone")
    with scripted(cities("oslo", more="c2"), gone, cities("bern", more="d2"), cities("rome")) as supplier:
        assert [plan.key for plan in found(supplier)] == ["bern", "rome"]
        assert supplier.asked == ["/cities", "/cities?cursor=c2", "/cities", "/cities?cursor=d2"]
    with (
        scripted(cities("oslo", more="c2"), gone, cities("oslo", more="d2"), gone) as supplier,
        pytest.raises(CursorExpired, match="410"),
    ):
        found(supplier)
