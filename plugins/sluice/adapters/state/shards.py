"""The shards of runs and their checkpoints: `sluice_state.shard` behind the port `ShardStore`."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import flights, handover, journal, pointers
from sluice.adapters.state.columns import failure_columns, failure_facts, failure_from_row, storable
from sluice.adapters.state.versions import Row, Versioned
from sluice.errors import IllegalTransition, NotFound, StoppedByHand
from sluice.model.artifact import Pointer
from sluice.model.base import RunId, ShardKey, Token
from sluice.model.lifecycle import SHARD_TRANSITIONS, ShardEvent, ShardStatus, advance, destination, sources
from sluice.model.run import Failure, Run
from sluice.model.shard import SHARD_STATE_VERSION, Shard, ShardPlan

_SQL: Final = Queries(__package__, "shard.sql")
_UNDER_WAY: Final = sources(SHARD_TRANSITIONS, ShardEvent.SUCCEED)


class PostgresShardStore:
    """Shards in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def plan(self, run: Run, plans: Sequence[ShardPlan], watermarks: Mapping[ShardKey, str]) -> list[Shard]:
        """Insert the shards that are not there yet; `Fenced` on an older run token. Return all shards of the run."""
        planned = [{**plan.model_dump(), "watermark": watermarks.get(plan.key)} for plan in plans]
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            connection.execute(
                _SQL["plan"],
                {
                    "run": run.id,
                    "status": ShardStatus.PENDING,
                    "state_version": SHARD_STATE_VERSION,
                    "plans": Jsonb(planned),
                },
            )
            journal.note_run(connection, run.id, "plan", run.status, shards=len(planned))
            return _of(connection, run.id)

    def adopt(self, run: Run, donors: Sequence[RunId], versions: Mapping[ShardKey, int], expires_at: datetime) -> list[Shard]:
        """Give a replay the shards that the runs it replays have fetched; `Fenced` on an older run token."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            handover.replay(connection, run, donors, versions, expires_at)
            return _of(connection, run.id)

    def of(self, run: RunId) -> list[Shard]:
        """Return the run's shards, ordered by key."""
        with self._database.transaction() as connection:
            return _of(connection, run)

    def get(self, run: RunId, key: ShardKey) -> Shard:
        """Return one shard of the run; raise `NotFound` naming it."""
        with self._database.transaction() as connection:
            return find_shard(connection, run, key)

    def delivered(self, sync: str, runs: int) -> dict[ShardKey, tuple[int, ...]]:
        """Return how many records each shard had in the last full runs that succeeded, newest first."""
        found: dict[ShardKey, tuple[int, ...]] = {}
        with self._database.transaction() as connection:
            for row in connection.execute(_SQL["delivered"], {"sync": sync, "runs": runs}):
                found[ShardKey(row["key"])] = tuple(row["records"])
        return found

    def claim(self, run: RunId, key: ShardKey) -> Shard:
        """Claim the shard; raise `FlightTaken` while another run of the request is alive, `StoppedByHand` if it was stopped."""
        with self._database.transaction() as connection:
            before = find_shard(connection, run, key)
            if before.status not in sources(SHARD_TRANSITIONS, ShardEvent.CLAIM):
                return before
            flights.take(connection, run)
            row = connection.execute(_SQL["claim"], {"run": run, "key": key, **_claiming()}).fetchone()
            return _claimed(connection, row) if row else _unclaimed(find_shard(connection, run, key))

    def claim_next(self, run: RunId) -> Shard | None:
        """Claim some pending shard; raise `FlightTaken` while another run of the same request is alive."""
        with self._database.transaction() as connection:
            if connection.execute(_SQL["first_pending"], {"run": run}).fetchone() is None:
                return None
            flights.take(connection, run)
            row = connection.execute(_SQL["claim_next"], {"run": run, **_claiming()}).fetchone()
            return _claimed(connection, row) if row else None

    def checkpoint(self, shard: Shard, pointer: Pointer, lease_ttl: timedelta) -> Shard:
        """Commit the pointer and the cursor behind it together."""
        with self._database.transaction() as connection:
            flights.still_shard(connection, shard.run, shard.key, shard.token, lease_ttl)
            row = connection.execute(_SQL["checkpoint"], {**_identity(shard), **_progress(shard)}).fetchone()
            if row is None:
                status = find_shard(connection, shard.run, shard.key).status
                raise IllegalTransition(f"shard {shard.key} of run {shard.run} is {status}: only a running one gets further")
            pointers.put(connection, pointer)
            return shard_from_row(row)

    def renew(self, shard: Shard, lease_ttl: timedelta) -> None:
        """Extend the flight of the shard's run; `Fenced` on an older token."""
        with self._database.transaction() as connection:
            flights.still_shard(connection, shard.run, shard.key, shard.token, lease_ttl)
            flights.keep(connection, shard.run)

    def succeed(self, shard: Shard) -> Shard:
        """The shard is fetched and transformed; its mark is kept."""
        return self._finish(shard, ShardEvent.SUCCEED, "succeed", None)

    def fail(self, shard: Shard, failure: Failure, silence: timedelta | None = None) -> Shard:
        """The shard gave up; its cursor stands."""
        return self._finish(shard, ShardEvent.FAIL, "fail", failure, silence)

    def _finish(
        self, shard: Shard, event: ShardEvent, query: str, failure: Failure | None, silence: timedelta | None = None
    ) -> Shard:
        with self._database.transaction() as connection:
            flights.still_shard(connection, shard.run, shard.key, shard.token)
            if silence is not None:
                flights.hold_out(connection, shard.run, silence)
            facts = {**_identity(shard), "high_mark": shard.high_mark, **_transition(event), **failure_columns(failure)}
            row = connection.execute(_SQL[query], facts).fetchone()
            if row is None:
                advance(SHARD_TRANSITIONS, find_shard(connection, shard.run, shard.key).status, event)
                raise IllegalTransition(f"shard {shard.key} of run {shard.run} has pages left to fetch: it has not succeeded")
            journal.note_shard(connection, shard.run, shard.key, event, row["status"], **failure_facts(failure))
            return shard_from_row(row)


