"""A closer look at a comparison, in a real Postgres: changed fields, samples, and what the table would hold."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from sluice.checks.drift import drifts_between
from sluice.model.evidence import LONGEST_VALUE, FieldKind, Measure
from sluice.ports import ConnectionInfo
from tests.support.market import Market, market_spec


@pytest.fixture
def market(database: ConnectionInfo) -> Iterator[Market]:
    with closing(Market(database)) as market:
        yield market


def stall(key: str, **values: Any) -> dict[str, Any]:
    return {"id": key, "city": "Paris", "stars": 3, "price": "10.50", **values}


def stalls(number: int, **values: Any) -> list[dict[str, Any]]:
    return [stall(f"s{place:06d}", **values) for place in range(number)]


def test_of_a_first_load_all_fields_are_shown_and_none_has_changed(market: Market) -> None:
    """There is no table yet, and nothing to differ from."""
    looked = market.look(market.rows([stall("b", tags=["x"]), stall("a")]))
    assert looked.changes == {}
    assert [key for _, key in looked.samples] == ["a", "b"]
    values = {value.field: (value.old, value.new) for value in looked.samples["created", "b"].values}
    assert values["city"] == (None, "Paris")
    assert values["tags"] == (None, '["x"]')
    assert values["note"] == (None, None)
    assert (looked.profile.rows, looked.profile.looked_at) == (2, 2)


def test_fields_are_counted_by_what_the_table_really_holds(market: Market) -> None:
    """Whatever others have done to it: a change that was made already is none, and one that was undone is."""
    market.bring(market.rows([stall("a"), stall("b"), stall("c"), stall("d")]))
    market.run("update shop.stalls set stars = 5 where id = 'a'", "update shop.stalls set city = 'Rome' where id = 'b'")
    looked = market.look(market.rows([stall("a", stars=5), stall("b", stars=4), stall("c", stars=4), stall("d")]))

    assert looked.order == ["stars", "city"]
    assert looked.changes["stars"].objects == 2
    assert looked.changes["stars"].samples == (("b", "3", "4"), ("c", "3", "4"))
    assert looked.changes["city"].samples == (("b", "Rome", "Paris"),)
    assert looked.samples["changed", "a"].values == ()
    assert [(value.field, value.old, value.new) for value in looked.samples["changed", "c"].values] == [("stars", "3", "4")]


def test_values_are_compared_as_values_of_their_types(market: Market) -> None:
    """Null differs from all but null; the order of keys in a document makes no difference, nor do trailing zeros."""
    before = stall("a", price="1.50", tags={"x": 1, "y": 2}, note="n", rating=1, seen_at="2026-01-01T00:00:00Z")
    after = stall("a", price="1.5", tags={"y": 2, "x": 1}, note=None, rating=1.0, seen_at="2026-01-01T01:00:00+01:00")
    market.bring(market.rows([before]))
    looked = market.look(market.rows([after]))
    assert set(looked.changes) == {"note"}
    assert looked.changes["note"].samples == (("a", "n", None),)


def test_a_row_that_others_removed_counts_as_null_before(market: Market) -> None:
    """The object is changed by the ledger; what would take the place of nothing differs in all that it has."""
    market.bring(market.rows([stall("a")]))
    market.run("delete from shop.stalls")
    looked = market.look(market.rows([stall("a", stars=4)]))
    assert set(looked.changes) == {"id", "city", "stars", "price"}
    assert looked.changes["stars"].samples == (("a", None, "4"),)


def test_samples_are_some_of_each_outcome_in_key_order(database: ConnectionInfo) -> None:
    """Deleted and created objects show all their fields, changed ones what changes, stale ones what they would have changed."""
    spec = market_spec(object={"key": ["id"], "version": "revision"})
    with closing(Market(database, spec)) as market:
        market.bring(
            market.rows([stall("a", revision=5), stall("b", revision=5), stall("c", revision=5), stall("d", revision=5)])
        )
        arriving = [stall("a", revision=3, stars=1), stall("b", revision=6), *stalls(25, revision=1), stall("d", revision=5)]
        looked = market.look(market.rows(arriving), complete=True)

    created = [key for outcome, key in looked.samples if outcome == "created"]
    assert created == [f"s{place:06d}" for place in range(20)]
    assert [outcome for outcome, _ in looked.samples][20:] == ["changed", "deleted", "stale"]
    assert [value.field for value in looked.samples["changed", "b"].values] == ["revision"]
    stale = looked.samples["stale", "a"]
    assert (stale.old_version, stale.version) == (5, 3)
    assert [(value.field, value.old, value.new) for value in stale.values] == [("stars", "3", "1"), ("revision", "5", "3")]
    gone = {value.field: (value.old, value.new) for value in looked.samples["deleted", "c"].values}
    assert gone["city"] == ("Paris", None)
    assert len(gone) == len(spec.fields)


def test_what_came_back_is_shown_like_new(market: Market) -> None:
    """A soft deletion has left its row, but nobody who reads the table goes by that."""
    market.bring(market.rows([stall("a"), stall("b")]))
    market.bring(market.rows([stall("a")]), complete=True)
    looked = market.look(market.rows([stall("a"), stall("b", stars=4)]), complete=True)
    assert looked.changes["stars"].samples == (("b", None, "4"),)
    assert looked.profile.rows == 2


def test_long_values_are_cut(market: Market) -> None:
    """In samples, changes and categories; what is cut is compared in full all the same."""
    market.bring(market.rows(stalls(4, note="x" * 300 + "1")))
    looked = market.look(market.rows(stalls(4, note="x" * 300 + "2")))
    (_, old, new), *_ = looked.changes["note"].samples
    assert old == new == "x" * (LONGEST_VALUE - 1) + "…"
    assert looked.fields["note"].categories == {old: 4}
    assert looked.fields["note"].distinct == 1


def test_a_profile_is_of_what_the_table_would_hold(market: Market) -> None:
    """Rows that stay, less what is deleted or replaced, and what comes in: for each field what befits its type."""
    market.bring(market.rows([stall(f"k{place}", stars=place, city="Rome") for place in range(1, 5)]))
    changed = [
        stall("k1", stars=1, city="Rome"),
        stall("k2", stars=9, city=None),
        stall("n1", stars=5),
        stall("n2", stars=None),
    ]
    profile = market.look(market.rows(changed), complete=True).fields
    assert (profile["stars"].kind, profile["stars"].nulls, profile["stars"].distinct) == (FieldKind.NUMBER, 1, 3)
    assert (profile["stars"].low, profile["stars"].high) == ("1", "9")
    assert dict(profile["stars"].quantiles) == {0.05: "1", 0.25: "1", 0.5: "5", 0.75: "9", 0.95: "9"}
    assert sum(bin_.rows for bin_ in profile["stars"].histogram) == sum(bin_.rows for bin_ in profile["stars"].deciles) == 3
    assert (profile["city"].kind, profile["city"].nulls) == (FieldKind.OTHER, 1)
    assert (profile["id"].kind, profile["id"].distinct) == (FieldKind.OTHER, 4)
    assert (profile["tags"].kind, profile["tags"].nulls) == (FieldKind.OTHER, 4)


def test_categories_are_values_that_repeat(market: Market) -> None:
    """The most frequent of them are counted, and those that were frequent in the baseline."""
    first = market.bring(market.rows([*stalls(300, city="Paris"), *(stall(f"r{place}", city="Rome") for place in range(200))]))
    assert first.fields["city"].categories == {"Paris": 300, "Rome": 200}
    assert first.fields["active"].kind is FieldKind.CATEGORY

    many = [stall(f"s{place:06d}", city=f"town {place % 25:02d}") for place in range(300)]
    rest = [stall(f"r{place}", city="Rome" if place < 2 else f"village {place}") for place in range(200)]
    second = market.look(market.rows([*many, *rest]), baseline=first.profile)
    counted = second.fields["city"].categories
    assert len(counted) == 21
    assert counted["Rome"] == 2
    assert second.fields["city"].kind is FieldKind.CATEGORY
    drift = {drift.field: drift for drift in drifts_between(second.profile, first.profile)}["city"]
    assert (drift.measure, drift.value) == (Measure.FREQUENCY_SHIFT, pytest.approx(1 - 2 / 500))


def test_numbers_are_compared_over_the_deciles_of_the_baseline(market: Market) -> None:
    """The same numbers again have not drifted; others have, were it only that they all are a little higher."""
    objects = [stall(f"s{place:06d}", stars=place % 97, price=str(place), rating=3) for place in range(500)]
    first = market.bring(market.rows(objects))
    assert [bin_.rows for bin_ in first.fields["price"].histogram] == [50] * 10
    assert first.fields["rating"].histogram[0].rows == 500

    same = market.look(market.rows(objects), baseline=first.profile)
    assert {drift.value for drift in drifts_between(same.profile, first.profile)} == {0}
    other = [{**stall_, "price": str(250 + place / 2), "rating": 4} for place, stall_ in enumerate(objects)]
    drifts = {
        d.field: d.value for d in drifts_between(market.look(market.rows(other), baseline=first.profile).profile, first.profile)
    }
    assert drifts["stars"] == 0
    assert drifts["price"] > 1
    assert drifts["rating"] > 1


@pytest.mark.parametrize("form", ["upsert", "history"])
def test_the_same_state_gives_the_same_evidence(database: ConnectionInfo, form: str) -> None:
    """Byte for byte, whatever form the table has."""
    with closing(Market(database, market_spec(target={"table": "shop.stalls", "form": form}))) as market:
        first = market.bring(market.rows(stalls(30, active=True)))
        market.bring(market.rows(stalls(30, active=False)), baseline=first.profile)
        again = [market.look(market.rows(stalls(29, stars=7)), complete=True, baseline=first.profile) for _ in range(2)]
    assert again[0].profile == again[1].profile
    assert again[0].samples == again[1].samples
    assert (again[0].profile.rows, again[0].changes["stars"].objects) == (29, 29)
    assert again[0].changes["stars"].samples[0] == ("s000000", "3", "7")


def test_values_at_the_ends_of_their_types_are_summed_up(market: Market) -> None:
    """Nothing that a table can hold makes a review fail: not even what others have written into it."""
    extremes = [
        stall("a", price="9" * 900, rating="1.7e308", opened="0001-01-01", seen_at="0001-01-01T00:00:00Z", revision=-(2**63)),
        stall("b", price="0." + "0" * 900 + "1", rating="-1.7e308", opened="9999-12-31", seen_at="9999-12-31T23:59:59Z"),
        stall("c", price="-" + "9" * 900, rating="5e-324", revision=2**63 - 1, fee="99999999.99"),
    ]
    market.bring(market.rows([*extremes, *(stall(f"o{place}", rating=1, price="1") for place in range(9))]))
    market.run(
        "update shop.stalls set rating = 'NaN', price = 'NaN', opened = 'infinity', seen_at = 'infinity' where id = 'o1'",
        "update shop.stalls set rating = '-infinity', opened = '-infinity', seen_at = '-infinity' where id = 'o2'",
        "update shop.stalls set rating = 'infinity', price = 1.5 where id = 'o3'",
    )
    looked = market.look(market.rows([stall("n")]))
    numbers = [field for field in looked.profile.fields if field.kind is FieldKind.NUMBER]
    for field in numbers:
        assert sum(bin_.rows for bin_ in field.histogram) == sum(bin_.rows for bin_ in field.deciles) == 13 - field.nulls
    assert (looked.fields["rating"].low, looked.fields["rating"].high) == ("-Infinity", "NaN")
    assert looked.fields["price"].low == "-" + "9" * (LONGEST_VALUE - 2) + "…"
    assert type(looked.profile).model_validate_json(looked.profile.model_dump_json()) == looked.profile


def test_a_table_that_lacks_a_column_has_nulls_in_it(market: Market) -> None:
    """The column is added with the publication; what comes in is compared with nothing."""
    fields = market.spec.model_dump(mode="json")["fields"]
    fewer = market_spec(
        fields=[{"name": field["name"], "type": _written(field)} for field in fields if field["name"] != "note"]
    )
    with closing(Market(market.info, fewer)) as before:
        before.bring(before.rows([stall("a"), stall("b")]))
    looked = market.look(market.rows([stall("a", note="new"), stall("b")]))
    assert looked.changes["note"].samples == (("a", None, "new"),)
    assert looked.fields["note"].nulls == 1


def _written(field: dict[str, Any]) -> str:
    kind = field["type"]
    return f"numeric({kind['precision']},{kind['scale']})" if kind["precision"] else str(kind["name"])


def test_of_many_rows_a_sample_is_looked_at(market: Market) -> None:
    """About as many as are asked for, of those that stay as of those that come in; the ends are of all that come in.

    Nulls are counted among all rows where they are asked for: one row may be what a hard expectation does not allow.
    """
    market.bring(market.rows(stalls(1)))
    market.run(
        """insert into shop.stalls (id, stars, city, price)
        select 't' || n, n % 5, 'Rome', n from generate_series(1, 200000) n""",
        """insert into sluice_ledger.object (
            sync, key, shard, raw_hash, row_hash, transformer_version, state, last_changed_run, publication
        )
        select 'market', 't' || n, 'all', decode(md5(n::text), 'hex'), decode(md5(n::text), 'hex'), 1, 'live', 'r', 1
        from generate_series(1, 200000) n""",
        "update shop.stalls set city = null where id in ('t7', 't77')",
        "analyze shop.stalls",
    )
    coming = [stall(f"n{place}", city="Oslo", stars=2, price=str(place)) for place in range(3_000)]
    coming[1_234]["price"] = "1000000.5"
    looked = market.look(market.rows(coming), market.rows([stall("t7", stars=4), stall("u", price="-3", city=None)]))
    profile = looked.profile
    assert profile.rows == 203_002
    assert 8_000 < profile.looked_at < 12_000
    assert (looked.fields["price"].low, looked.fields["price"].high) == ("-3", "1000000.5")
    assert looked.fields["city"].categories["Oslo"] == pytest.approx(3_000 * profile.looked_at / profile.rows, rel=0.2)
    assert looked.changes["stars"].objects == 1
    assert [looked.fields[name].nulls_in_all for name in ("id", "city", "price", "note")] == [0, 2, 0, 203_002]
    assert len([key for outcome, key in looked.samples if outcome == "created"]) == 20


def test_objects_are_found_by_keys_of_several_fields(database: ConnectionInfo) -> None:
    """Whatever their types; and so are those that go."""
    with closing(Market(database, market_spec(object={"key": ["city", "revision", "code"]}))) as market:
        code = "0b5b9c3e-4a3d-4c6e-9d53-0a1f0e6c7b11"
        before = [stall("x", revision=number, code=code.upper()) for number in (1, 2, 3)]
        market.bring(market.rows(before))
        after = market.look(market.rows([stall("x", revision=1, code=code), stall("y", revision=2, code=code)]), complete=True)
    key = f'["Paris","2","{code}"]'
    assert after.changes["id"].samples == ((key, "x", "y"),)
    shown = [(outcome, len(sample.values)) for (outcome, _), sample in after.samples.items()]
    assert shown == [("changed", 1), ("deleted", 13), ("refreshed", 0)]
    assert (after.profile.rows, after.fields["id"].distinct) == (2, 2)
