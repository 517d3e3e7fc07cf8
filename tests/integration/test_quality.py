"""A suite held against a real table by the real library: what is rejected, blocked and told of it."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluice.adapters.suite_files import SuiteFiles
from sluice.checks.kinds import KINDS
from sluice.checks.rejecting import REJECTING
from sluice.flow.inline import run_inline
from sluice.flow.packet import evidence_of, packet_of
from sluice.model import rows
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, Verdict
from sluice.model.quality import ExpectationResult, Met, Quality, SuiteExpectation
from sluice.model.review import Choice
from sluice.model.run import Mode, Origin, Redrive, Run, RunRequest
from sluice.ports import ConnectionInfo
from tests.support.market import Market, market_spec
from tests.support.servers import PROJECT
from tests.support.stall import SYNC, Stall, open_stall, price

Expectation = dict[str, Any]
Open = Callable[..., Stall]


@pytest.fixture
def stall_with(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Open]:
    """What opens a stall whose sync has a suite of these expectations."""
    with ExitStack() as stack:

        def opened(*expectations: Expectation, **policy: Any) -> Stall:
            suite_of(tmp_path, *expectations)
            review = {**SYNC["review"], "expectations": "prices"}
            review["auto_approve"] = {**review["auto_approve"], "rejected": "100%", "drift": 1000}
            return stack.enter_context(open_stall(tmp_path, database, artifacts, {"review": review}, **policy))

        yield opened


def suite_of(folder: Path, *expectations: Expectation) -> None:
    file = folder / "include/expectations/prices.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"expectations": expectations}))


def expect(kind: str, on_failure: str = "block", **kwargs: Any) -> Expectation:
    return {"type": f"expect_{kind}", "kwargs": kwargs, "on_failure": on_failure}


AFFORDABLE = expect("column_values_to_be_between", "reject", column="price", min_value=0, max_value=50)


def quality_of(stall: Stall, run: Run) -> Quality:
    evidence = evidence_of(stall.services, stall.review_of(run))
    assert evidence is not None
    assert evidence.quality is not None
    return evidence.quality


def results_of(stall: Stall, run: Run) -> list[ExpectationResult]:
    return list(quality_of(stall, run).results)


def test_objects_that_do_not_meet_an_expectation_are_rejected_and_no_others(stall_with: Open) -> None:
    """They are dead letters with the address of their record until they come right; what they would have replaced stays."""
    stall = stall_with(AFFORDABLE, expect("column_values_to_not_be_null", column="id"))
    run = stall.bring([price("a", 1), price("b", 99), price("c", 3)])
    assert stall.prices() == {"a": 1.0, "c": 3.0}
    assert stall.publications()[-1].counts == {Outcome.CREATED: 2, Outcome.REJECTED: 1}
    diff = pq.read_table(pa.BufferReader(stall.services.artifacts.get(stall.review_of(run).diff)))
    assert diff[rows.TRANSFORMER_VERSION].to_pylist() == [1, 1, 1]
    (letter,) = stall.services.letter_desk.selected("prices", Redrive(), 10)
    assert (letter.reject.key, letter.reject.error, letter.reject.field) == ("b", "expectation", "price")
    assert letter.reject.message == "'99.00' does not meet expect_column_values_to_be_between(price) of suite prices"
    assert letter.reject.address.index == 1
    assert letter.reject.raw_hash is not None
    affordable, named = results_of(stall, run)
    assert (affordable.met, affordable.rejected, affordable.evaluated, affordable.unexpected) == (Met.PASSED, 1, 2, 0)
    assert (named.met, named.evaluated) == (Met.PASSED, 2)

    run = stall.bring([price("a", 70, 2), price("b", 99), price("c", 3), price("d", 4)])
    assert stall.prices() == {"a": 1.0, "c": 3.0, "d": 4.0}
    assert results_of(stall, run)[0].rejected == 2
    assert {letter.reject.key: letter.attempts for letter in stall.services.letter_desk.selected("prices", Redrive(), 10)} == {
        "a": 1,
        "b": 2,
    }

    stall.bring([price("a", 7, 3), price("b", 9, 2), price("c", 3), price("d", 4)])
    assert stall.prices() == {"a": 7.0, "b": 9.0, "c": 3.0, "d": 4.0}
    assert stall.services.letter_desk.selected("prices", Redrive(), 10) == []


def test_a_rejected_object_is_redriven_through_the_same_suite(stall_with: Open, tmp_path: Path) -> None:
    """In vain while the suite is what it was, and then it is still one letter; with another one it comes right."""
    stall = stall_with(AFFORDABLE)
    stall.bring([price("a", 1), price("b", 99)])

    def redriven() -> Run:
        redrive = Redrive(cause="expectation:price")
        return run_inline(stall.services, RunRequest(sync="prices", mode=Mode.REDRIVE, redrives=redrive, origin=Origin()))

    assert results_of(stall, redriven())[0].rejected == 1
    assert [letter.attempts for letter in stall.services.letter_desk.selected("prices", Redrive(), 10)] == [2]
    suite_of(tmp_path, {**AFFORDABLE, "kwargs": {"column": "price", "max_value": 100}})
    assert redriven().status is RunStatus.SUCCEEDED
    assert stall.prices() == {"a": 1.0, "b": 99.0}
    assert stall.services.letter_desk.selected("prices", Redrive(), 10) == []


def test_rows_that_offend_already_are_counted_and_left_alone(stall_with: Open) -> None:
    """Nobody who comes in is to blame for them, so they block nothing; where rejecting does not help, the review is blocked."""
    stall = stall_with(AFFORDABLE, expect("column_values_to_be_unique", "reject", column="price"))
    stall.bring([price("a", 1), price("b", 2)])
    stall.sql("update prices set price = 80 where id = 'b'")
    run = stall.bring([price("a", 1), price("b", 2), price("c", 3)])
    affordable = results_of(stall, run)[0]
    assert (affordable.met, affordable.rejected, affordable.arriving, affordable.staying) == (Met.FAILED, 0, 0, 1)
    assert [(sample.key, sample.value) for sample in affordable.samples] == [(None, "80.00")]
    assert stall.review_of(run).verdict is Verdict.AUTO_APPROVED

    # What b would have had is a's by now; without b, its old price is c's.
    stall.sql("update prices set price = 2 where id = 'b'")
    run = stall.bring([price("a", 1), price("b", 1, 2), price("c", 2, 2), price("d", 9)])
    unique = results_of(stall, run)[1]
    assert (unique.met, unique.rejected, unique.arriving) == (Met.FAILED, 1, 1)
    assert stall.review_of(run).reasons == (
        "expect_column_values_to_be_unique(price) is not met: 1 objects were rejected for it, and 1 that come in still do not",
    )


def test_what_is_not_met_blocks_or_warns_as_its_suite_says(stall_with: Open) -> None:
    """A block names the expectation, how many of how many, and some; a warning is told and changes no verdict."""
    stall = stall_with(
        AFFORDABLE | {"on_failure": "block"},
        expect("column_values_to_be_in_set", "warn", column="id", value_set=["a"], mostly=0.9),
        expect("column_mean_to_be_between", column="price", max_value=10),
        expect("column_values_to_be_in_set", column="id", value_set=["a", "b"], mostly=0.5),
        expect("table_row_count_to_be_between", min_value=1),
    )
    run = stall.bring([price("a", 1), price("b", 99), price("c", 3)])
    review = stall.review_of(run)
    assert (run.status, review.verdict) == (RunStatus.WAITING, Verdict.BLOCKED)
    assert review.reasons == (
        "expect_column_values_to_be_between(price) is not met: 1 of 3 rows (33.3%) do not, for example '99.00' of b",
        "expect_column_mean_to_be_between(price) is not met: found 34.3333",
    )
    results = results_of(stall, run)
    assert [result.met for result in results] == [Met.FAILED, Met.FAILED, Met.FAILED, Met.PASSED, Met.PASSED]
    assert results[1].kwargs == '{"mostly": 0.9, "value_set": ["a"]}'
    page = packet_of(stall.services, review)
    assert page is not None
    assert b"expect_column_mean_to_be_between(price)" in page
    assert stall.answer(run, Choice.APPROVE).status is RunStatus.SUCCEEDED
    assert len(stall.prices()) == 3


def test_what_could_not_be_checked_has_not_passed(stall_with: Open, tmp_path: Path) -> None:
    """Each such expectation says why and blocks, unless it only warns; it takes no other with it."""
    wrong = [
        expect("column_values_to_match_regex", column="id", regex="a{300}"),
        expect("column_values_to_be_json_parseable", column="id"),
        expect("column_values_to_be_between", column="price", minimum=1),
        expect("column_values_to_be_in_set", column="more", value_set=[1]),
        expect("column_mean_to_be_between", "warn", column="id", min_value=1),
    ]
    stall = stall_with(*wrong, expect("column_values_to_not_be_null", column="id"))
    run = stall.bring([price("a", 1), price("b", 2)])
    results = results_of(stall, run)
    assert [result.met for result in results] == [Met.NOT_CHECKED] * 5 + [Met.PASSED]
    assert "invalid repetition count" in str(results[0].why)
    assert "json_parseable" in str(results[1].why)
    assert "minimum" in str(results[2].why)
    assert len(stall.review_of(run).reasons) == 4
    assert stall.review_of(run).verdict is Verdict.BLOCKED


def test_a_run_that_would_change_nothing_is_held_against_nothing(stall_with: Open, tmp_path: Path) -> None:
    """It says so, and is not blocked; a change is held against the suite, and one that has gone from the worker blocks."""
    stall = stall_with(AFFORDABLE)
    assert stall.review_of(stall.bring([price("a", 1)])).checks is not None
    run = stall.bring([price("a", 1)])
    quality = quality_of(stall, run)
    assert (quality.not_run, quality.results, run.status) == ("nothing would change", (), RunStatus.SUCCEEDED)

    spec = stall.services.spec("prices")
    (tmp_path / "include/expectations/prices.yaml").unlink()
    gone = Stall(replace(stall.services, spec=lambda _: spec), stall.shop, stall.target)
    (reason,) = gone.review_of(gone.bring([price("a", 1), price("b", 1)])).reasons
    assert reason == (
        "suite prices could not be run: review.expectations: no file include/expectations/prices.yaml or .json; there are: none"
    )


def test_without_the_library_nothing_has_passed(stall_with: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only warns is told of; what blocks or rejects blocks."""
    stall = stall_with(AFFORDABLE, expect("column_values_to_not_be_null", "warn", column="price"))
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    run = stall.bring([price("a", 1)])
    (reason,) = stall.review_of(run).reasons
    assert reason.startswith(
        "expect_column_values_to_be_between(price) could not be checked: Great Expectations cannot be used"
    )
    assert [result.met for result in results_of(stall, run)] == [Met.NOT_CHECKED] * 2
    assert quality_of(stall, run).engine is None


