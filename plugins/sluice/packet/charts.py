"""Numbers in, the geometry of small charts out; the templates turn it into SVG, without a script or a style attribute."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from sluice.model.evidence import Bin, FieldProfile, ShardCount
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
class Counted:
    """A field's profile, and of how many rows it is."""

    field: FieldProfile
    rows: int

    def shares(self, bins: Sequence[Bin]) -> list[float]:
        """Return the shares of the rows, from 0 to 1, that are in these bins."""
        return [each.rows / self.rows for each in bins]


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
    """Some rows with a value in common, and their share, before and now, from 0 to 1; None: it was not counted then."""

    value: str
    before: float | None
    now: float | None
    before_words: str
    now_words: str


@dataclass(frozen=True)
class History:
    """What a shard delivered, the oldest first and now last, as heights from 0 to 1."""

    heights: tuple[float, ...]
    usual: str
    """The median of what it delivered before; empty: that is not known."""
    words: str


def histogram(now: Counted, before: Counted, spell: Callable[[float], str]) -> Histogram | None:
    """Lay out two histograms over the deciles of the one before, each bin as wide as the next; None if the bins differ.

    To scale, the narrow ones of most deciles would be needles. Shares are of all rows, null or not.
    """
    bins, old_bins = now.field.histogram, before.field.deciles
    if not bins or not old_bins or [each.low for each in bins[1:]] != [each.low for each in old_bins[1:]]:
        return None
    then, today = before.shares(old_bins), now.shares(bins)
    highest = max((*then, *today)) or 1.0
    place = WIDTH / len(bins)
    width = place * (1 - _GAP) / 2
    edges = [bins[0].low, *(each.high for each in bins)]
    step = max(1, -(-len(bins) // _LABELS))
    spans = (f"{spell(each.low)} to {spell(each.high)}" for each in bins)
    return Histogram(
        before=tuple(Bar(place * (i + _GAP / 2), HEIGHT * each / highest, width) for i, each in enumerate(then)),
        now=tuple(Bar(place * (i + _GAP / 2) + width, HEIGHT * each / highest, width) for i, each in enumerate(today)),
        edges=tuple((place * i, spell(edges[i])) for i in range(0, len(edges), step)),
        words="; ".join(f"{span}: {old:.1%} before, {new:.1%} now" for span, old, new in zip(spans, then, today, strict=True)),
    )


def categories(now: Counted, before: Counted) -> list[Category]:
    """Lay out the most frequent values of a field, those of either side, the largest share first."""
    new, old = now.field.categories, before.field.categories

    def largest(value: str) -> float:
        return max(new.get(value, 0) / now.rows, old.get(value, 0) / before.rows)

    known = sorted({*new, *old}, key=lambda value: (-largest(value), value))
    return [_category(value, old.get(value), before, new.get(value), now) for value in known[:MOST_CATEGORIES]]


def nulls(now: Counted, before: Counted) -> Category:
    """Lay out how many rows have no value."""
    return _category("", before.field.nulls, before, now.field.nulls, now)


def others(shown: Sequence[Category], now: Counted, before: Counted) -> Category:
    """Lay out how many rows have another value than those shown, and than null."""
    old = sum(before.field.categories.get(each.value, 0) for each in shown)
    new = sum(now.field.categories.get(each.value, 0) for each in shown)
    return _category("", max(before.rows - before.field.nulls - old, 0), before, max(now.rows - now.field.nulls - new, 0), now)


def history(shard: ShardCount) -> History:
    """Lay out what a shard delivered over its last runs."""
    counts = (*reversed(shard.before), shard.objects)
    highest = max(counts) or 1
    return History(
        heights=tuple(count / highest for count in counts),
        usual=f"{median(shard.before):,.1f}".removesuffix(".0") if shard.before else "",
        words=", ".join(f"{count:,}" for count in counts),
    )


def _category(value: str, old: int | None, before: Counted, new: int | None, now: Counted) -> Category:
    return Category(
        value=value,
        before=None if old is None else old / before.rows,
        now=None if new is None else new / now.rows,
        before_words=_words(old, before.rows),
        now_words=_words(new, now.rows),
    )


def _words(rows: int | None, of: int) -> str:
    return "–" if rows is None else share(rows, of)  # noqa: RUF001 - a dash for people
