"""What people do to runs, shards and leases, each in one transaction with its event and its entry in the audit trail."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import audit, flights, handover, journal, redos
from sluice.adapters.state.columns import failure_columns, failure_facts
from sluice.adapters.state.reviews import decide_review
from sluice.adapters.state.run_rows import run_from_row
from sluice.adapters.state.shards import find_shard, shard_from_row
from sluice.errors import CalledOff, NotFound, StoppedByHand
from sluice.guard import by_hand
from sluice.model.audit import Act, Actor
from sluice.model.base import ReviewId, RunId, ShardKey
from sluice.model.lease import Lease
from sluice.model.lifecycle import (
    REVIEW_TRANSITIONS,
    RUN_TRANSITIONS,
    SHARD_TRANSITIONS,
    ReviewEvent,
    RunEvent,
    RunStatus,
    ShardEvent,
    destination,
    sources,
)
from sluice.model.review import Choice, Decision
from sluice.model.run import Failure, Run
from sluice.model.shard import Shard

_SQL: Final = Queries(__package__, "by_hand.sql")

Connection = psycopg.Connection[DictRow]


class PostgresByHandStore:
    """Acts by hand in Postgres. Each locks the flight of the run's request first, as whoever works does."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def reset_shard(self, run: RunId, shard: ShardKey, by: Actor) -> Shard:
        """Let the shard begin again from its first page; one that nothing was fetched of stays as it is."""

        def reset(connection: Connection, present: Run, before: Shard) -> None:
            if by_hand.is_reset_due(present, before):
                redos.begin_again(connection, run, shard, ShardEvent.RESET)
                _note(connection, Act.RESET_SHARD, by, before, present)

        return self._act(run, shard, reset)

    def skip_shard(self, run: RunId, shard: ShardKey, by: Actor) -> Shard:
        """Let the run do without the shard."""

        def skip(connection: Connection, present: Run, before: Shard) -> None:
            if by_hand.is_skip_due(present, before):
                _let_happen(connection, before, ShardEvent.SKIP, "skip", None)
                _note(connection, Act.SKIP_SHARD, by, before, present)

        return self._act(run, shard, skip)

    def stop_shard(self, run: RunId, shard: ShardKey, by: Actor) -> Shard:
        """Let the shard fail where it stands."""

        def stop(connection: Connection, present: Run, before: Shard) -> None:
            stopped = connection.execute(_SQL["is_stopped"], {"run": run, "key": shard}).fetchone()
            if by_hand.is_stop_due(present, before, is_stopped=bool(stopped and stopped["is_stopped"])):
                _let_happen(connection, before, ShardEvent.STOP, "stop", Failure.of(StoppedByHand(f"stopped by {by}")))
                _note(connection, Act.STOP_SHARD, by, before, present)

        return self._act(run, shard, stop)

    def _act(self, run: RunId, shard: ShardKey, act: Callable[[Connection, Run, Shard], None]) -> Shard:
        """Do something to a shard while nobody else can, and return what it is then."""
        with self._database.transaction() as connection, _locked(connection, run) as present:
            act(connection, present, find_shard(connection, run, shard))
            return find_shard(connection, run, shard)

    def cancel_run(self, run: RunId, by: Actor) -> Run:
        """End the run, fence all who work in it, reject its reviews that wait, and release its flight."""
        failure = Failure.of(CalledOff(f"cancelled by {by}"))
        with self._database.transaction() as connection, _locked(connection, run) as before:
            cleared = connection.execute(_SQL["is_cleared"], {"run": run}).fetchone()
            if not by_hand.is_cancel_due(before, is_cleared=bool(cleared and cleared["is_cleared"])):
                return before
            facts = {
                "id": run,
                "status": destination(RUN_TRANSITIONS, RunEvent.CANCEL),
                "sources": sources(RUN_TRANSITIONS, RunEvent.CANCEL),
                **failure_columns(failure),
            }
            query = "cancel_again" if before.status is RunStatus.CANCELLED else "cancel"
            row = connection.execute(_SQL[query], facts).fetchone()
            assert row is not None  # noqa: S101 - it was looked at under the same lock
            cancelled = run_from_row(row)
            journal.note_run(connection, run, RunEvent.CANCEL, cancelled.status, **failure_facts(failure))
            handover.end_shards(connection, run, failure, all_of_them=True)
            audit.note(connection, Act.CANCEL_RUN, by, sync=before.sync, run=run, status=before.status, step=before.step)
            _reject_waiting(connection, cancelled, by)
            flights.release(connection, run)
            return cancelled

    def leases(self) -> list[Lease]:
        """Return all leases, by sync and key."""
        with self._database.transaction() as connection:
            return [_lease(row) for row in connection.execute(_SQL["leases"])]

    def release_lease(self, key: str, heartbeat: Callable[[str], timedelta], by: Actor) -> Lease | None:
        """Take a request's flight back, and fence whoever works in its owner all the same."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["lock_lease"], {"key": key}).fetchone()
            if row is None:
                if connection.execute(_SQL["is_request"], {"key": key}).fetchone() is None:
                    raise NotFound(f"no run has ever asked for {key}: `sluice lease list` shows what leases there are")
                return None
            lease = _lease(row)
            by_hand.require_silent(lease, row["silence"], heartbeat(lease.stage))
            connection.execute(_SQL["fence_run"], {"run": lease.owner})
            flights.release(connection, lease.owner)
            audit.note(connection, Act.RELEASE_LEASE, by, sync=lease.sync, run=lease.owner, subject=key)
            return lease

    def note_clearing(self, run: RunId, times: int) -> None:
        """Note how often the run's DagRun has been cleared."""
        with self._database.transaction() as connection:
            connection.execute(_SQL["note_clearing"], {"run": run, "times": times})


