"""How far data has come from the last publication: two profiles in, drifts out. The measures are told in `model.evidence`."""

from collections.abc import Iterable
from math import log
from typing import Final

from sluice.model.evidence import Bin, Drift, FieldKind, FieldProfile, Measure, Profile

FEWEST_ROWS: Final = 100
"""Of fewer rows shares say little: chance alone makes an index of ten bins exceed 0.25 below some 70 rows."""

_NOTHING: Final = 1e-4
"""What a share of nothing counts as, since its logarithm does not exist."""
_DIGITS: Final = 6

Counts = Iterable[tuple[int, int]]
"""How many rows the same values have in one profile, and in the other."""


def drifts_between(profile: Profile, baseline: Profile | None) -> tuple[Drift, ...]:
    """Return how far each field that both have is from the baseline, the furthest first; none where either has few rows."""
    if baseline is None or min(profile.looked_at, baseline.looked_at) < FEWEST_ROWS:
        return ()
    before = {field.field: field for field in baseline.fields}
    found = [
        _drift(field, profile.looked_at, before[field.field], baseline.looked_at)
        for field in profile.fields
        if field.field in before
    ]
    return tuple(sorted(found, key=lambda drift: (-drift.value, drift.field)))


def _drift(new: FieldProfile, new_rows: int, old: FieldProfile, old_rows: int) -> Drift:
    nulls = (new.nulls, old.nulls)
    if new.kind is old.kind is FieldKind.NUMBER and _are_alike(new.histogram, old.deciles):
        bins = zip((bin_.rows for bin_ in new.histogram), (bin_.rows for bin_ in old.deciles), strict=True)
        measure, value = Measure.STABILITY_INDEX, _stability_index([*bins, nulls], new_rows, old_rows)
    else:
        is_counted = new.kind is old.kind is FieldKind.CATEGORY
        named = list(_values(new, old, old_rows)) if is_counted else []
        rest = (new_rows - sum(rows for rows, _ in named) - new.nulls, old_rows - sum(rows for _, rows in named) - old.nulls)
        measure, value = Measure.FREQUENCY_SHIFT, _frequency_shift([*named, nulls, rest], new_rows, old_rows)
    return Drift(field=new.field, measure=measure, value=round(value, _DIGITS))


def _are_alike(new: tuple[Bin, ...], old: tuple[Bin, ...]) -> bool:
    """Whether two histograms have the same bins; the outermost edges do not count, since all beyond them does as well.

    A field that was null throughout has no bins, and cannot be laid beside one that has values.
    """
    return len(new) == len(old) and [bin_.low for bin_ in new[1:]] == [bin_.low for bin_ in old[1:]]


def _values(new: FieldProfile, old: FieldProfile, old_rows: int) -> Counts:
    """Yield the counts of values that are known in both; of a new one only where the baseline has counted all of its own."""
    names = set(old.frequent)
    if sum(old.frequent.values()) + old.nulls == old_rows:
        names |= set(new.categories)
    for name in sorted(names):
        yield new.categories.get(name, 0), old.categories.get(name, 0)


def _stability_index(counts: Counts, new_rows: int, old_rows: int) -> float:
    shares = [(max(new / new_rows, _NOTHING), max(old / old_rows, _NOTHING)) for new, old in counts]
    return sum((new - old) * log(new / old) for new, old in shares)


def _frequency_shift(counts: Counts, new_rows: int, old_rows: int) -> float:
    return sum(abs(new / new_rows - old / old_rows) for new, old in counts) / 2
