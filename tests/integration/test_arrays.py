"""Columns of arrays in a real Postgres: made and widened as declared, looked at in a review, and taken in as they came."""

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from sluice.errors import TargetMismatch
from sluice.model.evidence import FieldKind
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo
from tests.support.ledgered import Table
from tests.support.market import TYPES, Market, market_spec
from tests.unit.mapping.workbench import sync_spec

FIELDS = {"id": "text", "floors": "integer[]", "prices": "numeric(6,2)[]", "tags": "text[]", "at": "timestamptz[]"}


def spec(**changed: str) -> SyncSpec:
    """Inns, whose types may be altered."""
    return sync_spec(FIELDS | changed, target={"table": "shop.inns", "evolution": "widen"})


@pytest.fixture
def table(database: ConnectionInfo) -> Iterator[Table]:
    """A published table."""
    with closing(Table(database, spec())) as table:
        table.bring({"id": "a", "floors": [1, None], "prices": ["1.5"], "tags": ["x", ""], "at": ["2026-01-01T00:00:00Z"]})
        yield table


def test_a_column_is_an_array_and_fits_what_was_declared(table: Table) -> None:
    """With the type of its items; a second publication finds nothing to alter."""
    columns = table.hand.execute(
        "select attname, format_type(atttypid, atttypmod) from pg_attribute "
        "where attrelid = 'shop.inns'::regclass and attnum > 0 and attname <> '_sluice_deleted_at'"
    ).fetchall()
    assert dict(columns) == FIELDS | {"at": "timestamp with time zone[]"}
    assert table.target.check() == ()


def test_items_become_wider_without_loss(table: Table) -> None:
    """As columns of single values do; what might lose something is left to a person."""
    table.respec(spec(floors="bigint[]", prices="numeric(10,4)[]"))
    assert [statement.split(" -- ")[0] for statement in table.target.check()] == [
        'alter table "shop"."inns" alter column "floors" type bigint[]',
        'alter table "shop"."inns" alter column "prices" type numeric(10,4)[]',
    ]
    table.bring({"id": "b", "floors": [2**40], "prices": ["1.2345"]})
    found = [(row["floors"], row["prices"]) for row in table.rows()]
    assert found == [([1, None], [Decimal("1.5000")]), ([2**40], [Decimal("1.2345")])]
    table.respec(spec())
    with pytest.raises(TargetMismatch, match=r"column floors is bigint\[\], not integer\[\]"):
        table.target.check()


def test_an_array_that_is_only_spelled_otherwise_is_not_changed(table: Table) -> None:
    """Nor one that a hand has written so; another order is another array."""
    same = {"id": "a", "floors": [1.0, None], "prices": [15e-1], "tags": ["x", ""], "at": ["2026-01-01T01:00:00+01:00"]}
    assert table.review(same).counts.outcomes == {"refreshed": 1}
    assert table.review(same | {"tags": ["", "x"]}).counts.outcomes == {"changed": 1}
    with table.target.held() as held:
        (before,) = [row.row_hash for row in held]
    for change, is_ours in {"prices = '{1.50}'": True, "tags = '{{x,y}}'": False, "floors = '[0:1]={1,NULL}'": False}.items():
        table.hand.execute(f"update shop.inns set {change}".encode())
        with table.target.held() as held:
            assert [row.row_hash for row in held] == [before if is_ours else None]


def test_a_review_shows_arrays_and_counts_them(database: ConnectionInfo) -> None:
    """Side by side, as Postgres spells them; in the profile they are neither numbers nor categories."""
    declared = market_spec(fields=[{"name": name, "type": kind} for name, kind in {**TYPES, "list": "numeric[]"}.items()])

    def stalls(*lists: Any) -> list[dict[str, Any]]:
        return [{"id": f"s{place}", "list": one} for place, one in enumerate(lists)]

    with closing(Market(database, declared)) as market:
        market.bring(market.rows(stalls([1.5], [1, 2], [], None)))
        looked = market.look(market.rows(stalls(["1.50"], [1, 3], [], None)))
    assert looked.changes["list"].samples == (("s1", "{1,2}", "{1,3}"),)
    field = looked.fields["list"]
    assert (field.kind, field.nulls, field.distinct, field.categories) == (FieldKind.OTHER, 1, 3, {})
