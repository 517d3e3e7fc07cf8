"""Ways of cutting a sync: how many shards there are, and how people read them."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from sluice.model.shard import some_of
from sluice.model.sharding import ShardingSpec

SHARDING: TypeAdapter[Any] = TypeAdapter(ShardingSpec)
CITIES = {"kind": "rest", "connection": "shop", "path": "/cities", "cursor": {"kind": "none"}}

READ = [
    ({"kind": "values", "name": "region", "values": ["a", "b"]}, 2, "region a, b"),
    ({"kind": "ranges", "last": 9_999, "size": 3}, 3_334, "3,334 ranges of 3 numbers, from 0 to 9999"),
    ({"kind": "ranges", "start": 5, "last": 5, "size": 3}, 1, "1 ranges of 3 numbers, from 5 to 5"),
    ({"kind": "buckets", "count": 16}, 16, "16 buckets"),
    ({"kind": "windows", "every": "7d"}, None, "each 7d, or of a run's window"),
    (
        {"kind": "windows", "every": "7d", "start": "2024-01-01T00:00:00Z"},
        None,
        "each 7d from 2024-01-01T00:00:00+00:00 on, or of a run's window",
    ),
    (
        {"kind": "listed", "name": "city", "value": "id", "source": CITIES, "buckets": 8},
        None,
        "each city that /cities of connection shop lists, spread over 8 buckets",
    ),
    ({"kind": "files", "split": "1MB"}, None, "each file, or part of it of 1,000,000 bytes"),
]


@pytest.mark.parametrize(("declared", "number", "read"), READ)
def test_what_is_declared_is_told(declared: dict[str, Any], number: int | None, read: str) -> None:
    """The number where it is known before planning, and what there is a shard for."""
    sharding = SHARDING.validate_python(declared)
    assert (sharding.number, str(sharding)) == (number, read)


@pytest.mark.parametrize("salt", ["a b", "a,b", "é", "x" * 61])
def test_a_salt_is_part_of_keys_that_people_type(salt: str) -> None:
    """So it has no space, comma or odd character, and is short."""
    with pytest.raises(ValidationError):
        SHARDING.validate_python({"kind": "buckets", "count": 2, "salt": salt})


def test_of_many_names_some_are_told() -> None:
    """Ten, and how many more there are."""
    assert some_of([str(number) for number in range(10)]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert some_of([str(number) for number in range(1_011)], "; ").endswith("; 9; and 1,001 more")
