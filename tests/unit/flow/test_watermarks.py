"""Publishing: watermarks follow what is published."""

from datetime import UTC, datetime

import pytest

from sluice.flow.settlement import settle
from sluice.model.base import Token
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Window
from tests.unit.flow.bench import Bench
from tests.unit.flow.workshop import JUNE, MAY, NORTH, RUN, SOUTH, Workshop, sync_spec

APRIL = "2024-04-01T00:00:00Z"


@pytest.mark.parametrize(("held", "becomes"), [(None, MAY), (APRIL, MAY), (MAY, MAY), (JUNE, JUNE)])
def test_watermarks_only_move_forward(held: str | None, becomes: str) -> None:
    """A run that looked at older things leaves a younger watermark alone."""
    bench = Bench()
    if held:
        bench.workshop.memory.watermarks["hotels", NORTH] = (held, Token(0))
    bench.publish()
    assert bench.marks()[NORTH] == becomes


def test_watermarks_move_for_shards_that_came_in() -> None:
    """One that failed is asked for from where it was."""
    bench = Bench(lost=NORTH)
    bench.publish()
    assert set(bench.marks()) == {SOUTH}
    assert sorted(bench.target.rows) == ["in south"]


def test_a_window_moves_no_watermark() -> None:
    """What lies before it has not been asked for, and still has to be."""
    bench = Bench()
    window = Window(start=datetime(2024, 4, 1, tzinfo=UTC), end=datetime(2024, 7, 1, tzinfo=UTC))
    memory = bench.workshop.memory
    memory.runs[RUN] = memory.runs[RUN].model_copy(update={"window": window})
    bench.publish()
    assert (sorted(bench.target.rows), bench.marks()) == (["in north", "in south"], {})


def test_a_shard_that_came_in_after_the_review_is_not_taken_for_published() -> None:
    """Before the commit its rows void the approval; behind it its watermark stays, until a new review publishes it."""
    bench = Bench(lost=NORTH)
    bench.publish()
    bench.workshop.bring_in(NORTH, ("in north", MAY))
    bench.publish()
    assert (sorted(bench.target.rows), NORTH in bench.marks()) == (["in south"], False)
    bench.review()
    bench.publish()
    assert (sorted(bench.target.rows), set(bench.marks())) == (["in north", "in south"], {NORTH, SOUTH})


def test_a_shard_that_came_in_late_and_changes_nothing() -> None:
    """Reviewed again, the run is whole, though its diff is what it was."""
    bench = Bench(lost=NORTH)
    bench.workshop.bring_in(NORTH)
    bench.review()
    bench.publish()
    assert sorted(bench.target.rows) == ["in south"]
    assert settle(bench.services, RUN).status is RunStatus.SUCCEEDED


def test_a_sync_without_a_watermark_has_none_to_move() -> None:
    """It is published all the same."""
    bench = Bench()
    source = bench.workshop.spec.source.model_dump() | {"watermark": None}
    plain = Workshop(spec=sync_spec(source=source))
    target = plain.equip()
    plain.begin()
    for key in (NORTH, SOUTH):
        plain.bring_in(key, (f"in {key}", MAY))
    bench.workshop, bench.services = plain, plain.services
    bench.review()
    bench.publish()
    assert (len(target.rows), bench.marks()) == (2, {})