OFFENDERS = [
    (expect("column_values_to_not_be_null", column="note"), ["a", "d"]),
    (expect("column_values_to_be_in_set", column="city", value_set=["Rome", 5]), ["c", "d"]),
    (expect("column_values_to_be_in_set", column="active", value_set=[True]), ["b"]),
    (expect("column_values_to_not_be_in_set", column="stars", value_set=[3, 4]), ["a", "b", "d"]),
    (expect("column_values_to_be_in_set", column="price", value_set=[2, 1.25]), ["a"]),
    (expect("column_values_to_be_between", column="stars", min_value=2, max_value=3.5), ["c", "d"]),
    (expect("column_values_to_be_between", column="price", min_value=1.5, strict_min=True), ["a"]),
    (expect("column_values_to_be_between", column="opened", max_value="2026-01-01"), ["b"]),
    (expect("column_values_to_be_between", column="seen_at", min_value="2026-01-01T12:00:00"), ["a"]),
    (expect("column_values_to_match_regex", column="city", regex="^R"), ["c", "d"]),
    (expect("column_values_to_not_match_regex", column="city", regex=r"o\ye|'"), ["d"]),
    (expect("column_values_to_match_regex", column="city", regex="^(%s|[^%])*$", mostly=1), ["d"]),
    (expect("column_values_to_not_be_in_set", column="note", value_set=["5%"]), ["c"]),
    (expect("column_value_lengths_to_be_between", column="city", min_value=3, max_value=4), ["c", "d"]),
    (expect("column_value_lengths_to_be_between", column="city", max_value=4, strict_max=True), ["a", "b", "c", "d"]),
    (expect("column_value_lengths_to_equal", column="city", value=4), ["c", "d"]),
    (expect("column_values_to_be_unique", column="stars"), ["a", "b"]),
    (expect("compound_columns_to_be_unique", column_list=["city", "stars"]), ["a", "b"]),
    (expect("column_pair_values_a_to_be_greater_than_b", column_A="rating", column_B="stars"), ["a", "c"]),
    (expect("column_pair_values_a_to_be_greater_than_b", column_A="rating", column_B="stars", or_equal=True), ["c"]),
]
"""Expectations of every kind that can reject, and the objects that do not meet them."""


