"""What a library says of a suite's expectations in; results, and what of them blocks a review, out.

Whatever was held against nothing has not been checked: it raised, there was no row, none had a value, or nothing was observed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sluice.model.evidence import cut
from sluice.model.quality import ExpectationResult, Met, Offender, OnFailure, Quality, SuiteExpectation

_OF_ROWS: Final = "expect_table_row_count_"
"""Kinds that can be told of a table without rows."""
_SAYS_NO_MORE: Final = "expect_column_to_exist"
"""The kind that tells nothing but whether it is met."""
_COLUMNS: Final = ("column", "column_A", "column_B", "column_list")
_NAMED: Final = 3
"""Offending rows that stand in a reason."""


@dataclass(frozen=True)
class Answer:
    """What the library says of one expectation: whether it is met, and its figures; or why it could not say."""

    success: bool
    figures: Mapping[str, Any] = field(default_factory=dict)
    trouble: str | None = None


def found(expectation: SuiteExpectation, answer: Answer, rows: int) -> ExpectationResult:
    """Return what an answer says of an expectation in a table of so many rows."""
    if answer.trouble is not None:
        return not_checked(expectation, answer.trouble)
    figures = answer.figures
    evaluated = _evaluated(figures)
    observed = figures.get("observed_value")
    if observed is None and evaluated is None:
        observed = _compared(figures)
    counts = {
        "evaluated": evaluated,
        "unexpected": None if evaluated is None else figures.get("unexpected_count"),
        "observed": None if observed is None else cut(_spelled(observed)),
    }
    if not rows and not expectation.type.startswith(_OF_ROWS):
        return not_checked(expectation, "the table would hold no rows")
    if evaluated == 0:
        return not_checked(expectation, "no row has a value that could be checked")
    if evaluated is None and observed in (None, [], {}, "") and expectation.type != _SAYS_NO_MORE:
        return not_checked(expectation, "there was nothing to observe")
    return _result(expectation, Met.PASSED if answer.success else Met.FAILED, counts)


def not_checked(expectation: SuiteExpectation, why: str) -> ExpectationResult:
    """Return the result of an expectation that could not be checked."""
    return _result(expectation, Met.NOT_CHECKED, {"why": why})


def told_apart(
    expectation: SuiteExpectation, result: ExpectationResult, *, offenders: int, arriving: int, samples: tuple[Offender, ...]
) -> ExpectationResult:
    """Return a result with the rows that a query of our own has found, if they are as many as the library says."""
    if offenders != result.unexpected:
        counted = f"{result.unexpected or 0:,} rows do not meet it, and a query finds {offenders:,}"
        return not_checked(expectation, f"the library says that {counted}")
    return result.model_copy(update={"arriving": arriving, "samples": samples})


def blocks(quality: Quality | None) -> tuple[str, ...]:
    """Return what of it blocks the review: what is not met or could not be checked, unless it only warns."""
    if quality is None or quality.not_run is not None:
        return ()
    if quality.trouble is not None:
        return (f"suite {quality.suite} could not be run: {quality.trouble}",)
    return tuple(_reasons(quality.results))


def _reasons(results: Sequence[ExpectationResult]) -> Iterator[str]:
    for result in results:
        if result.on_failure is OnFailure.WARN:
            continue
        if result.met is Met.NOT_CHECKED:
            yield f"{result.label} could not be checked: {result.why}"
        elif result.met is Met.FAILED and result.on_failure is OnFailure.BLOCK:
            yield f"{result.label} is not met: {told(result)}"
        elif result.met is Met.FAILED and result.arriving:
            left = f"{result.arriving:,} that come in still do not"
            yield f"{result.label} is not met: {result.rejected:,} objects were rejected for it, and {left}"


def told(result: ExpectationResult) -> str:
    """Return in words how far an expectation is from being met, and by what, for example."""
    if result.unexpected is None or result.evaluated is None:
        return f"found {result.observed}" if result.observed is not None else "no figures are told"
    share = f"{100 * result.unexpected / max(result.evaluated, 1):.1f}%"
    named = "; ".join(_named(sample) for sample in result.samples[:_NAMED])
    example = f", for example {named}" if named else ""
    return f"{result.unexpected:,} of {result.evaluated:,} rows ({share}) do not{example}"


def _named(sample: Offender) -> str:
    value = "null" if sample.value is None else repr(sample.value)
    return f"{value} of {sample.key}" if sample.key is not None else f"{value} of a row that stays"


def _result(expectation: SuiteExpectation, met: Met, found: Mapping[str, Any]) -> ExpectationResult:
    others = {name: value for name, value in expectation.kwargs.items() if name not in _COLUMNS}
    return ExpectationResult(
        type=expectation.type,
        columns=expectation.columns,
        kwargs=cut(json.dumps(others, ensure_ascii=False, sort_keys=True)) or "",
        on_failure=expectation.on_failure,
        met=met,
        **found,
    )


def _evaluated(figures: Mapping[str, Any]) -> int | None:
    """Return how many rows were held against it; None: it looks at the whole."""
    elements = figures.get("element_count")
    return None if elements is None else int(elements) - int(figures.get("missing_count") or 0)


def _compared(figures: Mapping[str, Any]) -> str | None:
    """Return how the values that are there differ from a set of which none may be missing; None: there is no such set."""
    missing, others = figures.get("missing_count"), figures.get("unexpected_count")
    if missing is None:
        return None
    return f"{missing:,} values missing" + (f", {others:,} that are not in the set" if others is not None else "")


def _spelled(observed: Any) -> str:
    if isinstance(observed, float):
        return f"{observed:.6g}"
    return json.dumps(observed, ensure_ascii=False, default=str) if isinstance(observed, list | dict) else str(observed)
