"""Opening a run: inside a transaction, a run that asks for work goes in; owner, follower, or over at once, it comes out.

What becomes of it is decided by `guard.flight`; here is what it decides by, and what is written then. All of it happens under
the lock of the request's lease, so that of two runs that are opened at once the second sees what the first has become.
"""

from typing import Any

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.state import audit, flights, handover, journal
from sluice.adapters.state.columns import failure_columns, failure_facts
from sluice.adapters.state.run_rows import SQL, columns_of, find_run, run_from_row
from sluice.errors import FlightTaken
from sluice.guard import flight, takeover
from sluice.model.audit import Actor
from sluice.model.base import RunId
from sluice.model.lifecycle import RUN_TRANSITIONS, RunEvent, RunStatus, advance, destination, sources
from sluice.model.run import Failure, Run
from sluice.model.stage import StagePolicy

Connection = psycopg.Connection[DictRow]


def open_run(connection: Connection, run: Run, policy: StagePolicy, by: Actor | None) -> tuple[Run, list[Run]]:
    """Insert the run or look at it again; return it, and the dead runs of its request that it has ended to take over."""
    ttls = {"lease_ttl": policy.lease_ttl, "state_ttl": policy.state_ttl, "session_ttl": policy.session_ttl}
    row = connection.execute(SQL["insert"], {**columns_of(run), **ttls}).fetchone()
    if row is not None:
        journal.note_run(connection, run.id, "open", row["status"])
        if by is not None:
            audit.note_request(connection, run, by)
    elif flight.is_decided(present := find_run(connection, run.id)):
        return present, []
    holder = _take_flight(connection, run, policy)
    present = find_run(connection, run.id)
    around = _surroundings(connection, present, holder)
    match flight.decide(present, around, policy):
        case flight.Own():
            return _work(connection, present, around, policy)
        case flight.Follow(owner):
            flights.release(connection, run.id)
            return _follow(connection, _readmitted(connection, present, policy), owner), []
        case flight.End(event, follows, failure):
            flights.release(connection, run.id)
            return _end(connection, _readmitted(connection, present, policy), event, follows, failure), []


def _take_flight(connection: Connection, run: Run, policy: StagePolicy) -> RunId | None:
    """Take the flight if it is free, until its next task has begun; else return who has it. Its lease is locked either way."""
    try:
        flights.take(connection, run.id, policy.lease_ttl + policy.gap(run.origin))
    except FlightTaken as taken:
        return RunId(taken.facts["owner"])
    return None


def _surroundings(connection: Connection, run: Run, holder: RunId | None) -> flight.Surroundings:
    moment = connection.execute(SQL["moment"], {"id": run.id}).fetchone()
    newest = connection.execute(SQL["newest_at_work"], {"id": run.id, "request_key": run.request_key}).fetchone()
    assert moment is not None  # noqa: S101 - the run was there a moment ago, in this transaction
    return flight.Surroundings(
        now=moment["now"],
        waited=moment["waited"],
        holder=holder,
        followed=find_run(connection, run.follows) if run.follows is not None else None,
        newest=run_from_row(newest) if newest else None,
        is_outrun=bool(newest and newest["is_outrun"]),
    )


def _readmitted(connection: Connection, run: Run, policy: StagePolicy) -> Run:
    """Return the run, pending again if it has ended as a follower."""
    if run.status is RunStatus.PENDING or run.is_following:
        return run
    return _readmit(connection, run, policy)


def _work(connection: Connection, run: Run, around: flight.Surroundings, policy: StagePolicy) -> tuple[Run, list[Run]]:
    """Let the run own the flight that it has taken, and go on from what is left of its request."""
    owner = run if run.status is RunStatus.PENDING else _readmit(connection, run, policy)
    dead = _end_dead(connection, owner)
    donor = around.newest
    if donor is not None and not around.is_outrun and takeover.is_due(donor, owner, dead):
        handover.adopt(connection, donor.id, owner.id, policy.takeover)
    return owner, dead


def _readmit(connection: Connection, run: Run, policy: StagePolicy) -> Run:
    return _move(connection, run, "readmit", RunEvent.READMIT, {}, lease_ttl=policy.lease_ttl)


def _follow(connection: Connection, run: Run, owner: RunId) -> Run:
    if run.is_following and run.follows == owner:
        return run
    return _move(connection, run, "follow", RunEvent.FOLLOW, {"owner": owner}, owner=owner)


def _end(connection: Connection, run: Run, event: RunEvent, follows: RunId, failure: Failure | None) -> Run:
    facts = {"follows": follows, **failure_facts(failure)}
    return _move(connection, run, "end_without_work", event, facts, follows=follows, **failure_columns(failure))


def _move(connection: Connection, run: Run, query: str, event: RunEvent, facts: dict[str, str], **values: Any) -> Run:
    """Let the event happen to the run, by the query of that name."""
    status = advance(RUN_TRANSITIONS, run.status, event)
    row = connection.execute(
        SQL[query], {"id": run.id, "status": status, "sources": sources(RUN_TRANSITIONS, event), **values}
    ).fetchone()
    if row is None:  # a person, or Ctrl-C, has ended it just now
        return find_run(connection, run.id)
    journal.note_run(connection, run.id, event, status, **facts)
    return run_from_row(row)


def _end_dead(connection: Connection, successor: Run) -> list[Run]:
    """End the runs that died at work on the request; who followed them follows their successor.

    A run that waits for a person is not dead, and goes on waiting.
    """
    failure = takeover.taken_over_by(successor.id)
    at_work = [status for status in sources(RUN_TRANSITIONS, RunEvent.FAIL) if status != RunStatus.WAITING]
    rows = connection.execute(
        SQL["end_dead"],
        {
            "request_key": successor.request_key,
            "successor": successor.id,
            "status": destination(RUN_TRANSITIONS, RunEvent.FAIL),
            "sources": at_work,
            **failure_columns(failure),
        },
    ).fetchall()
    dead = [run_from_row(row) for row in rows]
    for run in dead:
        journal.note_run(connection, run.id, RunEvent.FAIL, run.status, **failure_facts(failure))
        handover.end_shards(connection, run.id, failure, all_of_them=True)
        for follower in connection.execute(SQL["followers"], {"run": run.id, "waiting": RunStatus.WAITING}).fetchall():
            _follow(connection, run_from_row(follower), successor.id)
    return dead
