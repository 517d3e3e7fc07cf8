"""Numbers in, the geometry of small charts out; the templates turn it into SVG, without a script or a style attribute."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from sluice.model.evidence import Bin, FieldProfile, Profile, ShardCount
from sluice.packet.words import share

WIDTH: Final = 460.0
HEIGHT: Final = 110.0
"""The inner size of a histogram, in the units of its view box."""
_GAP: Final = 0.12
"""The part of a bin's place that stays free."""
_LABELS: Final = 4
"""Edges of a histogram that are written below it, at most."""
MOST_CATEGORIES: Final = 12


@dataclass(frozen=True)
class Bar:
    """A bar from the bottom up, or from the left, `size` long."""

    at: float
    size: float
    width: float


@dataclass(frozen=True)
class Histogram:
    """Two distributions over the same bins: what the last publication left, and what the table would hold."""

    before: tuple[Bar, ...]
    now: tuple[Bar, ...]
    edges: tuple[tuple[float, str], ...]
    """(place, text): some of the bins' edges."""
    words: str
    """The same for those who do not see it."""


@dataclass(frozen=True)
class Category:
    """One value and its share of the rows, before and now, from 0 to 1; None: not among the most frequent ones then."""

    value: str
    before: float | None
    now: float | None
    before_words: str
    now_words: str


@dataclass(frozen=True)
class History:
    """What a shard delivered, the oldest first and now last, as heights from 0 to 1."""

    heights: tuple[float, ...]
    median: float | None
    words: str


def histogram(now: Sequence[Bin], before: Sequence[Bin], spell: Callable[[float], str]) -> Histogram | None:
    """Lay out two histograms over the same bins, each bin as wide as the next; None if their bins differ, or there are none.

    Bins are often deciles, of most different spans: to scale, the narrow ones would be needles.
    """
    if not now or (before and [(b.low, b.high) for b in before] != [(b.low, b.high) for b in now]):
        return None
    then, today = _shares(before), _shares(now)
    highest = max((*then, *today)) or 1.0
    place = WIDTH / len(now)
    width = place * (1 - _GAP) / 2
    edges = [now[0].low, *(each.high for each in now)]
    step = max(1, -(-len(now) // _LABELS))
    spans = (f"{spell(each.low)} to {spell(each.high)}" for each in now)
    was = [f"{each:.1%} before, " for each in then] or [""] * len(now)
    return Histogram(
        before=tuple(Bar(place * (i + _GAP / 2), HEIGHT * each / highest, width) for i, each in enumerate(then)),
        now=tuple(Bar(place * (i + _GAP / 2) + width, HEIGHT * each / highest, width) for i, each in enumerate(today)),
        edges=tuple((place * i, spell(edges[i])) for i in range(0, len(edges), step)),
        words="; ".join(f"{span}: {old}{new:.1%} now" for span, old, new in zip(spans, was, today, strict=True)),
    )


def categories(now: FieldProfile, profile: Profile, before: FieldProfile | None, baseline: Profile | None) -> list[Category]:
    """Lay out the most frequent values of a field, those of either profile, the largest share first."""
    old = {} if before is None else before.categories
    rows, old_rows = profile.looked_at, baseline.looked_at if baseline else 0
    known = sorted({*now.categories, *old}, key=lambda value: (-_largest(value, now, rows, old, old_rows), value))
    return [
        Category(
            value=value,
            before=_part(old.get(value), old_rows),
            now=_part(now.categories.get(value), rows),
            before_words=_part_words(old.get(value), old_rows),
            now_words=_part_words(now.categories.get(value), rows),
        )
        for value in known[:MOST_CATEGORIES]
    ]


def history(shard: ShardCount) -> History:
    """Lay out what a shard delivered over its last runs."""
    counts = (*reversed(shard.before), shard.objects)
    highest = max(counts) or 1
    middle = median(shard.before) if shard.before else None
    return History(
        heights=tuple(count / highest for count in counts),
        median=middle,
        words=", ".join(f"{count:,}" for count in counts),
    )


def _shares(bins: Sequence[Bin]) -> list[float]:
    rows = sum(each.rows for each in bins) or 1
    return [each.rows / rows for each in bins]


def _part(rows: int | None, of: int) -> float | None:
    return None if rows is None else rows / max(of, 1)


def _part_words(rows: int | None, of: int) -> str:
    return "–" if rows is None else share(rows, of)  # noqa: RUF001 - a dash for people


def _largest(value: str, now: FieldProfile, rows: int, old: dict[str, int], old_rows: int) -> float:
    return max(now.categories.get(value, 0) / max(rows, 1), old.get(value, 0) / max(old_rows, 1))
