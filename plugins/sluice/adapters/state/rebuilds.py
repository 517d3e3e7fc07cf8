"""Rows that no release can read, written anew from what the caller knows: the port `RebuildStore`."""

from collections.abc import Callable
from typing import Final

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import flights, journal, redos
from sluice.adapters.state.columns import failure_columns
from sluice.adapters.state.review_rows import review_from_row
from sluice.adapters.state.run_rows import columns_of, run_from_row
from sluice.adapters.state.shards import shard_from_row
from sluice.errors import NotFound, StateUnreadable
from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import (
    FINAL_RUN_STATUSES,
    SHARD_TRANSITIONS,
    ReviewEvent,
    RunStatus,
    ShardEvent,
    Step,
    Verdict,
    destination,
)
from sluice.model.run import RUN_STATE_VERSION, Failure, Run
from sluice.model.shard import SHARD_STATE_VERSION, ShardPlan

_SQL: Final = Queries(__package__, "rebuild.sql")


class PostgresRebuildStore:
    """Rows written anew in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def run(self, admitted: Run) -> None:
        """Write the run's row as it was admitted: failed, unless its status can be read."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["lock_run"], {"run": admitted.id}).fetchone()
            if row is None:
                raise NotFound(f"there is no run {admitted.id}", run=admitted.id)
            if (error := _unreadable(run_from_row, row)) is None:
                return
            status, failure = _standing(row, error)
            connection.execute(
                _SQL["write_run"],
                {
                    **columns_of(admitted),
                    "status": status,
                    "step": row["step"] if row["step"] in set(Step) else Step.SETTLE,
                    "is_final": status in FINAL_RUN_STATUSES,
                    "state_version": RUN_STATE_VERSION,
                    **failure,
                },
            )
            journal.note_run(connection, admitted.id, "rebuild", status)

    def shard(self, run: RunId, plan: ShardPlan) -> None:
        """Begin the shard again from its first page; raise `FlightTaken` while another run of the request is alive."""
        place = {"run": run, "key": plan.key}
        status = destination(SHARD_TRANSITIONS, ShardEvent.RESTART)
        with self._database.transaction() as connection:
            flights.take(connection, run)
            row = connection.execute(_SQL["lock_shard"], place).fetchone()
            if row is None:
                raise NotFound(f"there is no shard {plan.key} of run {run}", run=run, shard=plan.key)
            if _unreadable(shard_from_row, row) is None:
                return
            planned = {"params": Jsonb(plan.params), "transformer_version": plan.transformer_version}
            facts = {**place, **planned, "status": status, "state_version": SHARD_STATE_VERSION}
            connection.execute(_SQL["write_shard"], facts)
            redos.begin_again(connection, run, plan.key)

    def review(self, run: RunId, review: ReviewId) -> None:
        """Remove the review and the decision about it, so that the run is reviewed again."""
        with self._database.transaction() as connection:
            connection.execute(_SQL["lock_run"], {"run": run})
            row = connection.execute(_SQL["lock_review"], {"review": review}).fetchone()
            if row is None or _unreadable(review_from_row, row) is None:
                return
            connection.execute(_SQL["remove_review"], {"review": review})
            journal.note_review(connection, run, review, ReviewEvent.SUPERSEDE, Verdict.SUPERSEDED)


def _unreadable(read: Callable[[DictRow], object], row: DictRow) -> StateUnreadable | None:
    """Return why the row cannot be read; None if it can be, since somebody else was faster."""
    try:
        read(row)
    except StateUnreadable as error:
        return error
    return None


def _standing(row: DictRow, error: StateUnreadable) -> tuple[RunStatus, dict[str, str | None]]:
    """Return the status a run goes on with, and the columns of its failure."""
    if row["status"] in set(RunStatus):
        kept = {name: row[name] for name in ("failure_error", "failure_message")}
        return RunStatus(row["status"]), kept
    return RunStatus.FAILED, failure_columns(Failure.of(error))
