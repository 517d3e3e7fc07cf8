"""Reading the ledger: keys in, what is known of the objects out. Publications alone write it."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import psycopg
from psycopg.rows import DictRow, tuple_row

from sluice.adapters.postgres import Database
from sluice.adapters.queries import Queries
from sluice.model.base import ObjectKey, PublicationId, ReviewId, RunId, ShardKey
from sluice.model.ledger import LedgerObject, ObjectEvent, ObjectState, Outcome, Publication, Remembered

_SQL: Final = Queries(__package__, "ledger.sql")
_LARGEST: Final = 2**63 - 1
"""No publication has a larger number."""


def publication_of(executor: psycopg.Connection[DictRow] | psycopg.Cursor[DictRow], review: ReviewId) -> Publication | None:
    """Return the publication of that review, if it was applied, as the caller's transaction sees it."""
    row = executor.execute(_SQL["publication_of"], {"review": review}).fetchone()
    return publication_from_row(row) if row else None


def publication_from_row(row: DictRow) -> Publication:
    """Return the publication a row of `sluice_ledger.publication` stands for."""
    return Publication(
        id=PublicationId(row["id"]),
        sync=row["sync"],
        review=ReviewId(row["review"]),
        run=RunId(row["run"]),
        counts={Outcome(name): number for name, number in row["counts"].items()},
        approved_by=row["approved_by"],
        undo_key=row["undo_key"],
        undoes=PublicationId(row["undoes"]) if row["undoes"] is not None else None,
        rolled_back_by=PublicationId(row["rolled_back_by"]) if row["rolled_back_by"] is not None else None,
        applied_at=row["applied_at"],
        transformer_versions=tuple(row["transformer_versions"] or ()),
    )


class PostgresLedger:
    """The ledger beside a target."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def remembered(self, sync: str, transformer_version: int, keys: Sequence[ObjectKey]) -> dict[ObjectKey, Remembered]:
        """Return what is remembered of those live objects under that transformer version."""
        # Keys as one document and rows as tuples, in binary: a chunk asks for more than ten thousand.
        facts = {"sync": sync, "transformer_version": transformer_version, "keys": msgspec.json.encode(keys).decode()}
        with self._database.transaction() as connection, connection.cursor(binary=True, row_factory=tuple_row) as cursor:
            found = cursor.execute(_SQL["remembered"], facts).fetchall()
            return {key: Remembered(raw, row, version) for key, raw, row, version in found}

    def object(self, sync: str, key: ObjectKey) -> LedgerObject | None:
        """Return the ledger's row of one object."""
        rows = self._rows("object", sync=sync, key=key)
        return _object_from_row(rows[0]) if rows else None

    def known(self, sync: str, keys: Sequence[ObjectKey]) -> dict[ObjectKey, LedgerObject]:
        """Return the ledger's rows of those objects that it knows."""
        return {ObjectKey(row["key"]): _object_from_row(row) for row in self._rows("known", sync=sync, keys=list(keys))}

    def near(self, sync: str, key: ObjectKey, limit: int) -> list[ObjectKey]:
        """Return known keys that come before and after this one in key order."""
        return [ObjectKey(row["key"]) for row in self._rows("near", sync=sync, key=key, limit=limit)]

    def events(self, sync: str, key: ObjectKey) -> list[ObjectEvent]:
        """Return all that became of one object, oldest first."""
        return [_event_from_row(row) for row in self._rows("events", sync=sync, key=key)]

    def publications(self, sync: str, limit: int, before: PublicationId | None = None) -> list[Publication]:
        """Return the newest publications first; only those made before one, where that is given."""
        found = self._rows("publications", sync=sync, limit=limit, before=_LARGEST if before is None else before)
        return [publication_from_row(row) for row in found]

    def publication(self, publication: PublicationId) -> Publication | None:
        """Return the publication of that id, of whichever sync it is."""
        rows = self._rows("publication", id=publication)
        return publication_from_row(rows[0]) if rows else None

    def publication_of(self, review: ReviewId) -> Publication | None:
        """Return the publication of that review, if it was applied."""
        with self._database.transaction() as connection:
            return publication_of(connection, review)

    def _rows(self, query: str, **facts: Any) -> list[DictRow]:
        with self._database.transaction() as connection:
            return connection.execute(_SQL[query], facts).fetchall()


def _object_from_row(row: DictRow) -> LedgerObject:
    return LedgerObject(
        sync=row["sync"],
        key=ObjectKey(row["key"]),
        shard=ShardKey(row["shard"]),
        raw_hash=row["raw_hash"],
        row_hash=row["row_hash"],
        transformer_version=row["transformer_version"],
        source_version=row["source_version"],
        state=ObjectState(row["state"]),
        first_seen=row["first_seen"],
        last_changed_run=RunId(row["last_changed_run"]),
        publication=PublicationId(row["publication"]),
    )


def _event_from_row(row: DictRow) -> ObjectEvent:
    return ObjectEvent(
        at=row["at"],
        run=RunId(row["run"]),
        outcome=Outcome(row["outcome"]),
        old_hash=row["old_hash"],
        new_hash=row["new_hash"],
        source_version=row["source_version"],
        publication=PublicationId(row["publication"]) if row["publication"] is not None else None,
        transformer_version=row["transformer_version"],
    )
