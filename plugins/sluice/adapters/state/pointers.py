"""Pointers to artifacts: `sluice_state.artifact` behind the port `PointerStore`."""

from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import flights
from sluice.errors import NotFound
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import RunId, ShardKey, Token

_SQL: Final = Queries(__package__, "artifact.sql")


class PostgresPointerStore:
    """Pointers in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def add(self, pointer: Pointer, token: Token | None = None) -> None:
        """Record the pointer; with a token, raise `Fenced` unless it is the shard's, or the run's where there is no shard."""
        run, shard = pointer.ref.run, pointer.ref.shard
        with self._database.transaction() as connection:
            if token is not None and shard is None:
                flights.still_run(connection, run, token)
            if token is not None and shard is not None:
                flights.still_shard(connection, run, shard, token)
            put(connection, pointer)

    def of(self, run: RunId, kind: ArtifactKind, shard: ShardKey | None = None) -> list[Pointer]:
        """Return the pointers of one kind that count, ordered by shard, seq and variant."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                _SQL["of_run" if shard is None else "of_shard"], {"run": run, "kind": kind, "shard": shard}
            )
            return [pointer_from_row(row) for row in rows]

    def rows_elsewhere(self, raw: Pointer, made_by: str) -> Pointer | None:
        """Return the rows that another run has made of the very same raw chunk, and that count; None if there are none."""
        facts = {"rows": ArtifactKind.ROWS, "raw": ArtifactKind.RAW, "key": raw.key, "sha256": raw.sha256, "run": raw.ref.run}
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["rows_elsewhere"], {**facts, "made_by": made_by}).fetchone()
            return None if row is None else pointer_from_row(row)

    def named(self, keys: Sequence[str]) -> dict[str, Pointer]:
        """Return a pointer to each of these artifacts, by key."""
        with self._database.transaction() as connection:
            return {row["key"]: pointer_from_row(row) for row in connection.execute(_SQL["named"], {"keys": list(keys)})}


def put(connection: psycopg.Connection[DictRow], pointer: Pointer) -> None:
    """Record the pointer in the caller's transaction; raise `NotFound` if its run or shard is not there."""
    facts = {**pointer.ref.model_dump(), **pointer.model_dump(exclude={"ref"})}
    try:
        connection.execute(_SQL["put"], facts)
    except psycopg.errors.ForeignKeyViolation as exc:
        place = f"run {pointer.ref.run}" if pointer.ref.shard is None else f"shard {pointer.ref.shard} of run {pointer.ref.run}"
        raise NotFound(f"there is no {place} to keep a pointer for", run=pointer.ref.run, shard=pointer.ref.shard) from exc


def pointer_from_row(row: DictRow) -> Pointer:
    """Return the pointer a row stands for."""
    return Pointer(
        ref=ArtifactRef(
            sync=row["sync"],
            run=RunId(row["run"]),
            kind=ArtifactKind(row["kind"]),
            shard=ShardKey(row["shard"]) if row["shard"] is not None else None,
            seq=row["seq"],
            variant=row["variant"],
        ),
        key=row["key"],
        bytes=row["bytes"],
        sha256=row["sha256"],
        records=row["records"],
        expires_at=row["expires_at"],
    )
