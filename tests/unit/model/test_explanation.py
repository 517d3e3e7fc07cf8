"""Which publication a value dates from, and which values came before, however much of that is still known."""

from typing import Any

import pytest

from sluice.model.base import ObjectKey, PublicationId, RunId, ShardKey
from sluice.model.explanation import Explanation, RawRecord, Trace
from sluice.model.ledger import ObjectEvent, Outcome
from tests.support.nouns import MINUTE, NOW

RECORD = RawRecord(artifact="raw-0", shard=ShardKey("all"), chunk=0, page=0, index=0, data=b"{}")


def trace(publication: int, outcome: Outcome, rooms: str | None = None, *, is_known: bool = True, **more: Any) -> Trace:
    """Return what one publication made of the object; without rooms it is gone."""
    took_out = outcome is Outcome.DELETED or outcome is Outcome.STALE
    return Trace(
        event=ObjectEvent(
            at=NOW + publication * MINUTE,
            run=RunId(f"run-{publication}"),
            outcome=outcome,
            old_hash=None,
            new_hash=None if took_out else (rooms or "?").encode() * 16,
            source_version=None,
            publication=PublicationId(publication),
        ),
        publication=None,
        review=None,
        run=None,
        values={"id": "a", "rooms": rooms} if is_known and not took_out else None,
        raw=more.get("raw"),
    )


def explained(*traces: Trace, earlier: int = 0) -> Explanation:
    """Return an explanation of the object, given its traces from the oldest on."""
    return Explanation(sync="places", key=ObjectKey("a"), held=None, traces=traces[::-1], earlier=earlier, altered=None)


def former(explanation: Explanation) -> list[tuple[str | None, int | None, bool]]:
    """Return the values of `rooms`, the publication of each, and whether that is certain."""
    return [(origin.value, origin.publication, origin.is_certain) for origin in explanation.former("rooms")]


def test_a_value_dates_from_where_it_came_to_be() -> None:
    """Publications that left it alone, and stale rows, do not count; a value that came back is told twice."""
    told = explained(
        trace(1, Outcome.CREATED, "1"),
        trace(2, Outcome.CHANGED, "2"),
        trace(3, Outcome.CHANGED, "2"),
        trace(4, Outcome.STALE),
        trace(5, Outcome.CHANGED, "1"),
        trace(6, Outcome.CHANGED, "1"),
    )
    assert former(told) == [("1", 5, True), ("2", 2, True), ("1", 1, True)]
    assert [(origin.field, origin.publication) for origin in told.origins] == [("id", 1), ("rooms", 5)]
    assert told.present is told.traces[0]


def test_a_deletion_ends_a_value() -> None:
    """What came back after it dates from its return; after the last one nothing is present."""
    told = explained(trace(1, Outcome.CREATED, "1"), trace(2, Outcome.DELETED), trace(3, Outcome.REAPPEARED, "1"))
    assert former(told) == [("1", 3, True), ("1", 1, True)]
    gone = explained(trace(1, Outcome.CREATED, "1"), trace(2, Outcome.DELETED))
    assert (gone.present, gone.origins, former(gone)) == (None, (), [("1", 1, True)])


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            explained(
                trace(1, Outcome.CREATED, "1"), trace(2, Outcome.CHANGED, "1", is_known=False), trace(3, Outcome.CHANGED, "1")
            ),
            [("1", 3, False), ("1", 1, True)],
        ),
        (explained(trace(8, Outcome.CHANGED, "1"), trace(9, Outcome.CHANGED, "1"), earlier=7), [("1", 8, False)]),
        (explained(trace(9, Outcome.CHANGED, "1", is_known=False)), []),
    ],
    ids=["between", "earlier", "all"],
)
def test_what_is_gone_leaves_an_origin_uncertain(told: Explanation, expected: list[tuple[str, int, bool]]) -> None:
    """A row that nobody knows any more may have held the value already."""
    assert former(told) == expected


def test_a_row_that_was_put_back_comes_from_where_it_had_come_from() -> None:
    """Its source is the trace that has the record it was made of; without one it is itself."""
    first = trace(1, Outcome.CREATED, "1", raw=RECORD)
    other = trace(2, Outcome.CHANGED, "2", raw=RECORD)
    back = trace(3, Outcome.ROLLED_BACK, "1")
    assert explained(first, other, back).source_of(back) is first
    assert explained(other, back).source_of(back) is back
    assert explained(first, other).source_of(other) is other


def test_traces_are_found_by_publication() -> None:
    """One that wrote nothing of the object is not among them."""
    written, stale = trace(1, Outcome.CREATED, "1"), trace(2, Outcome.STALE)
    told = explained(written, stale)
    assert (told.trace_of(PublicationId(1)), told.trace_of(PublicationId(2)), told.trace_of(None)) == (written, None, None)
