"""Values as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.model.evidence import LONGEST_VALUE
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.packet.words import MEANINGS, VERDICTS, edge, marked, share, spelled

anything = st.text(st.characters(codec=None))


@given(anything)
def test_nothing_acts_unseen(text: str) -> None:
    """Whatever comes in, only what can be seen comes out, storable and bounded."""
    shown = spelled(text)
    assert shown.isprintable()
    assert len(shown.encode()) <= 10 * (LONGEST_VALUE + 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Hôtel 東京", "Hôtel 東京"),
        ("a\u202eb", r"a\u202eb"),
        ("a\x00", r"a\x00"),
        ("a\nb", r"a\nb"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_acts_is_spelled_out(text: str, shown: str) -> None:
    """Letters of all languages stay; what steers the page becomes its number."""
    assert spelled(text) == shown


@given(anything, anything)
def test_marking_loses_nothing(one: str, other: str) -> None:
    """The three parts are the value, and the outer two stand in both."""
    mine, yours = marked(one, other), marked(other, one)
    assert "".join(mine) == spelled(one)
    assert (mine.head, mine.tail) == (yours.head, yours.tail)


def test_the_middle_is_what_differs() -> None:
    """Equal values have none."""
    assert marked("10.50", "12.50") == ("1", "0", ".50")
    assert marked("aa", "a") == ("a", "a", "")
    assert marked("same", "same") == ("same", "", "")


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_share_never_hides_anything(part: int, whole: int) -> None:
    """Only nothing reads as nothing, and only all as all."""
    part = min(part, whole)
    assert (share(part, whole) == "0%") == (part == 0)
    assert (share(part, whole) == "100%") == (part == whole)


@pytest.mark.parametrize(
    ("number", "of_time", "shown"),
    [
        (0.5, False, "0.5"),
        (1767225600.0, True, "2026-01-01 00:00"),
        (1e300, True, "1e+300"),
        (float("nan"), True, "nan"),
        (float("inf"), True, "inf"),
        (-62135596800.0, True, "1-01-01 00:00"),
    ],
)
def test_the_edge_of_a_bin(number: float, *, of_time: bool, shown: str) -> None:
    """Times read as times, as far as there is a calendar."""
    assert edge(number, of_time=of_time).lstrip("0") == shown.lstrip("0")


def test_each_outcome_and_each_verdict_of_policy_has_a_meaning() -> None:
    """None is left to be guessed."""
    assert set(MEANINGS) == set(Outcome)
    assert {Verdict.AUTO_APPROVED, Verdict.NEEDS_HUMAN, Verdict.BLOCKED} <= set(VERDICTS)
