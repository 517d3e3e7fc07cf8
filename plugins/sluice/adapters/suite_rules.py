"""The expectations of a suite as written, and the types of the table's fields in; the rules that are broken out."""

import re
import warnings
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from sluice.adapters.spec_problems import suggest
from sluice.adapters.yaml_positions import Path, Problem
from sluice.checks.kinds import KINDS
from sluice.checks.rejecting import REJECTING, Kind
from sluice.model.fields import TypeName

_COLUMNS: Final = ("column", "column_A", "column_B", "column_list")
_TYPE: Final = re.compile(r"expect_[a-z0-9_]{1,120}")
_SQL_OF_ITS_OWN: Final = "runs SQL of its own, which Sluice does not: say it with another type"
_REFUSED: Final = {
    "unexpected_rows_expectation": _SQL_OF_ITS_OWN,
    "expect_query_results_to_match_comparison": _SQL_OF_ITS_OWN,
    "expect_column_distinct_values_to_be_in_set": (
        "does not tell whether there was any value: say expect_column_values_to_be_in_set, which counts rows"
    ),
    "expect_table_row_count_to_equal_other_table": "looks at another table, and a suite is of the one that would be published",
}
_NOT_POSTGRES: Final = (
    (re.compile(r"\(\?P[<=>]"), "(?P…) names a group, which Postgres does not: write (…)"),
    (re.compile(r"\(\?<(?![=!])"), "(?<…>) names a group, which Postgres does not: write (…)"),
    (re.compile(r"\(\?>"), "(?>…) is atomic, which no group of Postgres is"),
    (re.compile(r"\\b"), r"\b is a backspace in Postgres: write \y for the edge of a word"),
    (re.compile(r"\\B"), r"\B is a backslash in Postgres: write \Y where no word has its edge"),
    (re.compile(r"\\[pP]\{?"), r"\p is no class of characters in Postgres: write [[:alpha:]] and the like"),
    (re.compile(r"\\z"), r"\z is unknown to Postgres: write \Z"),
    (re.compile(r"(?:[*+?]|\{[0-9,]+\})\+"), "a + behind another quantifier is possessive, which none of Postgres is"),
)
"""What a regular expression of Python has, and Postgres reads as something else or not at all."""
_ESCAPED: Final = re.compile(r"\\([A-Za-z])|\\.", re.DOTALL)
_OF_POSTGRES_ALONE: Final = re.compile(r"^(\*\*\*[:=]|\(\?[a-z]+\))|\[[:.=][^]]*[:.=]\]")
"""What Python reads as something else: what a pattern may begin with, and classes within brackets."""
_WRONG_ANYWHERE: Final = (
    "missing )",
    "unbalanced parenthesis",
    "unterminated character set",
    "nothing to repeat",
    "bad escape (end of pattern)",
)
"""What Python says of patterns that Postgres takes as little."""


def broken_rules(raw: Mapping[str, Any], types: Mapping[str, TypeName]) -> Iterator[Problem]:
    """Yield each rule that does not hold. What is wrong in itself is left alone."""
    listed = raw.get("expectations")
    for index, item in enumerate(listed if isinstance(listed, list) else []):
        kind = item.get("type") if isinstance(item, dict) else None
        kwargs = item.get("kwargs", {}) if isinstance(item, dict) else None
        if isinstance(kind, str) and isinstance(kwargs, dict):
            path: Path = ("expectations", index)
            yield from _type(path, kind, kwargs)
            yield from _columns(path, kwargs, types)
            yield from _share(path, kwargs)
            yield from _patterns(path, kwargs)
            if _follows(item) == "reject":
                yield from _rejecting(path, kind, kwargs, types)


def _type(path: Path, kind: str, kwargs: Mapping[str, Any]) -> Iterator[Problem]:
    if kind in _REFUSED:
        yield Problem((*path, "type"), f"{kind} {_REFUSED[kind]}")
    elif not _TYPE.fullmatch(kind):
        yield Problem((*path, "type"), f"{kind!r} is no type of an expectation, such as expect_column_values_to_not_be_null")
    elif kind not in KINDS:
        near = get_close_matches(kind, KINDS, n=1)
        yield Problem((*path, "type"), f"Great Expectations has no {kind}" + (f"; did you mean {near[0]}?" if near else ""))
    if "unexpected_rows_query" in kwargs:
        yield Problem((*path, "kwargs", "unexpected_rows_query"), _SQL_OF_ITS_OWN)
    for name, value in kwargs.items():
        if isinstance(value, dict) and "$PARAMETER" in value:
            yield Problem((*path, "kwargs", name), "is a parameter of the suite, and nobody gives it a value: write it out")


