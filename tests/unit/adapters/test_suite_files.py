"""Suites as files: what is read of them, and what is told of each mistake, with its line."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.adapters.suite_files import SuiteFiles
from sluice.model.fields import TypeName
from sluice.model.quality import OnFailure, Suite

TYPES = {
    "id": TypeName.TEXT,
    "stars": TypeName.INTEGER,
    "rooms": TypeName.INTEGER,
    "price": TypeName.NUMERIC,
    "address": TypeName.JSON,
}

EXPORTED = {
    "name": "Hotels of the world",
    "id": None,
    "expectations": [
        {
            "type": "expect_column_values_to_not_be_null",
            "kwargs": {"column": "id", "mostly": 0.9},
            "meta": {"sluice": {"on_failure": "reject"}},
            "notes": "a 🏨 has a name",
            "severity": "warning",
        },
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "stars", "max_value": 5.0}, "meta": {}, "id": "7"},
    ],
    "meta": {"great_expectations_version": "1.24.1"},
    "notes": None,
}
"""As the library writes it."""


def read(folder: Path, suite: Any, ending: str = "yaml") -> tuple[Suite | None, list[str]]:
    """Write a suite, and read it."""
    file = folder / f"include/expectations/hotels.{ending}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(suite if isinstance(suite, str) else json.dumps(suite))
    return SuiteFiles(folder / "include").read("hotels", TYPES)


def told(folder: Path, kind: str, on_failure: str = "block", **kwargs: Any) -> list[str]:
    """Return what is wrong with an expectation, without the place."""
    item = {"type": kind, "on_failure": on_failure, "kwargs": kwargs}
    _, lines = read(folder, yaml.safe_dump({"expectations": [item]}))
    return [line.partition(": ")[2] for line in lines]


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_what_the_library_has_written_is_read(tmp_path: Path, ending: str) -> None:
    """Its own keys are taken as they are; what follows from an expectation stands below its meta, and else it blocks."""
    suite, lines = read(tmp_path, EXPORTED if ending == "json" else yaml.safe_dump(EXPORTED), ending)
    assert lines == []
    assert suite is not None
    first, second = suite.expectations
    assert (first.on_failure, first.kwargs, first.label) == (
        OnFailure.REJECT,
        {"column": "id", "mostly": 0.9},
        "expect_column_values_to_not_be_null(id)",
    )
    assert second.on_failure is OnFailure.BLOCK
    assert first.notes == "a 🏨 has a name"


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    """Unknown keys and values, columns that are no fields, and expectations that nobody can check."""
    suite = """
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: { column: star }
    on_failure: rejct
  - type: ColumnToExist
    kwarg: {}
  - { type: unexpected_rows_expectation, kwargs: { unexpected_rows_query: "select 1" } }
  - { type: expect_column_pair_values_to_be_equal, kwargs: { column_A: stars, column_B: 7 } }
  - { type: expect_column_distinct_values_to_be_in_set, kwargs: { column: stars, value_set: [1] } }
  - { type: expect_column_values_to_not_be_nul, kwargs: { column: stars, mostly: 90 } }
