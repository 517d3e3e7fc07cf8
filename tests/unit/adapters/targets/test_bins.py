"""The bins of histograms: whatever the numbers are, each has one bin, and the same bins compare two profiles."""

from bisect import bisect_right
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.targets.bins import LARGEST, Edges, edges_over, own_edges
from sluice.model.evidence import Bin

NUMBERS = st.lists(st.floats(-LARGEST, LARGEST) | st.integers(0, 3).map(float), min_size=1, max_size=60).map(sorted)


def deciles(numbers: list[float]) -> list[float]:
    """The values at the nine tenths, as the database finds them."""
    return [numbers[max(0, -(-len(numbers) * tenth // 10) - 1)] for tenth in range(1, 10)]


def counted(edges: Edges, numbers: list[float]) -> tuple[Bin, ...]:
    """Fill the bins as `width_bucket` does."""
    rows = [0] * (len(edges.inner) + 1)
    for number in numbers:
        rows[bisect_right(edges.inner, number)] += 1
    return edges.bins(rows)


@given(NUMBERS)
def test_edges_grow(numbers: list[float]) -> None:
    """Bins neither overlap nor have gaps, and the outer edges enclose all that is there."""
    ends = (numbers[0], numbers[-1])
    for edges in (own_edges(ends, deciles(numbers)), edges_over((), ends, deciles(numbers))):
        assert list(edges.inner) == sorted(set(edges.inner))
        bins = counted(edges, numbers)
        assert sum(bin_.rows for bin_ in bins) == len(numbers)
        assert bins[0].low <= ends[0]
        assert bins[-1].high >= ends[1]
        assert all(before.high == after.low for before, after in pairwise(bins))


@given(NUMBERS, NUMBERS)
def test_a_profile_has_the_bins_of_its_baseline(numbers: list[float], later: list[float]) -> None:
    """Whatever its own numbers are; and over them the baseline would count what it has counted."""
    own = own_edges((numbers[0], numbers[-1]), deciles(numbers))
    over = edges_over(counted(own, numbers), (later[0], later[-1]), deciles(later))
    assert over.inner == own.inner
    assert over.low <= later[0]
    assert over.high >= later[-1]


def test_one_value_and_a_higher_one_are_in_different_bins() -> None:
    """And so is a lower one."""
    edges = own_edges((3.0, 3.0), [3.0] * 9)
    assert [bin_.rows for bin_ in counted(edges, [3.0, 3.0, 4.0])] == [0, 2, 1]
    assert [bin_.rows for bin_ in counted(edges, [2.0, 3.0])] == [1, 1, 0]


def test_equal_bins_leave_out_what_is_beyond_all_numbers() -> None:
    """One infinite value would else put all others into one bin."""
    numbers = [*map(float, range(10)), LARGEST]
    edges = edges_over((), (0.0, LARGEST), deciles(numbers))
    assert edges.inner[0] < 1
    assert edges.high == LARGEST
    assert max(bin_.rows for bin_ in counted(edges, numbers)) <= 3