def shard_from_row(row: DictRow) -> Shard:
    """Return the shard a row stands for; raise `StateTooNew` or `StateUnreadable`, see `versions`."""
    return _VERSIONED.read(row)


def _noun(row: Row) -> Shard:
    return Shard(
        run=RunId(row["run"]),
        key=ShardKey(row["key"]),
        params=row["params"],
        status=ShardStatus(row["status"]),
        transformer_version=row["transformer_version"],
        epoch=row["epoch"],
        cursor=row["cursor"],
        exhausted=row["exhausted"],
        watermark=row["watermark"],
        until=row["until"],
        supplied_at=row["supplied_at"],
        high_mark=row["high_mark"],
        chunks=row["chunks"],
        pages=row["pages"],
        records=row["records"],
        attempt=row["attempt"],
        token=Token(row["token"]),
        failure=failure_from_row(row),
        state_version=row["state_version"],
        progress_at=row["progress_at"],
    )


def _with_epoch(row: Row) -> Row:
    """Version 1 never began a shard again."""
    return {"epoch": 0, **row}


def _with_bounds(row: Row) -> Row:
    """Version 2 did not know the supplier's time."""
    return {"until": None, "supplied_at": None, **row}


def _with_version(row: Row) -> Row:
    """Version 3 had one transformation for all shards of a run."""
    return {"transformer_version": None, **row}


_VERSIONED: Final = Versioned(
    table="shard",
    known=SHARD_STATE_VERSION,
    identity={"shard": "key", "run": "run"},
    migrations={1: _with_epoch, 2: _with_bounds, 3: _with_version},
    build=_noun,
)


def _of(connection: psycopg.Connection[DictRow], run: RunId) -> list[Shard]:
    return [shard_from_row(row) for row in connection.execute(_SQL["of_run"], {"run": run})]


def find_shard(connection: psycopg.Connection[DictRow], run: RunId, key: ShardKey) -> Shard:
    """Return the shard; raise `NotFound` naming it."""
    row = connection.execute(_SQL["get"], {"run": run, "key": storable(key)}).fetchone()
    if row is None:
        raise NotFound(f"there is no shard {key} of run {run}: `sluice show {run}` lists its shards", run=run, shard=key)
    return shard_from_row(row)


def _claimed(connection: psycopg.Connection[DictRow], row: DictRow) -> Shard:
    shard = shard_from_row(row)
    journal.note_shard(connection, shard.run, shard.key, ShardEvent.CLAIM, shard.status, attempt=shard.attempt)
    return shard


def _unclaimed(shard: Shard) -> Shard:
    """Return a shard that has come in meanwhile, or was skipped; raise `StoppedByHand` if it could have been claimed."""
    if shard.failure is not None:
        raise StoppedByHand(f"shard {shard.key} of run {shard.run}: {shard.failure.message}", run=shard.run, shard=shard.key)
    return shard


def _transition(event: ShardEvent) -> dict[str, Any]:
    return {"status": destination(SHARD_TRANSITIONS, event), "sources": sources(SHARD_TRANSITIONS, event)}


def _claiming() -> dict[str, Any]:
    return {**_transition(ShardEvent.CLAIM), "state_version": SHARD_STATE_VERSION}


def _identity(shard: Shard) -> dict[str, Any]:
    return {"run": shard.run, "key": shard.key, "token": shard.token}


def _progress(shard: Shard) -> dict[str, Any]:
    return {
        "sources": _UNDER_WAY,
        "cursor": None if shard.cursor is None else Jsonb(shard.cursor),
        "exhausted": shard.exhausted,
        "until": shard.until,
        "supplied_at": shard.supplied_at,
        "high_mark": shard.high_mark,
        "chunks": shard.chunks,
        "pages": shard.pages,
        "records": shard.records,
    }
