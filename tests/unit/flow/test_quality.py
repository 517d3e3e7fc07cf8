"""Quality: when a suite is run, what is rejected for it, and what cannot stop what."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sluice.errors import RedoNeeded, SpecInvalid
from sluice.flow import quality
from sluice.flow.packet import evidence_of
from sluice.flow.publisher import publish
from sluice.flow.reviewer import review
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.quality import Met, OnFailure, Quality, Suite, SuiteExpectation
from sluice.model.review import Review
from sluice.model.run import Mode
from tests.unit.flow.workshop import MAY, NORTH, RUN, SOUTH, Workshop, sync_spec

ALLOWED = SuiteExpectation(
    type="expect_column_values_to_be_in_set", kwargs={"column": "id", "value_set": ["a", "b"]}, on_failure=OnFailure.REJECT
)
THERE = SuiteExpectation(type="expect_column_values_to_not_be_null", kwargs={"column": "id"})
UNKNOWN = SuiteExpectation(type="expect_wonders", on_failure=OnFailure.WARN)


def brought_in(*expectations: SuiteExpectation, hotels: str = "abc", **changes: Any) -> Workshop:
    """A workshop whose full run has brought these hotels in, a shard each of both kinds."""
    policy = {"first_load": "auto-approve", "auto_approve": {"created": "100%", "rejected": "100%"}, "expectations": "hotels"}
    workshop = Workshop(spec=sync_spec(review=policy), suite=Suite(expectations=expectations), **changes)
    workshop.equip()
    workshop.begin(mode=Mode.FULL)
    workshop.bring_in(NORTH, *[(key, MAY) for key in hotels])
    workshop.bring_in(SOUTH)
    return workshop


def quality_of(workshop: Workshop, made: Review) -> Quality:
    found = evidence_of(workshop.services, made)
    assert found is not None
    assert found.quality is not None
    return found.quality


def test_who_is_rejected_is_a_dead_letter_and_stays_one_after_the_publication() -> None:
    """With the address and the bytes of its record; the others are published, and the figures are of these."""
    workshop = brought_in(ALLOWED, THERE)
    made = review(workshop.services, RUN)
    assert made.figures.outcomes == {Outcome.CREATED: 2, Outcome.REJECTED: 1}
    found = quality_of(workshop, made)
    assert (found.rows, found.rejected, found.engine) == (2, 1, "memory 1")
    assert [result.met for result in found.results] == [Met.PASSED, Met.PASSED]
    (letter,) = workshop.memory.dead_letters
    assert (letter.reject.key, letter.reject.error, letter.reject.field) == ("c", "expectation", "id")
    assert (letter.reject.address.frame, letter.reject.address.index) == (0, 2)
    publish(workshop.services, RUN)
    assert workshop.target is not None
    assert set(workshop.target.rows) == {"a", "b"}
    assert workshop.services.dead_letters.open_keys("hotels") == {"c"}


def test_a_review_made_again_finds_the_same() -> None:
    """The same objects are rejected once, and it is the same review."""
    workshop = brought_in(ALLOWED)
    first = review(workshop.services, RUN)
    again = review(workshop.services, RUN)
    assert (again.id, again.digest) == (first.id, first.digest)
    assert [letter.attempts for letter in workshop.memory.dead_letters] == [1]


def test_what_cannot_be_checked_together_is_checked_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that raises takes no other with it; a long suite is checked in groups."""
    monkeypatch.setattr(quality, "_TOGETHER", 3)
    workshop = brought_in(THERE, UNKNOWN, THERE, THERE)
    found = quality_of(workshop, review(workshop.services, RUN))
    assert [result.met for result in found.results] == [Met.PASSED, Met.NOT_CHECKED, Met.PASSED, Met.PASSED]
    assert workshop.target is not None
    assert workshop.target.expecting is not None
    assert workshop.target.expecting.groups == [3, 1, 1, 1, 1]


def test_a_suite_has_half_the_time_of_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left then has not been checked; and no statement goes on for longer than a worker may say nothing."""
    monkeypatch.setattr(quality, "_TOGETHER", 1)
    workshop = brought_in(THERE, THERE, THERE)
    assert workshop.target is not None
    half = workshop.policy.timeouts.step / 2
    clock = workshop.memory.clock
    review(workshop.services, RUN)
    assert workshop.target.patience == min(workshop.policy.no_progress_timeout / 2, half)
    assert workshop.target.expecting is not None
    check = type(workshop.target.expecting).check

    def slow(self: Any, expectations: Any) -> Any:
        clock.move(half / 2 + timedelta(seconds=1))
        return check(self, expectations)

    monkeypatch.setattr(type(workshop.target.expecting), "check", slow)
    found = quality_of(workshop, review(workshop.services, RUN))
    assert [result.met for result in found.results] == [Met.PASSED, Met.PASSED, Met.NOT_CHECKED]
    assert found.results[2].why == "the suite takes longer than half the time that a step has"


def test_a_suite_that_cannot_be_read_blocks() -> None:
    """Nobody knows what it would have said."""
    workshop = brought_in(THERE)

    def suite(_: Any) -> Suite:
        raise SpecInvalid(["include/expectations/hotels.yaml:3: expectations[0].type: missing"])

    made = review(replace(workshop.services, suite=suite), RUN)
    assert made.verdict is Verdict.BLOCKED
    assert made.reasons[0].startswith("suite hotels could not be run: include/expectations/hotels.yaml:3")
    assert made.checks == quality_of(workshop, made).digest


def test_rows_of_an_older_release_are_mapped_again_before_one_of_them_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not say where their records stand."""
    workshop = brought_in(ALLOWED)
    monkeypatch.setattr(quality, "places_of", lambda _rows, _positions: None)
    with pytest.raises(RedoNeeded):
        review(workshop.services, RUN)
    assert workshop.memory.dead_letters == []