def test_whoever_offends_is_found_for_every_kind_that_can_reject(database: ConnectionInfo) -> None:
    """The library counts the same rows as the queries that find them, or nothing would be told apart."""
    when: dict[Any, Any] = {"a": "2026-01-01T00:00:00Z", "b": "2026-01-02T00:00:00Z", "c": None, "d": None}
    stalls = [
        {"id": "a", "city": "Rome", "stars": 3, "rating": 3, "price": "1.5", "active": True},
        {"id": "b", "city": "Rome", "stars": 3, "rating": 4, "price": "2", "active": False, "note": ""},
        {"id": "c", "city": "Paris", "stars": 1, "rating": 0, "note": "5%"},
        {"id": "d", "city": "L'x 'one%", "stars": 4},
    ]
    stalls = [{**each, "opened": when[each["id"]] and when[each["id"]][:10], "seen_at": when[each["id"]]} for each in stalls]
    suite = [SuiteExpectation.model_validate(expectation) for expectation, _ in OFFENDERS]
    assert {each.type for each in suite} == set(REJECTING)
    with closing(Market(database)) as market, market.expecting(market.rows(stalls)) as expecting:
        results = expecting.check(suite)
    found = [[sample.key for sample in result.samples] for result in results]
    assert found == [keys for _, keys in OFFENDERS], [(result.label, result.why) for result in results]
    assert all(result.arriving == len(result.samples) == result.unexpected for result in results)