"""
    _, lines = read(tmp_path, suite)
    sql = "runs SQL of its own, which Sluice does not: say it with another type"
    distinct = "expect_column_distinct_values_to_be_in_set does not tell whether there was any value: "
    distinct += "say expect_column_values_to_be_in_set"
    told = [line.removeprefix("include/expectations/hotels.yaml:").partition("; ")[0] for line in lines]
    assert told == [
        "4: expectations[0].kwargs.column: no field of the sync is named 'star'",
        "5: expectations[0].on_failure: input should be 'reject', 'warn' or 'block'",
        "6: expectations[1].type: 'ColumnToExist' is no type of an expectation, such as expect_column_values_to_not_be_null",
        "7: expectations[1].kwarg: unknown key",
        f"8: expectations[2].type: unexpected_rows_expectation {sql}",
        f"8: expectations[2].kwargs.unexpected_rows_query: {sql}",
        "9: expectations[3].kwargs.column_B: has to be the name of a field",
        f"10: expectations[4].type: {distinct}, which counts rows",
        "11: expectations[5].type: Great Expectations has no expect_column_values_to_not_be_nul",
        "11: expectations[5].kwargs.mostly: has to be a share of the rows: a number from 0 to 1",
    ]
    assert lines[0].endswith("did you mean 'stars'? declared: id, stars, rooms, price, address")


def test_what_is_no_json_is_told(tmp_path: Path) -> None:
    """With the line on which it ends to be."""
    assert read(tmp_path, '{"expectations": [\n{type: 1}]}', "json")[1] == [
        "include/expectations/hotels.json:2: not valid JSON: expecting property name enclosed in double quotes"
    ]
    (line,) = read(tmp_path, "[]", "json")[1]
    assert "has to hold a mapping" in line


def test_a_suite_that_expects_nothing_is_refused(tmp_path: Path) -> None:
    """It would check nothing, and that has never passed."""
    assert read(tmp_path, {"expectations": []})[1] == ["include/expectations/hotels.yaml:1: expectations: may not be empty"]


@pytest.mark.parametrize(
    ("kind", "kwargs", "wrong"),
    [
        (
            "column_mean_to_be_between",
            {"column": "stars"},
            "expect_column_mean_to_be_between cannot reject rows: warn or block",
        ),
        (
            "column_values_to_be_between",
            {"column": "id", "min_value": 1},
            "id is text, of which no row can be rejected; allowed",
        ),
        (
            "column_values_to_match_regex",
            {"column": "stars", "regex": "1"},
            "stars is integer, of which no row can be rejected",
        ),
        ("column_values_to_be_unique", {"column": "address"}, "address is json, of which no row can be rejected"),
        ("column_values_to_be_between", {"column": "stars"}, "has to give min_value or max_value"),
        ("column_values_to_not_be_null", {}, "has to give column"),
        (
            "column_values_to_be_in_set",
            {"column": "id", "value_set": ["a", None]},
            "has to be a list of texts, numbers and truth",
        ),
        (
            "column_values_to_not_be_null",
            {"column": "id", "row_condition": "x"},
            "cannot be had together with on_failure: reject; allowed: column, mostly",
        ),
    ],
)
def test_what_cannot_reject_rows_is_refused_by_name(tmp_path: Path, kind: str, kwargs: dict[str, Any], wrong: str) -> None:
    """A kind that looks at the whole, a field of another type, a parameter whose meaning the query would not know."""
    (line,) = told(tmp_path, f"expect_{kind}", "reject", **kwargs)
    assert wrong in line
    assert wrong not in "".join(told(tmp_path, f"expect_{kind}", "warn", **kwargs))


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        (r"(?P<word>a)", "(?P…) names a group"),
        (r"(?<word>a)", "(?<…>) names a group"),
        (r"\bword", r"\b is a backspace in Postgres: write \y"),
        (r"a\B", r"\B is a backslash in Postgres"),
        (r"\p{L}", r"\p is no class"),
        (r"a\z", r"\z is unknown to Postgres"),
        (r"(?>a)", "(?>…) is atomic"),
        (r"a++", "a + behind another quantifier"),
        (r"a{2}+", "a + behind another quantifier"),
        (r"(a|b", "is no regular expression: missing )"),
        (r"a)\y", "is no regular expression: unbalanced parenthesis"),
        (r"[a-z", "is no regular expression: unterminated character set"),
        (r"*a", "is no regular expression: nothing to repeat"),
        ("a\\", "is no regular expression: bad escape"),
    ],
)
def test_patterns_are_postgres_s(tmp_path: Path, pattern: str, wrong: str) -> None:
    """What Python has and Postgres reads as something else is refused by name, wherever a pattern stands."""
    for kwargs in ({"regex": pattern}, {"regex_list": ["^a", pattern]}):
        (line,) = told(tmp_path, "expect_column_values_to_match_regex", "warn", column="id", **kwargs)
        assert wrong in line


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"^\d+$", r"\\b", r"(?<=a)b", r"(?<!a)b", r"(?i)a", r"a\+", r"\y\w+\Z", "a+?", r"[+]+"),
        *("[[:alpha:](]+", "[]()]", r"\m\(\M", "***=(a", "***:a", "(?n)a", r"\u00e9{1,200}"),
    ],
)
def test_patterns_that_postgres_knows_are_taken(tmp_path: Path, pattern: str) -> None:
    """What Python knows as well, what is escaped, and what only Postgres knows."""
    assert told(tmp_path, "expect_column_values_to_match_regex", "reject", column="id", regex=pattern) == []


def test_what_follows_is_said_once(tmp_path: Path) -> None:
    """Beside an expectation or below its meta; two words that differ are a mistake."""
    item = {"type": "expect_column_to_exist", "on_failure": "warn", "meta": {"sluice": {"on_failure": "block"}}}
    assert "differ" in read(tmp_path, {"expectations": [item]})[1][0]
    item = {"type": "expect_column_to_exist", "meta": {"sluice": {"on_failur": "block"}}}
    assert "meta.sluice holds one key, on_failure" in read(tmp_path, {"expectations": [item]})[1][0]


def test_parameters_of_the_suite_are_refused(tmp_path: Path) -> None:
    """Nobody gives them a value."""
    (line,) = told(tmp_path, "expect_table_row_count_to_equal", value={"$PARAMETER": "rows"})
    assert line == "expectations[0].kwargs.value: is a parameter of the suite, and nobody gives it a value: write it out"


def test_a_file_that_is_not_there_is_told_beside_those_that_are(tmp_path: Path) -> None:
    """So is one that is there twice."""
    read(tmp_path, EXPORTED)
    files = SuiteFiles(tmp_path / "include")
    assert files.absence("hotels") is None
    assert files.absence("hotel") == (
        "no file include/expectations/hotel.yaml or .json; did you mean 'hotels'? there are: hotels"
    )
    read(tmp_path, EXPORTED, "json")
    assert files.absence("hotels") == "include/expectations has both hotels.yaml and hotels.json: remove one of them"
