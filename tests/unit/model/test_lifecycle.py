"""The whole square of states and events, for runs, shards and reviews."""

from itertools import product
from typing import Any

import pytest

from sluice.errors import IllegalTransition
from sluice.model.lifecycle import (
    APPROVALS,
    FINAL_RUN_STATUSES,
    REVIEW_TRANSITIONS,
    RUN_TRANSITIONS,
    SHARD_TRANSITIONS,
    WAITING_VERDICTS,
    ReviewEvent,
    RunEvent,
    RunStatus,
    ShardEvent,
    ShardStatus,
    Verdict,
    advance,
    destination,
    sources,
)

R, RE, S, SE, V, VE = RunStatus, RunEvent, ShardStatus, ShardEvent, Verdict, ReviewEvent

RUNS = {
    R.PENDING: {
        RE.ENTER: R.RUNNING,
        RE.FOLLOW: R.WAITING,
        RE.REPLAY: R.SUCCEEDED,
        RE.FAIL: R.FAILED,
        RE.CANCEL: R.CANCELLED,
    },
    R.RUNNING: {
        RE.ENTER: R.RUNNING,
        RE.PARK: R.WAITING,
        RE.SUCCEED: R.SUCCEEDED,
        RE.END_PARTIAL: R.PARTIAL,
        RE.FAIL: R.FAILED,
        RE.CANCEL: R.CANCELLED,
    },
    R.WAITING: {
        RE.ENTER: R.RUNNING,
        RE.FOLLOW: R.WAITING,
        RE.READMIT: R.PENDING,
        RE.PARK: R.WAITING,
        RE.SUCCEED: R.SUCCEEDED,
        RE.END_PARTIAL: R.PARTIAL,
        RE.FAIL: R.FAILED,
        RE.CANCEL: R.CANCELLED,
    },
    R.SUCCEEDED: {},
    R.PARTIAL: {RE.READMIT: R.PENDING, RE.REOPEN: R.RUNNING},
    R.FAILED: {RE.READMIT: R.PENDING, RE.REOPEN: R.RUNNING},
    R.CANCELLED: {RE.READMIT: R.PENDING, RE.REOPEN: R.RUNNING},
}
_AGAIN = {SE.REDO: S.PENDING, SE.RESTART: S.PENDING, SE.RESET: S.PENDING}
_UNWANTED = {SE.SKIP: S.SKIPPED, SE.STOP: S.FAILED}
SHARDS = {
    S.PENDING: {SE.CLAIM: S.RUNNING, **_UNWANTED, **_AGAIN},
    S.RUNNING: {SE.CLAIM: S.RUNNING, SE.SUCCEED: S.SUCCEEDED, SE.FAIL: S.FAILED, **_UNWANTED, **_AGAIN},
    S.SUCCEEDED: _AGAIN,
    S.FAILED: {SE.CLAIM: S.RUNNING, **_UNWANTED, **_AGAIN},
    S.SKIPPED: {SE.RESET: S.PENDING},
}
_ANSWERS = {
    VE.APPROVE: V.APPROVED,
    VE.APPROVE_WITHOUT_DELETES: V.APPROVED_WITHOUT_DELETES,
    VE.REJECT: V.REJECTED,
    VE.EXPIRE: V.EXPIRED,
    VE.SUPERSEDE: V.SUPERSEDED,
}
REVIEWS = {verdict: _ANSWERS if verdict in (V.NEEDS_HUMAN, V.BLOCKED) else {} for verdict in V}

TABLES: list[tuple[dict[Any, Any], dict[Any, dict[Any, Any]], Any, Any]] = [
    (RUN_TRANSITIONS, RUNS, R, RE),
    (SHARD_TRANSITIONS, SHARDS, S, SE),
    (REVIEW_TRANSITIONS, REVIEWS, V, VE),
]
SQUARE = [
    pytest.param(table, state, event, expected[state].get(event), id=f"{states.__name__}-{state}-{event}")
    for table, expected, states, events in TABLES
    for state, event in product(states, events)
]


@pytest.mark.parametrize(("table", "state", "event", "outcome"), SQUARE)
def test_each_state_takes_its_events_and_no_other(table: Any, state: Any, event: Any, outcome: Any) -> None:
    """A legal event leads where it should; an illegal one is refused by name, with the events that are legal."""
    if outcome is not None:
        assert advance(table, state, event) is outcome
        assert state in sources(table, event)
        return
    with pytest.raises(IllegalTransition) as caught:
        advance(table, state, event)
    allowed = caught.value.message.partition("; allowed: ")[2].split(", ")
    assert allowed == (sorted(happening for of, happening in table if of == state) or ["nothing"])
    assert f"{type(state).__name__} {state}: {event} may not happen now" in caught.value.message
    assert caught.value.facts == {"state": str(state), "event": str(event)}
    assert state not in sources(table, event)


@pytest.mark.parametrize(("table", "events"), [(table, events) for table, _, _, events in TABLES])
def test_each_event_leads_to_one_state(table: Any, events: Any) -> None:
    """An UPDATE can name the state an event leads to without knowing which it left."""
    for event in events:
        assert {destination(table, event)} == {table[state, event] for state in sources(table, event)}


def test_the_groups_of_states_agree_with_the_tables() -> None:
    """From an end a run only begins again; what waits takes answers; approvals are among the final verdicts."""
    assert {state for state in R if not set(RUNS[state]) - {RE.REOPEN, RE.READMIT}} == FINAL_RUN_STATUSES
    assert {verdict for verdict in V if REVIEWS[verdict]} == WAITING_VERDICTS
    assert not APPROVALS & WAITING_VERDICTS
