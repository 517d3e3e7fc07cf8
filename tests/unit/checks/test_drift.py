"""Drift: how far two profiles are apart, and what makes no difference."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.checks.drift import FEWEST_ROWS, drifts_between
from sluice.model.evidence import Bin, FieldKind, FieldProfile, Measure, Profile

ROWS = 1_000
FIELDS = (FieldProfile(field="price", kind=FieldKind.CATEGORY, nulls=0, distinct=1, categories={"a": ROWS}),)
TEN = st.lists(st.integers(0, 500), min_size=10, max_size=10).filter(lambda counts: sum(counts) >= FEWEST_ROWS)
NAMES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 500), min_size=1).filter(
    lambda counts: sum(counts.values()) >= FEWEST_ROWS
)


def number(counts: list[int], *, nulls: int = 0, own: list[int] | None = None) -> Profile:
    """A profile of one field of numbers, with so many rows in each bin of its baseline's deciles, and of its own."""
    field = FieldProfile(
        field="price",
        kind=FieldKind.NUMBER,
        nulls=nulls,
        distinct=len(counts),
        histogram=bins(counts),
        deciles=bins(own or counts),
    )
    return Profile(rows=sum(counts) + nulls, looked_at=sum(counts) + nulls, fields=(field,))


def bins(counts: list[int]) -> tuple[Bin, ...]:
    """Bins of the same edges, whatever is in them."""
    return tuple(Bin(low=place, high=place + 1, rows=rows) for place, rows in enumerate(counts))


def category(counts: dict[str, int], *, nulls: int = 0, others: int = 0, kind: FieldKind = FieldKind.CATEGORY) -> Profile:
    """A profile of one field of categories, so many rows of others beside those that are counted."""
    rows = sum(counts.values()) + nulls + others
    field = FieldProfile(field="city", kind=kind, nulls=nulls, distinct=len(counts), categories=counts)
    return Profile(rows=rows, looked_at=rows, fields=(field,))


def drift(new: Profile, old: Profile) -> float:
    """How far the one field has come."""
    (found,) = drifts_between(new, old)
    return found.value


def test_the_stability_index_of_a_known_shift() -> None:
    """A tenth of all rows goes from one of two halves to the other: 2 * 0.1 * ln(0.6 / 0.4)."""
    (found,) = drifts_between(number([600, 400]), number([500, 500]))
    assert found.measure is Measure.STABILITY_INDEX
    assert found.value == pytest.approx(0.1 * log(0.6 / 0.5) - 0.1 * log(0.4 / 0.5), abs=1e-6)


def test_a_share_of_nothing_counts_as_one_in_ten_thousand() -> None:
    """Else the index would be infinite."""
    assert drift(number([ROWS, 0]), number([0, ROWS])) == pytest.approx(2 * (1 - 1e-4) * log(1e4), abs=1e-5)


@given(TEN, st.integers(0, 100))
def test_numbers_do_not_drift_from_themselves(counts: list[int], nulls: int) -> None:
    """The same shares give nothing, however many rows there are."""
    profile = number(counts, nulls=nulls)
    assert drift(profile, profile) == 0
    assert drift(number([3 * rows for rows in counts], nulls=3 * nulls), profile) == pytest.approx(0, abs=1e-6)


@given(TEN, TEN)
def test_the_stability_index_is_the_same_both_ways(one: list[int], other: list[int]) -> None:
    """It is never negative, and knows no direction."""
    there, back = drift(number(one), number(other)), drift(number(other), number(one))
    assert there == pytest.approx(back, abs=1e-5)
    assert there >= 0


def test_a_field_that_was_null_throughout_and_has_one_value_now() -> None:
    """It had no bins, so the share of nulls alone is compared; and the other way round."""
    null, one = number([], nulls=ROWS), number([ROWS])
    for there, back in ((null, one), (one, null)):
        (found,) = drifts_between(there, back)
        assert (found.measure, found.value) == (Measure.FREQUENCY_SHIFT, 1)


@given(NAMES, NAMES)
def test_the_frequency_shift_is_a_distance(one: dict[str, int], other: dict[str, int]) -> None:
    """From 0 to 1, the same both ways, and 0 only for the same shares."""
    there, back = drift(category(one), category(other)), drift(category(other), category(one))
    assert there == pytest.approx(back, abs=1e-5)
    assert 0 <= there <= 1
    assert drift(category(one), category(one)) == 0
    if not set(one) & set(other):
        assert there == 1


def test_what_is_new_counts_whether_or_not_the_baseline_knew_all_its_values() -> None:
    """Either by its name, or among the rest."""
    assert drift(category({"a": 700, "b": 300}), category({"a": ROWS})) == pytest.approx(0.3)
    assert drift(category({"a": 400, "b": 300}, others=300), category({"a": 700}, others=300)) == pytest.approx(0.3)


def test_a_value_that_is_not_among_the_frequent_any_more_is_still_compared() -> None:
    """A profile counts what was frequent in its baseline; a value it does not name has no rows."""
    assert drift(category({"b": ROWS}), category({"a": ROWS})) == 1


@pytest.mark.parametrize("kind", [FieldKind.CATEGORY, FieldKind.OTHER])
def test_nulls_shift_like_a_value(kind: FieldKind) -> None:
    """Of fields with many values, too: nothing else is compared of them."""
    new = category({}, nulls=900, others=100, kind=kind)
    assert drift(new, category({}, nulls=400, others=600, kind=kind)) == pytest.approx(0.5)


def test_numbers_that_are_gone_drift() -> None:
    """Nulls are a bin of their own."""
    assert drift(number([50] * 10, nulls=500), number([100] * 10)) > 1


def test_other_bins_are_not_compared() -> None:
    """Nor are other kinds; what is left is the share of nulls."""
    (found,) = drifts_between(number([500, 500]), number([200] * 5))
    assert (found.measure, found.value) == (Measure.FREQUENCY_SHIFT, 0)
    (found,) = drifts_between(number([250, 250], nulls=500), category({"a": ROWS}).model_copy(update={"fields": FIELDS}))
    assert (found.measure, found.value) == (Measure.FREQUENCY_SHIFT, 0.5)


def test_few_rows_tell_nothing() -> None:
    """Neither do a field that is new, nor a profile without a baseline."""
    few = category({"a": FEWEST_ROWS - 1})
    assert drifts_between(category({"b": ROWS}), few) == drifts_between(few, category({"b": ROWS})) == ()
    assert drifts_between(number([ROWS]), category({"a": ROWS})) == ()
    assert drifts_between(number([ROWS]), None) == ()


def test_the_furthest_comes_first() -> None:
    """Fields are ordered by how far they have come, then by name."""
    fields = {name: category({"a": 1000 - shift, "b": shift}) for name, shift in (("x", 0), ("z", 300), ("y", 300))}

    def together(profiles: dict[str, Profile]) -> Profile:
        parts = tuple(profile.fields[0].model_copy(update={"field": name}) for name, profile in profiles.items())
        return Profile(rows=ROWS, looked_at=ROWS, fields=parts)

    found = drifts_between(together(fields), together(dict.fromkeys(fields, category({"a": ROWS}))))
    assert [(one.field, one.value) for one in found] == [("y", 0.3), ("z", 0.3), ("x", 0)]
