"""Steps whose artifacts are lost go in; they are due again, and what was made of these counts no more: the port `RedoStore`."""

from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import flights, journal
from sluice.adapters.state.shards import shard_from_row
from sluice.errors import IllegalTransition
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import SHARD_TRANSITIONS, ShardEvent, destination, sources
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.ports import Holder

_SQL: Final = Queries(__package__, "redo.sql")

Connection = psycopg.Connection[DictRow]


class PostgresRedoStore:
    """Marks in Postgres, each in one transaction with its event."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def fetch_again(self, shard: ShardKey, holder: Holder) -> None:
        """The shard begins again from its first page, in a new epoch; its artifacts and the run's diffs count no more."""
        with self._database.transaction() as connection:
            begin_again(connection, _checked(connection, holder), shard)

    def map_again(self, shard: ShardKey, chunks: Sequence[int], holder: Holder) -> None:
        """Some chunks of the shard are mapped again; rows and rejects of theirs count no more."""
        with self._database.transaction() as connection:
            run = _checked(connection, holder)
            marked = _mark(connection, run, shard, ShardEvent.REDO, "map_again")
            connection.execute(_SQL["supersede_mapped"], {"run": run, "key": shard, "chunks": list(chunks)})
            journal.note_shard(connection, run, shard, ShardEvent.REDO, marked.status, chunks=sorted(chunks))

    def review_again(self, run: Run) -> None:
        """The run is reviewed again; its diffs count no more."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            connection.execute(_SQL["supersede_diffs"], {"run": run.id})
            journal.note_run(connection, run.id, "review-again", run.status)


def begin_again(connection: Connection, run: RunId, shard: ShardKey, event: ShardEvent = ShardEvent.RESTART) -> None:
    """Begin a shard of a run whose lease is locked from its first page, in a new epoch; what was made of it counts no more."""
    begun = _mark(connection, run, shard, event, "fetch_again")
    connection.execute(_SQL["supersede_shard"], {"run": run, "key": shard})
    connection.execute(_SQL["supersede_diffs"], {"run": run})
    journal.note_shard(connection, run, shard, event, begun.status, epoch=begun.epoch)


def _checked(connection: Connection, holder: Holder) -> RunId:
    """Return the holder's run; raise `Fenced` unless his token still is the newest."""
    if isinstance(holder, Shard):
        flights.still_shard(connection, holder.run, holder.key, holder.token)
        return holder.run
    flights.still_run(connection, holder.id, holder.token)
    return holder.id


def _mark(connection: Connection, run: RunId, shard: ShardKey, event: ShardEvent, query: str) -> Shard:
    facts: dict[str, Any] = {
        "run": run,
        "key": shard,
        "status": destination(SHARD_TRANSITIONS, event),
        "sources": sources(SHARD_TRANSITIONS, event),
    }
    row = connection.execute(_SQL[query], facts).fetchone()
    if row is None:
        raise IllegalTransition(f"shard {shard} of run {run} is not there, or skipped: {event} may not happen now")
    return shard_from_row(row)
