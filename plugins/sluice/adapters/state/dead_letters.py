"""Objects that could not be taken in: `sluice_state.dead_letter`, and the rest beside it, behind the port `DeadLetterStore`.

Of a cause at most `MOST_LETTERS` objects have an open letter, for people to read; the others are lines of rejects artifacts.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import flights
from sluice.adapters.state.columns import storable
from sluice.adapters.state.letter_rows import hash_bytes, lines_from_row
from sluice.adapters.state.run_rows import donors_of
from sluice.model.base import ObjectKey
from sluice.model.reject import Counted, DeadLetterLines, Reject, Seen
from sluice.model.run import Mode, Run
from sluice.model.shard import Shard

MOST_LETTERS: Final = 1_000
"""Open letters of one sync and cause."""

_SQL: Final = Queries(__package__, "dead_letter.sql")

Connection = psycopg.Connection[DictRow]


class PostgresDeadLetterStore:
    """Dead letters in Postgres."""

    def __init__(self, database: Transactions, most: int = MOST_LETTERS) -> None:
        """Open at most so many letters of one sync and cause."""
        self._database = database
        self._most = most

    def record(self, run: Run, shard: Shard, rejects: Iterable[Reject], artifact: str) -> None:
        """Open a dead letter for each reject, or count one more attempt; the same delivery again changes nothing.

        Of several rejects of one object the last stands, as its later delivery does.
        """
        facts = {
            "sync": run.sync,
            "run": run.id,
            "shard": shard.key,
            "artifact": artifact,
            "transformer_version": shard.transformer_version or run.transformer_version,
            "is_redrive": run.mode is Mode.REDRIVE,
            "most": self._most,
        }
        with self._database.transaction() as connection:
            flights.still_shard(connection, run.id, shard.key, shard.token)
            facts["delivered_at"] = _delivered_at(connection, run)
            connection.execute(_SQL["create_met"])
            _copy(connection, "copy_met", (_met(line, reject) for line, reject in enumerate(rejects)))
            for query in (
                "know_met",
                "hold_sync",
                "end_twins",
                "leave_twins",
                "keep_last",
                "stay_discarded",
                "leave_discarded",
                "leave_ended",
                "count_again",
                "leave_known",
                "leave_recorded",
                "open_letters",
                "leave_known",
                "note_lines",
            ):
                connection.execute(_SQL[query], facts)

    def open_keys(self, sync: str) -> set[ObjectKey]:
        """Return the objects that have an open letter."""
        with self._database.transaction() as connection:
            return {ObjectKey(row["object_key"]) for row in connection.execute(_SQL["open_keys"], {"sync": sync})}

    def close(self, run: Run, keys: Sequence[ObjectKey]) -> int:
        """Close the open dead letters of objects that came right; return how many there were."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            told = {"sync": run.sync, "run": run.id, "donors": donors_of(connection, run)}
            facts = {**told, "keys": [storable(key) for key in keys]}
            return connection.execute(_SQL["close"], facts).rowcount

    def close_absent(self, run: Run) -> int:
        """Close what a run that has seen all there is has not met; return how many letters there were."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            facts = {"sync": run.sync, "run": run.id, "began": run.created_at}
            connection.execute(_SQL["drop_absent_lines"], facts)
            return connection.execute(_SQL["close_absent"], facts).rowcount

    def lines(self, sync: str) -> list[DeadLetterLines]:
        """Return what has no letter of its own, what was discarded of it included."""
        with self._database.transaction() as connection:
            return [lines_from_row(row) for row in connection.execute(_SQL["lines_of"], {"sync": sync})]

    def settle(self, run: Run, seen: Iterable[Seen], counted: Iterable[Counted]) -> None:
        """Take out of the rest what was seen again; what was discarded of it stays so as long as its bytes do."""
        with self._database.transaction() as connection:
            facts = {
                "sync": run.sync,
                "run": run.id,
                "donors": donors_of(connection, run),
                "is_redrive": run.mode is Mode.REDRIVE,
                "delivered_at": _delivered_at(connection, run),
            }
            for query in ("create_seen", "create_counted", "create_matched"):
                connection.execute(_SQL[query])
            _copy(connection, "copy_seen", map(_seen, seen))
            _copy(connection, "copy_counted", map(_counted, counted))
            flights.still_run(connection, run.id, run.token)
            for query in ("know_settling", "hold_sync", "match", "date_letters", "date_lines", "settle"):
                connection.execute(_SQL[query], facts)
            for query in ("take_back", "give_up_again", "take_back_lines"):
                connection.execute(_SQL[query], facts)


def _delivered_at(connection: Connection, run: Run) -> datetime:
    """Return when the bytes that the run has met were fetched from the supplier, at the earliest."""
    began = run.window.start if run.mode is Mode.REPLAY and run.window is not None else run.created_at
    row = connection.execute(_SQL["delivered"], {"run": run.id, "replays": run.replays, "began": began}).fetchone()
    return began if row is None else row["at"]


def _copy(connection: Connection, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
    with connection.cursor().copy(_SQL[query]) as copy:
        for row in rows:
            copy.write_row(row)


def _met(line: int, reject: Reject) -> tuple[Any, ...]:
    address = reject.address
    return (
        line,
        storable(reject.identity),
        storable(reject.key) if reject.key is not None else None,
        hash_bytes(reject.raw_hash),
        address.artifact,
        address.frame,
        address.index,
        reject.error,
        storable(reject.field) if reject.field is not None else None,
        storable(reject.message),
    )


def _seen(one: Seen) -> tuple[Any, ...]:
    address = one.address
    place = (address.artifact, address.frame, address.index) if address is not None else (None, None, None)
    return (storable(one.identity), hash_bytes(one.raw_hash), one.artifact, one.line, *place)


def _counted(counted: Counted) -> tuple[Any, ...]:
    return (counted.row, counted.line, storable(counted.identity), hash_bytes(counted.raw_hash))
