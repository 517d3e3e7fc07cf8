"""Expectations: what an answer of the library is worth, and what of it blocks a review."""

from typing import Any

import pytest

from sluice.checks.expectations import Answer, blocks, found, not_checked, told_apart
from sluice.checks.policy import judge
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.quality import ExpectationResult, Met, Offender, OnFailure, Quality, SuiteExpectation
from sluice.model.review import Figures
from sluice.model.spec import ReviewPolicy
from tests.support.nouns import a_run

BETWEEN = SuiteExpectation(type="expect_column_values_to_be_between", kwargs={"column": "stars", "max_value": 5})
MEAN = SuiteExpectation(type="expect_column_mean_to_be_between", kwargs={"column": "stars", "max_value": 5})
ROWS = SuiteExpectation(type="expect_table_row_count_to_equal", kwargs={"value": 0})
THERE = SuiteExpectation(type="expect_column_to_exist", kwargs={"column": "stars"})
CITIES = SuiteExpectation(type="expect_column_distinct_values_to_equal_set", kwargs={"column": "city", "value_set": ["Rome"]})
COUNTS = {"element_count": 10, "missing_count": 2, "unexpected_count": 1}


@pytest.mark.parametrize(
    ("expectation", "success", "figures", "rows", "expected"),
    [
        (BETWEEN, True, COUNTS, 10, (Met.PASSED, None)),
        (BETWEEN, False, COUNTS, 10, (Met.FAILED, None)),
        (BETWEEN, True, COUNTS | {"missing_count": 10}, 10, (Met.NOT_CHECKED, "no row has a value that could be checked")),
        (
            BETWEEN,
            True,
            COUNTS | {"element_count": 0, "missing_count": 0},
            0,
            (Met.NOT_CHECKED, "the table would hold no rows"),
        ),
        (MEAN, True, {"observed_value": 3.5}, 10, (Met.PASSED, None)),
        (MEAN, True, {"observed_value": 0}, 10, (Met.PASSED, None)),
        (MEAN, False, {"observed_value": None}, 10, (Met.NOT_CHECKED, "there was nothing to observe")),
        (MEAN, True, {"observed_value": [], "unexpected_count": 0}, 10, (Met.NOT_CHECKED, "there was nothing to observe")),
        (MEAN, True, {}, 10, (Met.NOT_CHECKED, "there was nothing to observe")),
        (ROWS, True, {"observed_value": 0}, 0, (Met.PASSED, None)),
        (THERE, True, {}, 10, (Met.PASSED, None)),
        (THERE, False, {}, 10, (Met.FAILED, None)),
        (CITIES, True, {"observed_value": None, "missing_count": 0}, 10, (Met.PASSED, None)),
        (CITIES, False, {"observed_value": None, "missing_count": 2}, 10, (Met.FAILED, None)),
        (CITIES, True, {"observed_value": None, "unexpected_count": 0}, 10, (Met.NOT_CHECKED, "there was nothing to observe")),
    ],
)
def test_what_was_held_against_nothing_has_not_been_checked(
    expectation: SuiteExpectation, success: bool, figures: dict[str, Any], rows: int, expected: tuple[Met, str | None]
) -> None:
    """Whatever the library calls it."""
    result = found(expectation, Answer(success=success, figures=figures), rows)
    assert (result.met, result.why) == expected


def test_what_raised_has_not_been_checked() -> None:
    """Nor is it asked whether it succeeded."""
    result = found(BETWEEN, Answer(success=True, figures=COUNTS, trouble="there is no such column"), 10)
    assert (result.met, result.why, result.unexpected) == (Met.NOT_CHECKED, "there is no such column", None)


def test_values_that_are_compared_with_a_set_are_no_rows() -> None:
    """How many are missing, and how many are others, is what was observed."""
    result = found(CITIES, Answer(success=False, figures={"missing_count": 2, "unexpected_count": 1_000}), 10)
    assert (result.evaluated, result.unexpected) == (None, None)
    (reason,) = blocks(Quality(suite="hotels", rows=10, results=(result,)))
    assert reason.endswith("is not met: found 2 values missing, 1,000 that are not in the set")


def test_long_words_are_cut() -> None:
    """Parameters and what was observed are of any size."""
    wide = SuiteExpectation(type=MEAN.type, kwargs={"column": "stars", "value_set": ["x" * 1000]})
    result = found(wide, Answer(success=True, figures={"observed_value": ["y" * 1000]}), 10)
    assert len(result.kwargs) == len(str(result.observed)) == 200


