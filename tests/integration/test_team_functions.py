"""Whole runs with a function of the team's own: what becomes of the table, and of the objects that it cannot do."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from sluice.model.base import ObjectKey
from sluice.model.lifecycle import RunStatus
from sluice.ports import ConnectionInfo
from sluice.upkeep.explanation import explain
from tests.support.stall import Stall, open_stall, price

POISON = ["many", 1.005, 10**9, [1], {"a": 1}, True, "NaN"]
"""None of them is a price."""

ENRICH = """
    from decimal import Decimal

    PREMIUM = Decimal("{premium}")


    def enrich(frame, context):
        print("enriching", len(frame), "of", context.shard)
        frame["more"] = [note(price) for price in frame["price"]]
        frame["price"] = frame["price"] * PREMIUM
        return frame


    def note(price):
        if price > 100:
            raise ValueError(f"{{price}} is too much")
        return '{{"was": "' + str(price) + '"}}'


    def tidy(frame, context):
        frame["price"] = [amount.replace(",", ".") for amount in frame["price"]]
        return frame
"""


@pytest.fixture
def stall(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, request: pytest.FixtureRequest
) -> Iterator[Stall]:
    """A sync whose objects go through a function, if one is asked for."""
    function: dict[str, str] | None = getattr(request, "param", None)
    review = {"first_load": "auto-approve", "auto_approve": dict.fromkeys(("created", "changed", "rejected"), "100%")}
    with open_stall(
        tmp_path,
        database,
        artifacts,
        {"review": review, **({"transform": function} if function else {})},
        chunk_bytes=16_000_000,
    ) as stall:
        write(tmp_path)
        yield stall
    sys.modules.pop("enrichment_of_ours", None)


def write(folder: Path, premium: str = "1.00") -> None:
    """Write the team's module."""
    (folder / "include/enrichment_of_ours.py").write_text(dedent(ENRICH.format(premium=premium)))


def named(function: str, when: str = "after") -> dict[str, str]:
    """How the spec names it."""
    return {"function": f"enrichment_of_ours.{function}", "when": when}


def letters(stall: Stall) -> list[tuple[Any, ...]]:
    """What could not be taken in, by key."""
    return stall.sql("select object_key, error, field, message from sluice_state.dead_letter where status = 'open' order by 1")


def test_seven_bad_values_stop_no_eighth(stall: Stall) -> None:
    """Of eight objects, the fields of seven hold what they cannot: one is published, and each of the others is named."""
    run = stall.bring([price(f"k{place}", amount) for place, amount in enumerate(POISON)] + [price("k7", 2.5)])  # type: ignore[arg-type]
    assert run.status is RunStatus.SUCCEEDED
    assert stall.prices() == {"k7": 2.5}
    told = letters(stall)
    assert [(key, field) for key, _, field, _ in told] == [(f"k{place}", "price") for place in range(7)]
    assert [error for _, error, _, _ in told] == ["type", "precision", "out-of-range", "type", "type", "type", "type"]
    assert "1.005" in told[1][3]


@pytest.mark.parametrize("stall", [named("enrich")], indirect=True)
def test_seven_objects_that_a_function_fails_for_stop_no_eighth(stall: Stall, tmp_path: Path) -> None:
    """Each is named with what was raised, and with the line of the team's code."""
    run = stall.bring([price(f"k{place}", 101 + place) for place in range(7)] + [price("k7", 2.5)])
    assert run.status is RunStatus.SUCCEEDED
    assert stall.sql("select id, price::text, more ->> 'was' from prices") == [("k7", "2.50", "2.50")]
    line = 1 + dedent(ENRICH).splitlines().index('        raise ValueError(f"{{price}} is too much")')
    place = tmp_path / "include/enrichment_of_ours.py"
    assert letters(stall) == [
        (
            f"k{number}",
            "function",
            None,
            f"enrichment_of_ours.enrich failed at {place}:{line}: ValueError: {101 + number}.00 is too much",
        )
        for number in range(7)
    ]


@pytest.mark.parametrize("stall", [named("tidy", "before")], indirect=True)
def test_a_function_may_mend_records_before_they_are_read(stall: Stall) -> None:
    """What it cannot mend is named; what it made of the others is read by the fields."""
    stall.bring([price("a", "1,25"), price("b", 3), price("c", "2.5")])  # type: ignore[arg-type]
    assert stall.prices() == {"a": 1.25, "c": 2.5}
    assert [(key, error) for key, error, _, _ in letters(stall)] == [("b", "function")]


@pytest.mark.parametrize("stall", [named("enrich")], indirect=True)
def test_edited_code_makes_the_rows_anew(stall: Stall, tmp_path: Path) -> None:
    """The same bytes under the same version of the spec: they are mapped again, and the new rows are published."""
    things = [price("a", 2), price("b", 3)]
    first = stall.bring(things)
    again = stall.bring(things)
    assert again.request_key == first.request_key
    write(tmp_path, premium="1.50")
    edited = stall.bring(things)
    assert edited.request_key != first.request_key
    assert stall.prices() == {"a": 3, "b": 4.5}
    assert [event.outcome for event in stall.events("a")] == ["created", "changed"]
    story = explain(stall.services, stall.services.spec("prices"), ObjectKey("a"), limit=5)
    assert [json.loads(trace.raw.data)["price"] if trace.raw else trace.gone for trace in story.traces] == [2, 2]
