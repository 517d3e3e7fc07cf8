"""Buckets: each value has one, all have their share, and another number of them moves as little as it can."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.mapping.buckets import bucket_of, jump

VALUES = [f"hotel-{number}" for number in range(20_000)]
COUNTS = st.integers(min_value=1, max_value=10_000)


@pytest.mark.parametrize(
    ("value", "buckets", "salt", "bucket"),
    [("hotel-1", 16, "", 1), ("hotel-1", 16, "x", 9), ("hotel-1", 10_000, "", 7835), ("Zürich", 7, "", 2), ("", 3, "", 2)],
)
def test_the_bucket_of_a_value_never_changes(value: str, buckets: int, salt: str, bucket: int) -> None:
    """Watermarks and checkpoints belong to buckets, so a release that spread values another way would lose objects."""
    assert bucket_of(value, buckets, salt) == bucket


@given(st.text(), COUNTS, st.text())
def test_every_value_has_a_bucket(value: str, buckets: int, salt: str) -> None:
    """Whatever the value is, and whatever the salt."""
    assert 0 <= bucket_of(value, buckets, salt) < buckets


@given(st.integers(min_value=0, max_value=2**64 - 1), st.integers(min_value=1, max_value=2_000))
def test_with_one_bucket_more_a_value_stays_or_moves_to_the_new_one(number: int, buckets: int) -> None:
    """No value ever moves between two buckets that were there before."""
    before, after = jump(number, buckets), jump(number, buckets + 1)
    assert after in (before, buckets)


@pytest.mark.parametrize("buckets", [2, 7, 16, 100])
def test_each_bucket_has_its_share(buckets: int) -> None:
    """The number of values of a bucket is within six standard deviations of what chance gives it."""
    share = len(VALUES) / buckets
    counts = Counter(bucket_of(value, buckets) for value in VALUES)
    assert set(counts) == set(range(buckets))
    assert all(abs(count - share) < 6 * share**0.5 for count in counts.values())


@pytest.mark.parametrize("buckets", [1, 9, 40])
def test_a_new_bucket_takes_no_more_than_its_share(buckets: int) -> None:
    """From n to n+1 buckets about one value in n+1 moves."""
    moved = sum(bucket_of(value, buckets) != bucket_of(value, buckets + 1) for value in VALUES)
    share = len(VALUES) / (buckets + 1)
    assert abs(moved - share) < 6 * share**0.5


def test_another_salt_spreads_the_values_another_way() -> None:
    """Two syncs over the same keys need not have the same hot shard."""
    same = sum(bucket_of(value, 16) == bucket_of(value, 16, "another") for value in VALUES)
    assert abs(same - len(VALUES) / 16) < 6 * (len(VALUES) / 16) ** 0.5
