"""What a redrive takes up of the dead letters, and what becomes of those: the port `RedriveStore` on Postgres."""

from collections.abc import Mapping, Sequence
from typing import Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import flights
from sluice.adapters.state.columns import storable
from sluice.adapters.state.letter_rows import dead_letter_from_row, hash_bytes, lines_from_row, multirange, selection
from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.reject import DeadLetter, DeadLetterLines, RawAddress
from sluice.model.run import Redrive, Run
from sluice.model.shard import Shard

_SQL: Final = Queries(__package__, "redrive.sql")


class PostgresRedriveStore:
    """Redrives in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def shards(self, sync: str, redrive: Redrive) -> dict[ShardKey, int]:
        """Return how many objects there are to be taken up, by the shard that delivered them."""
        with self._database.transaction() as connection:
            rows = connection.execute(_SQL["shards"], selection(sync, redrive))
            return {ShardKey(row["shard"]): row["objects"] for row in rows}

    def state(self, sync: str, redrive: Redrive) -> str:
        """Return what is another text once other objects are selected."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["state"], selection(sync, redrive)).fetchone() or {}
            return " ".join(f"{name}={value}" for name, value in row.items())

    def letters(self, run: Run, shard: ShardKey, after: RawAddress | None, limit: int) -> list[DeadLetter]:
        """Return selected letters of a shard, ordered by the address of their bytes, behind one."""
        place = after.model_dump() if after is not None else {"artifact": None, "frame": None, "index": None}
        facts = {**selection(run.sync, _redrive(run)), **place, "shard": shard, "limit": limit}
        with self._database.transaction() as connection:
            return [dead_letter_from_row(row) for row in connection.execute(_SQL["letters"], facts)]

    def lines(self, run: Run, shard: ShardKey, after: int) -> list[DeadLetterLines]:
        """Return what of a shard is selected without a letter of its own, behind one of these."""
        facts = {**selection(run.sync, _redrive(run)), "run": run.id, "shard": shard, "after": after}
        with self._database.transaction() as connection:
            return [lines_from_row(row) for row in connection.execute(_SQL["lines"], facts)]

    def take_up(self, shard: Shard, letters: Mapping[int, str]) -> None:
        """Note that the shard's run has the bytes of these letters, whose hashes are given."""
        facts = {"run": shard.run, "ids": list(letters), "hashes": [hash_bytes(found) for found in letters.values()]}
        with self._database.transaction() as connection:
            flights.still_shard(connection, shard.run, shard.key, shard.token)
            connection.execute(_SQL["take_up"], facts)

    def take_up_lines(self, shard: Shard, row: int, lines: Sequence[int]) -> None:
        """Note that the shard's run has the bytes of these lines."""
        with self._database.transaction() as connection:
            flights.still_shard(connection, shard.run, shard.key, shard.token)
            connection.execute(_SQL["take_up_lines"], {"run": shard.run, "row": row, "lines": multirange(lines)})

    def taken(self, run: RunId) -> list[DeadLetter]:
        """Return the letters that the run has taken up, whatever has become of them since."""
        with self._database.transaction() as connection:
            return [dead_letter_from_row(row) for row in connection.execute(_SQL["taken"], {"run": run})]

    def taken_lines(self, run: RunId) -> list[DeadLetterLines]:
        """Return what the run has taken up that has no letter of its own and has not come again since."""
        with self._database.transaction() as connection:
            return [lines_from_row(row) for row in connection.execute(_SQL["taken_lines"], {"run": run})]

    def close(self, run: Run, shards: Sequence[ShardKey], overtaken: Sequence[ObjectKey], hashes: Sequence[str]) -> int:
        """Close what the run has taken up in these shards and not rejected again; return how many letters there were."""
        keys, known = [storable(key) for key in overtaken], [hash_bytes(found) for found in hashes]
        facts = {"run": run.id, "shards": list(shards), "overtaken": keys, "hashes": known}
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            connection.execute(_SQL["settle_redriven"], facts)
            return connection.execute(_SQL["close_redriven"], facts).rowcount


def hand_over(connection: psycopg.Connection[DictRow], donor: RunId, run: RunId) -> None:
    """Let a run have what the dead one that it goes on from had taken up."""
    connection.execute(_SQL["hand_over"], {"donor": donor, "run": run})


def _redrive(run: Run) -> Redrive:
    return run.redrives or Redrive()