def test_kinds_are_told_as_the_library_knows_them() -> None:
    """What is written down for `sluice validate` is what there is: it is told without the library, which takes seconds."""
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    assert sorted(list_registered_expectation_implementations()) == list(KINDS)


def test_what_counts_no_rows_is_told_by_what_it_finds(database: ConnectionInfo) -> None:
    """Values that are compared with a set, and a column that only has to be there, are passed and failed like any other."""
    suite = [
        expect("column_distinct_values_to_contain_set", column="city", value_set=["Rome"]),
        expect("column_distinct_values_to_equal_set", column="city", value_set=["Oslo", "Rome"]),
        expect("column_to_exist", column="city"),
    ]
    with closing(Market(database)) as market:
        chunk = market.rows({"id": city, "city": city} for city in ("Rome", "Paris"))
        with market.expecting(chunk) as expecting:
            results = expecting.check([SuiteExpectation.model_validate(expectation) for expectation in suite])
    assert [(result.met, result.observed) for result in results] == [
        (Met.PASSED, "0 values missing"),
        (Met.FAILED, "1 values missing, 1 that are not in the set"),
        (Met.PASSED, None),
    ]


def test_the_example_of_the_documentation_runs(database: ConnectionInfo, tmp_path: Path) -> None:
    """It is sound, and finds what it is said to find."""
    example = re.search(r"```yaml\n(.*?)```", (PROJECT / "docs/quality.md").read_text(), re.DOTALL)
    assert example is not None
    types = {"id": "text", "rooms": "integer", "website": "text"}
    spec = market_spec(fields=[{"name": name, "type": kind} for name, kind in types.items()])
    file = tmp_path / "include/expectations/hotels.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(example[1])
    suite, problems = SuiteFiles(tmp_path / "include").read("hotels", {field.name: field.type.name for field in spec.fields})
    assert problems == []
    assert suite is not None
    hotels: list[dict[str, Any]] = [
        {"id": "a", "rooms": 0, "website": "https://a"},
        {"id": "b", "rooms": 9, "website": "b"},
        {"id": "c"},
    ]
    with closing(Market(database, spec)) as market, market.expecting(market.rows(hotels)) as expecting:
        rooms, website, rows = expecting.check(suite.expectations)
    assert (rooms.met, rooms.arriving, rooms.samples[0].key) == (Met.FAILED, 1, "a")
    assert (website.met, website.evaluated, website.unexpected) == (Met.FAILED, 2, 1)
    assert (rows.met, rows.observed) == (Met.FAILED, "3")


def test_what_takes_too_long_has_not_been_checked(database: ConnectionInfo) -> None:
    """A statement that takes longer than patience lasts is ended, and takes nothing with it: the session goes on as it was."""
    suite = [SuiteExpectation.model_validate(expect("column_values_to_match_regex", column="city", regex="^(a?){30}a{30}$"))]
    with closing(Market(database)) as market:
        chunk = market.rows({"id": str(place), "city": "a" * 30} for place in range(3_000))
        with market.expecting(chunk, patience=timedelta(milliseconds=5)) as expecting:
            (result,) = expecting.check(suite)
        assert (result.met, result.why) == (
            Met.NOT_CHECKED,
            "canceling statement due to statement timeout",
        )
        with market.expecting(market.rows([{"id": "1", "city": "a"}])) as expecting:
            (result,) = expecting.check(suite)
        assert result.met is Met.FAILED
