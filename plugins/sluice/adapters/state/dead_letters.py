"""Objects that could not be taken in: `sluice_state.dead_letter` behind the port `DeadLetterStore`."""

from collections.abc import Sequence
from typing import Any, Final

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import flights
from sluice.adapters.state.columns import storable
from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.reject import DeadLetter, DeadLetterStatus, RawAddress, Reject
from sluice.model.run import Run
from sluice.model.shard import Shard

_SQL: Final = Queries(__package__, "dead_letter.sql")


class PostgresDeadLetterStore:
    """Dead letters in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def record(self, run: Run, shard: Shard, rejects: Sequence[Reject]) -> None:
        """Open a dead letter for each reject, or count one more attempt; the same delivery again changes nothing.

        Of several rejects of one object the last stands, as its later delivery does.
        """
        keyed = {reject.key: _columns(reject) for reject in rejects if reject.key is not None}
        without_key = {reject.address: _columns(reject) for reject in rejects if reject.key is None}
        place = {"sync": run.sync, "run": run.id, "shard": shard.key}
        with self._database.transaction() as connection:
            flights.still_shard(connection, run.id, shard.key, shard.token)
            connection.execute(_SQL["record"], {**place, "rejects": Jsonb(list(keyed.values()))})
            connection.execute(_SQL["record_without_key"], {**place, "rejects": Jsonb(list(without_key.values()))})

    def close(self, run: Run, keys: Sequence[ObjectKey]) -> int:
        """Close the open dead letters of objects that came right; return how many there were."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            facts = {"sync": run.sync, "run": run.id, "replays": run.replays, "keys": [storable(key) for key in keys]}
            return connection.execute(_SQL["close"], facts).rowcount

    def open_for(self, sync: str, limit: int) -> list[DeadLetter]:
        """Return open dead letters, newest first."""
        with self._database.transaction() as connection:
            rows = connection.execute(_SQL["open_for"], {"sync": sync, "limit": limit})
            return [dead_letter_from_row(row) for row in rows]


def dead_letter_from_row(row: DictRow) -> DeadLetter:
    """Return the dead letter a row stands for."""
    return DeadLetter(
        id=row["id"],
        sync=row["sync"],
        run=RunId(row["run"]),
        shard=ShardKey(row["shard"]),
        reject=Reject(
            key=ObjectKey(row["object_key"]) if row["object_key"] is not None else None,
            address=RawAddress(artifact=row["raw_artifact"], frame=row["raw_frame"], index=row["raw_index"]),
            error=row["error"],
            field=row["field"],
            message=row["message"],
        ),
        attempts=row["attempts"],
        status=DeadLetterStatus(row["status"]),
        first_seen=row["first_seen"],
        last_seen=row["last_seen"],
    )


def _columns(reject: Reject) -> dict[str, Any]:
    return {
        "object_key": storable(reject.key) if reject.key is not None else None,
        "raw_artifact": reject.address.artifact,
        "raw_frame": reject.address.frame,
        "raw_index": reject.address.index,
        "error": reject.error,
        "field": storable(reject.field) if reject.field is not None else None,
        "message": storable(reject.message),
    }
