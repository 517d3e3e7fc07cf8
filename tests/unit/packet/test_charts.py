"""The geometry of small charts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.model.base import ShardKey
from sluice.model.evidence import Bin, FieldKind, FieldProfile, ShardCount
from sluice.packet.charts import HEIGHT, MOST_CATEGORIES, WIDTH, Counted, categories, histogram, history, nulls, others

numbers = st.lists(st.integers(0, 10**12), min_size=1, max_size=10)


def binned(*rows: int, nulls: int = 0) -> Counted:
    """Return a profile with so many rows in each bin, the same on either side."""
    bins = tuple(Bin(low=place, high=place + 1, rows=count) for place, count in enumerate(rows))
    profile = FieldProfile(field="f", kind=FieldKind.NUMBER, nulls=nulls, distinct=9, histogram=bins, deciles=bins)
    return Counted(profile, max(sum(rows) + nulls, 1))


def valued(rows: int, nulls: int = 0, **categories: int) -> Counted:
    """Return a profile with so many rows of each value."""
    field = FieldProfile(field="f", kind=FieldKind.CATEGORY, nulls=nulls, distinct=9, categories=categories)
    return Counted(field, rows)


@given(numbers, st.data())
def test_bars_stay_within_their_frame(now: list[int], data: st.DataObject) -> None:
    """Side by side, none over another, the highest as high as the frame."""
    before = data.draw(st.lists(st.integers(0, 10**12), min_size=len(now), max_size=len(now)))
    drawn = histogram(binned(*now), binned(*before), str)
    assert drawn is not None
    bars = sorted((*drawn.before, *drawn.now), key=lambda bar: bar.at)
    for left, right in pairwise(bars):
        assert left.at + left.width <= right.at + 1e-9
    assert bars[0].at >= 0
    assert bars[-1].at + bars[-1].width <= WIDTH
    assert max(bar.size for bar in bars) == pytest.approx(HEIGHT if any((*now, *before)) else 0)


def test_the_words_of_a_histogram_hold_its_shares() -> None:
    """Whoever does not see it is told as much; null rows count."""
    drawn = histogram(binned(1, 2, nulls=1), binned(2, 2), str)
    assert drawn is not None
    assert drawn.words == "0.0 to 1.0: 50.0% before, 25.0% now; 1.0 to 2.0: 50.0% before, 50.0% now"


def test_histograms_over_different_bins_are_not_laid_over_each_other() -> None:
    """Neither are those without a bin."""
    assert histogram(binned(1, 2), binned(1), str) is None
    assert histogram(binned(), binned(), str) is None
    assert histogram(binned(3), binned(nulls=3), str) is None
    assert histogram(binned(nulls=3), binned(3), str) is None


def test_categories_are_those_of_both_sides_the_largest_first() -> None:
    """A value that is not among the most frequent ones of a side has no share there: it is not known."""
    now, before = valued(100, a=10, b=40, nulls=5), valued(100, a=90)
    drawn = categories(now, before)
    assert [(each.value, each.before, each.now, each.before_words) for each in drawn] == [
        ("a", 0.9, 0.1, "90.0%"),
        ("b", None, 0.4, "–"),  # noqa: RUF001 - a dash for people
    ]
    rest = others(drawn, now, before)
    assert (rest.before, rest.now) == (0.1, 0.45)
    assert nulls(now, before).now == 0.05
    many = valued(1000, **{f"v{number}": number for number in range(30)})
    assert len(categories(many, many)) == MOST_CATEGORIES


def test_the_history_of_a_shard_runs_from_the_oldest_to_now() -> None:
    """Heights are of the highest; one that never delivered anything is flat."""
    drawn = history(ShardCount(shard=ShardKey("a"), objects=5, before=(10, 0)))
    assert (drawn.heights, drawn.usual, drawn.words) == ((0.0, 1.0, 0.5), "5", "0, 10, 5")
    assert history(ShardCount(shard=ShardKey("a"), objects=0, before=())).heights == (0.0,)
    assert history(ShardCount(shard=ShardKey("a"), objects=0, before=(1000, 1001))).usual == "1,000.5"