@contextmanager
def _locked(connection: Connection, run: RunId) -> Iterator[Run]:
    """Yield the run, while nobody else can change it or its shards."""
    with flights.locked(connection, run):
        row = connection.execute(_SQL["lock_run"], {"run": run}).fetchone()
        assert row is not None  # noqa: S101 - its flight could be locked
        yield run_from_row(row)


def _let_happen(connection: Connection, shard: Shard, event: ShardEvent, query: str, failure: Failure | None) -> None:
    """Let the event happen to a shard whose flight is locked, by the query of that name."""
    facts = {
        "run": shard.run,
        "key": shard.key,
        "status": destination(SHARD_TRANSITIONS, event),
        "sources": sources(SHARD_TRANSITIONS, event),
        **failure_columns(failure),
    }
    row = connection.execute(_SQL[query], facts).fetchone()
    assert row is not None  # noqa: S101 - it was looked at under the same lock
    changed = shard_from_row(row)
    journal.note_shard(connection, shard.run, shard.key, event, changed.status, **failure_facts(failure))


def _note(connection: Connection, act: Act, by: Actor, before: Shard, run: Run) -> None:
    facts = {"status": before.status, "pages": before.pages, "records": before.records}
    audit.note(connection, act, by, sync=run.sync, run=run.id, subject=before.key, **facts)


def _reject_waiting(connection: Connection, run: Run, by: Actor) -> None:
    """Reject what nobody has to decide about any more; a run that is begun again meets the rejection."""
    waiting = {"run": run.id, "sources": sources(REVIEW_TRANSITIONS, ReviewEvent.REJECT)}
    comment = f"its run was cancelled: {by.reason}"
    for row in connection.execute(_SQL["waiting_reviews"], waiting).fetchall():
        rejection = Decision(choice=Choice.REJECT, by=by.name, via=by.via, comment=comment, at=row["now"])
        decide_review(connection, ReviewId(row["id"]), rejection)


def _lease(row: DictRow) -> Lease:
    return Lease(
        key=row["key"],
        owner=RunId(row["owner"]),
        sync=row["sync"],
        stage=row["stage"],
        status=RunStatus(row["status"]),
        seen_at=row["progress_at"],
        expires_at=row["expires_at"],
        is_expired=row["is_expired"],
    )
