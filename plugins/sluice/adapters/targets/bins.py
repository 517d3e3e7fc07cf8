"""The bins of a histogram: ends and deciles of a field, or a baseline's bins, come in; edges and counted bins go out."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nextafter
from typing import Final

from sluice.model.evidence import Bin

LARGEST: Final = 1e300
"""What NaN, infinity and all numbers beyond count as."""

_EQUAL_BINS: Final = 10


@dataclass(frozen=True)
class Edges:
    """What bins of numbers are divided by; the outer ones are for people, since the first and the last bin take all beyond."""

    low: float
    inner: tuple[float, ...]
    high: float

    def bins(self, rows: Sequence[int]) -> tuple[Bin, ...]:
        """Return the bins with so many rows each."""
        edges = [self.low, *self.inner, self.high]
        return tuple(
            Bin(low=low, high=high, rows=number) for low, high, number in zip(edges[:-1], edges[1:], rows, strict=True)
        )


def own_edges(ends: tuple[float, float], deciles: Sequence[float]) -> Edges:
    """Return the edges of a field's own deciles.

    Equal deciles make one edge. Where the highest value takes the last tenth alone, what is above it is a bin of its own: else
    a field that has one value today, and a higher one tomorrow, would not have drifted.
    """
    inner = set(deciles)
    if deciles[-1] == ends[1]:
        inner.add(nextafter(ends[1], inf))
    return Edges(ends[0], tuple(sorted(inner)), max(ends[1], *inner))


def edges_over(baseline: Sequence[Bin], ends: tuple[float, float], deciles: Sequence[float]) -> Edges:
    """Return the edges of the baseline's deciles, or of equal bins where there is none."""
    if baseline:
        inner = tuple(bin_.low for bin_ in baseline[1:])
        return Edges(min(baseline[0].low, ends[0]), inner, max(baseline[-1].high, ends[1]))
    low = ends[0] if ends[0] > -LARGEST else deciles[0]
    high = ends[1] if ends[1] < LARGEST else deciles[-1]
    if not low < high:
        return Edges(ends[0], (), ends[1])
    width = high / _EQUAL_BINS - low / _EQUAL_BINS
    inner = tuple(sorted({low + width * place for place in range(1, _EQUAL_BINS)}))
    return Edges(ends[0], inner, ends[1])
