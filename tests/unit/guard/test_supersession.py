"""Supersession: which reviews of older runs a newer one takes the place of."""

from datetime import UTC, datetime
from typing import Any

import pytest

from sluice.guard.supersession import Reviewed, covers
from sluice.model.base import PublicationId, RunId, ShardKey
from sluice.model.ledger import Outcome
from sluice.model.review import Figures
from sluice.model.run import Mode, Window
from tests.support.nouns import a_run

MAY = Window(start=datetime(2024, 5, 1, tzinfo=UTC), end=datetime(2024, 6, 1, tzinfo=UTC))
NORTH, SOUTH = ShardKey("north"), ShardKey("south")
BOTH = {NORTH: "1", SOUTH: "2"}


def reviewed(
    mode: Mode = Mode.FULL, marks: dict[ShardKey, str | None] | None = None, *, seen: int = 10, **facts: Any
) -> Reviewed:
    """A run that was reviewed."""
    outcomes = {Outcome.REJECTED: facts.pop("rejected", 0), Outcome.DELETED: facts.pop("deleted", 0)}
    counts = {"shards_failed": facts.pop("failed", 0), "outcomes": outcomes}
    figures = Figures(seen=seen, unchanged=0, live_before=10, **counts)
    return Reviewed(a_run(mode=mode, **facts), figures, marks if marks is not None else dict.fromkeys(BOTH))


def full(*shards: ShardKey, **facts: Any) -> Reviewed:
    """A full run of some shards, or of all."""
    return reviewed(Mode.FULL, dict.fromkeys(shards or BOTH), shards=shards, **facts)


def incremental(marks: dict[ShardKey, str | None] | dict[ShardKey, str] = BOTH, **facts: Any) -> Reviewed:
    """An incremental run from some watermarks on."""
    return reviewed(Mode.INCREMENTAL, dict(marks), **facts)


def rollback(undoes: int = 1, **facts: Any) -> Reviewed:
    """A run that takes a publication back."""
    return reviewed(Mode.ROLLBACK, {}, undoes=PublicationId(undoes), seen=0, **facts)


def replay(of: str = "run-1", *shards: ShardKey, **facts: Any) -> Reviewed:
    """A run that maps again what another has fetched."""
    return reviewed(Mode.REPLAY, {}, replays=RunId(of), shards=shards, **facts)


@pytest.mark.parametrize(
    ("newer", "older", "is_covered"),
    [
        (replay(), full(), True),
        (replay(), incremental(), True),
        (replay(), full(deleted=1), False),
        (replay("run-0"), full(), False),
        (replay("run-1", NORTH), full(), False),
        (replay(failed=1), full(), False),
        (replay(rejected=10), full(), False),
        (replay(rejected=10), full(rejected=10), True),
        (replay(), replay(), True),
        (replay("run-2"), replay(), False),
        (full(), replay(), True),
        (incremental(), replay(), False),
        (full(), full(), True),
        (full(), full(NORTH), True),
        (full(), full(window=MAY), True),
        (full(), incremental(), True),
        (full(), full(failed=1), True),
        (full(NORTH), full(), False),
        (full(NORTH), full(NORTH), True),
        (full(NORTH), full(SOUTH), False),
        (full(NORTH, SOUTH), full(SOUTH), True),
        (full(NORTH, SOUTH), full(), False),
        (full(NORTH), incremental({NORTH: "1"}, shards=(NORTH,)), True),
        (full(NORTH), incremental(), False),
        (full(window=MAY), full(window=MAY), False),
        (full(failed=1), full(), False),
        (full(seen=0), full(), False),
        (full(seen=5, rejected=5), full(), False),
        (full(seen=0), full(seen=0), True),
        (full(seen=1), full(seen=0), True),
        (incremental(), incremental(), True),
        (incremental(), incremental({NORTH: "1"}), True),
        (incremental({NORTH: "1"}), incremental(), False),
        (incremental({NORTH: "2", SOUTH: "2"}), incremental(), False),
        (incremental({NORTH: None, SOUTH: "2"}), incremental(), True),
        (incremental(), incremental({NORTH: None, SOUTH: "2"}), False),
        (incremental(), full(), False),
        (incremental(), incremental(window=MAY), False),
        (incremental(window=MAY), incremental(), False),
        (incremental(failed=1), incremental(), False),
        (incremental(seen=0), incremental(), False),
        (rollback(), full(), False),
        (full(), rollback(), False),
        (rollback(), rollback(), True),
        (rollback(), rollback(2), False),
    ],
)
def test_what_a_newer_review_covers(newer: Reviewed, older: Reviewed, *, is_covered: bool) -> None:
    """It does if its run looked at all that the older one did, and got an answer."""
    assert covers(newer, older) is is_covered