def _columns(path: Path, kwargs: Mapping[str, Any], types: Mapping[str, TypeName]) -> Iterator[Problem]:
    for place, name in _named(kwargs):
        if not isinstance(name, str):
            yield Problem((*path, "kwargs", *place), "has to be the name of a field")
        elif types and name not in types:
            known = suggest(name, types, "declared")
            yield Problem((*path, "kwargs", *place), f"no field of the sync is named {name!r}; {known}")


def _named(kwargs: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Yield each column that the kwargs name, and where."""
    for key in _COLUMNS:
        value = kwargs.get(key)
        if isinstance(value, list):
            yield from (((key, place), name) for place, name in enumerate(value))
        elif value is not None:
            yield (key,), value


def _share(path: Path, kwargs: Mapping[str, Any]) -> Iterator[Problem]:
    share = kwargs.get("mostly", 1)
    is_number = isinstance(share, int | float) and not isinstance(share, bool)
    if not is_number or not 0 <= share <= 1:
        yield Problem((*path, "kwargs", "mostly"), "has to be a share of the rows: a number from 0 to 1")


def _patterns(path: Path, kwargs: Mapping[str, Any]) -> Iterator[Problem]:
    listed = kwargs.get("regex_list")
    found: list[tuple[Path, Any]] = [(("regex",), kwargs.get("regex"))]
    found += [(("regex_list", place), each) for place, each in enumerate(listed)] if isinstance(listed, list) else []
    for place, pattern in found:
        if isinstance(pattern, str):
            yield from (
                Problem((*path, "kwargs", *place), f"{wrong} (regular expressions are Postgres's here)")
                for wrong in _wrong_with(pattern)
            )


def _wrong_with(pattern: str) -> Iterator[str]:
    # A backslash that is itself escaped escapes nothing.
    bare = pattern.replace("\\\\", "")
    told = [wrong for known, wrong in _NOT_POSTGRES if known.search(bare)]
    yield from told
    if told or pattern.startswith("***="):  # which is no pattern, but a text
        return
    # Letters that are escaped, and classes, are one character of either; what it is does not matter to Python here.
    alike = _ESCAPED.sub(lambda found: r"\w" if found[1] else found[0], _OF_POSTGRES_ALONE.sub("", pattern))
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(alike)
    except re.error as error:
        if error.msg.startswith(_WRONG_ANYWHERE):
            yield f"is no regular expression: {error.msg}"


def _follows(item: Mapping[str, Any]) -> Any:
    meta = item.get("meta")
    ours = meta.get("sluice") if isinstance(meta, dict) else None
    return item.get("on_failure", ours.get("on_failure") if isinstance(ours, dict) else None)


def _rejecting(path: Path, kind: str, kwargs: Mapping[str, Any], types: Mapping[str, TypeName]) -> Iterator[Problem]:
    rule = REJECTING.get(kind)
    if rule is None:
        yield Problem(
            (*path, "on_failure"), f"{kind} cannot reject rows: warn or block; those that can: {', '.join(REJECTING)}"
        )
        return
    for name in kwargs:
        if name not in rule.known:
            known = ", ".join(sorted(rule.known))
            yield Problem((*path, "kwargs", name), f"cannot be had together with on_failure: reject; allowed: {known}")
    if not rule.given(kwargs):
        yield Problem((*path, "kwargs"), f"has to give {' or '.join(rule.needs)}")
    yield from _values(path, kwargs)
    yield from _types(path, rule, kwargs, types)


def _values(path: Path, kwargs: Mapping[str, Any]) -> Iterator[Problem]:
    listed = kwargs.get("value_set")
    if listed is not None and (not isinstance(listed, list) or any(not isinstance(each, str | int | float) for each in listed)):
        yield Problem((*path, "kwargs", "value_set"), "has to be a list of texts, numbers and truth values")


def _types(path: Path, rule: Kind, kwargs: Mapping[str, Any], types: Mapping[str, TypeName]) -> Iterator[Problem]:
    if lacking := [key for key in rule.columns if kwargs.get(key) in (None, [])]:
        yield Problem((*path, "kwargs"), f"has to give {' and '.join(lacking)}")
    for place, name in _named(kwargs):
        found = types.get(name) if isinstance(name, str) else None
        if found is not None and found not in rule.types:
            allowed = ", ".join(sorted(rule.types))
            yield Problem((*path, "kwargs", *place), f"{name} is {found}, of which no row can be rejected; allowed: {allowed}")
