"""The geometry of small charts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.model.base import ShardKey
from sluice.model.evidence import Bin, FieldKind, FieldProfile, Profile, ShardCount
from sluice.packet.charts import HEIGHT, MOST_CATEGORIES, WIDTH, categories, histogram, history

counts = st.lists(st.integers(0, 10**12), min_size=1, max_size=10)


def bins(rows: list[int]) -> list[Bin]:
    """Return bins with so many rows."""
    return [Bin(low=place, high=place + 1, rows=count) for place, count in enumerate(rows)]


@given(counts, st.data())
def test_bars_stay_within_their_frame(now: list[int], data: st.DataObject) -> None:
    """Side by side, none over another, the highest as high as the frame."""
    before = data.draw(st.lists(st.integers(0, 10**12), min_size=len(now), max_size=len(now)))
    drawn = histogram(bins(now), bins(before), str)
    assert drawn is not None
    bars = sorted((*drawn.before, *drawn.now), key=lambda bar: bar.at)
    for left, right in pairwise(bars):
        assert left.at + left.width <= right.at + 1e-9
    assert bars[0].at >= 0
    assert bars[-1].at + bars[-1].width <= WIDTH
    assert max(bar.size for bar in bars) == pytest.approx(HEIGHT if any((*now, *before)) else 0)


def test_the_words_of_a_histogram_hold_its_shares() -> None:
    """Whoever does not see it is told as much."""
    drawn = histogram(bins([1, 3]), bins([2, 2]), str)
    assert drawn is not None
    assert drawn.words == "0.0 to 1.0: 50.0% before, 25.0% now; 1.0 to 2.0: 50.0% before, 75.0% now"


def test_histograms_over_different_bins_are_not_laid_over_each_other() -> None:
    """Neither are those without a bin."""
    assert histogram(bins([1, 2]), bins([1]), str) is None
    assert histogram([], [], str) is None


def test_categories_are_those_of_both_sides_the_largest_first() -> None:
    """A value that is not among the most frequent ones of a side has no share there: it is not known."""

    def field(**rows: int) -> FieldProfile:
        return FieldProfile(field="f", kind=FieldKind.CATEGORY, nulls=0, distinct=2, categories=rows)

    profile = Profile(rows=100, looked_at=100, fields=())
    drawn = categories(field(a=10, b=40), profile, field(a=90), profile)
    assert [(each.value, each.before, each.now, each.before_words) for each in drawn] == [
        ("a", 0.9, 0.1, "90.0%"),
        ("b", None, 0.4, "–"),  # noqa: RUF001 - a dash for people
    ]
    many = field(**{f"v{number}": number for number in range(30)})
    assert len(categories(many, profile, None, None)) == MOST_CATEGORIES


def test_the_history_of_a_shard_runs_from_the_oldest_to_now() -> None:
    """Heights are of the highest; one that never delivered anything is flat."""
    drawn = history(ShardCount(shard=ShardKey("a"), objects=5, before=(10, 0)))
    assert (drawn.heights, drawn.median, drawn.words) == ((0.0, 1.0, 0.5), 5, "0, 10, 5")
    assert history(ShardCount(shard=ShardKey("a"), objects=0, before=())).heights == (0.0,)