def test_a_query_that_finds_others_than_the_library_has_told_nothing_apart() -> None:
    """Then nobody knows who does not meet it, and nobody is rejected."""
    failed = found(BETWEEN, Answer(success=False, figures=COUNTS), 10)
    samples = (Offender(value="6"),)
    same = told_apart(BETWEEN, failed, offenders=1, arriving=0, samples=samples)
    assert (same.met, same.arriving, same.staying, same.samples) == (Met.FAILED, 0, 1, samples)
    other = told_apart(BETWEEN, failed, offenders=2, arriving=1, samples=samples)
    assert (other.met, other.why) == (
        Met.NOT_CHECKED,
        "the library says that 1 rows do not meet it, and a query finds 2",
    )


def failing(on_failure: OnFailure, **changes: Any) -> ExpectationResult:
    """Return a result of an expectation that is not met."""
    expectation = BETWEEN.model_copy(update={"on_failure": on_failure})
    return found(expectation, Answer(success=False, figures=COUNTS), 10).model_copy(update=changes)


@pytest.mark.parametrize(
    ("result", "reasons"),
    [
        (failing(OnFailure.WARN), 0),
        (not_checked(BETWEEN.model_copy(update={"on_failure": OnFailure.WARN}), "why"), 0),
        (failing(OnFailure.BLOCK), 1),
        (not_checked(BETWEEN, "why"), 1),
        (failing(OnFailure.REJECT, arriving=0), 0),
        (failing(OnFailure.REJECT, arriving=1, rejected=4), 1),
        (not_checked(BETWEEN.model_copy(update={"on_failure": OnFailure.REJECT}), "why"), 1),
        (failing(OnFailure.BLOCK, met=Met.PASSED), 0),
    ],
)
def test_only_what_warns_or_is_nobody_s_fault_blocks_not(result: ExpectationResult, reasons: int) -> None:
    """Rows that stay offend no run; what could not be checked has passed for nobody."""
    quality = Quality(suite="hotels", rows=10, results=(result,))
    figures = Figures(seen=10, unchanged=9, live_before=10, outcomes={Outcome.CHANGED: 1})
    judgement = judge(ReviewPolicy(), figures, a_run(), quality=quality)
    assert len(blocks(quality)) == len(judgement.reasons) == reasons
    assert judgement.verdict is (Verdict.BLOCKED if reasons else Verdict.AUTO_APPROVED)


def test_a_reason_says_how_many_of_how_many_and_some_of_them() -> None:
    """The first few, with what they have."""
    samples = tuple(Offender(key=key, value=value) for key, value in (("a", "6"), ("b", None), (None, "7"), ("d", "8")))
    (reason,) = blocks(Quality(suite="hotels", rows=10, results=(failing(OnFailure.BLOCK, samples=samples),)))
    assert reason == (
        "expect_column_values_to_be_between(stars) is not met: 1 of 8 rows (12.5%) do not, for example '6' of a; null of b; "
        "'7' of a row that stays"
    )


def test_a_suite_that_was_not_run_blocks_only_where_it_should_have_been() -> None:
    """There was nothing to publish; or there was, and nobody has looked."""
    assert blocks(None) == blocks(Quality(suite="hotels", not_run="nothing would change")) == ()
    assert blocks(Quality(suite="hotels", trouble="no file")) == ("suite hotels could not be run: no file",)


def test_findings_have_a_digest_that_cost_and_samples_do_not_change() -> None:
    """Of the same rows they are the same, however long it took; any other finding is another."""
    quality = Quality(suite="hotels", rows=10, results=(failing(OnFailure.WARN),), seconds=1)
    dearer = {"seconds": 9.0, "import_seconds": 5.0, "engine": "Great Expectations 2"}
    assert quality.model_copy(update=dearer).digest == quality.digest
    sampled = failing(OnFailure.WARN, samples=(Offender(value="6"),), observed="1")
    assert quality.model_copy(update={"results": (sampled,)}).digest == quality.digest
    others = [
        failing(OnFailure.WARN, **changes)
        for changes in ({"unexpected": 2}, {"met": Met.PASSED}, {"evaluated": 9}, {"rejected": 1})
    ]
    for other in (*others, failing(OnFailure.BLOCK)):
        assert quality.model_copy(update={"results": (other,)}).digest != quality.digest
    assert quality.model_copy(update={"rows": 11}).digest != quality.digest
