"""A run's keys and hashes held against the ledger: rows artifacts in, the diff and its counts out."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import BinaryIO, Final

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.targets.arrow_copy import copy_in, copy_to_parquet, hex_column, read_parquet
from sluice.adapters.targets.expecting import PostgresExpecting
from sluice.adapters.targets.inspecting import PostgresInspecting
from sluice.adapters.targets.table import TargetTable
from sluice.mapping.arrow import text_scalar
from sluice.model import rows
from sluice.model.base import ObjectKey, ShardKey
from sluice.model.evidence import VersionCount
from sluice.model.ledger import Outcome
from sluice.ports import DiffCounts, DiffScope

_SQL: Final = Queries(__package__, "diffing.sql")

_NOT_DELETED: Final = pa.scalar(False, pa.bool_())
_ONE: Final = pa.scalar(1, pa.int32())
_BEFORE_FIRST: Final = pa.scalar(-1, pa.int32())

DIFF_SCHEMA: Final = pa.schema(
    [
        (rows.KEY, pa.string()),
        (rows.OUTCOME, pa.string()),
        (rows.SHARD, pa.string()),
        (rows.SEQ, pa.int32()),
        (rows.POSITION, pa.int32()),
        (rows.VERSION, pa.int64()),
        (rows.RAW_HASH, pa.string()),
        (rows.ROW_HASH, pa.string()),
        (rows.OLD_STATE, pa.string()),
        (rows.OLD_HASH, pa.string()),
        (rows.OLD_RAW_HASH, pa.string()),
        (rows.OLD_VERSION, pa.int64()),
        (rows.OLD_SHARD, pa.string()),
        (rows.TRANSFORMER_VERSION, pa.int32()),
    ]
)


class PostgresDiffing:
    """The staging area of one reviewing session, inside one transaction with one view of the ledger."""

    def __init__(self, connection: psycopg.Connection[DictRow], sync: str, table: TargetTable) -> None:
        self._cursor = connection.cursor()
        self._sync = sync
        self._table = table
        self._counts: DiffCounts | None = None
        self._scope: DiffScope | None = None
        self._leaves_out = False
        self._cursor.execute(_SQL["create_staging"])

    def stage(self, shard: ShardKey, seq: int, data: bytes) -> None:
        """Copy keys, hashes and versions of one rows artifact into the staging area."""
        table = read_parquet(data, rows.ROW_COLUMNS)
        count = table.num_rows
        copy_in(
            self._cursor,
            sql.Identifier("staged"),
            pa.table(
                {
                    "shard": pa.repeat(text_scalar(shard), count),
                    "seq": pa.repeat(pa.scalar(seq, pa.int32()), count),
                    "position": _places(count),
                    "key": table[rows.KEY],
                    "version": table[rows.VERSION],
                    "raw_hash": hex_column(table[rows.RAW_HASH]),
                    "row_hash": hex_column(table[rows.ROW_HASH]),
                    "mapped": table[rows.MAPPED],
                    "deleted": table[rows.DELETED] if rows.DELETED in table.column_names else pa.repeat(_NOT_DELETED, count),
                }
            ),
        )

    def stage_rejected(self, keys: Iterable[ObjectKey], version: int | None = None) -> None:
        """Note objects that were delivered but rejected, by a version of the transformation: they are no deletions."""
        with self._cursor.copy(_SQL["copy_rejected"]) as copy:
            for key in keys:
                copy.write_row((key, version))

    def leave_out(self, keys: Sequence[ObjectKey]) -> None:
        """Take objects for not delivered."""
        self._cursor.execute(_SQL["leave_out"], {"keys": list(keys)})
        self._leaves_out = self._leaves_out or bool(keys)

    def unstage(self, shard: ShardKey, seq: int) -> None:
        """Forget one rows artifact, to stage a better one."""
        self._cursor.execute(_SQL["unstage"], {"shard": shard, "seq": seq})

    def compare(self, scope: DiffScope) -> list[tuple[ShardKey, int]]:
        """Compare what is staged with the ledger; return the artifacts that lack a row the diff needs."""
        facts = {
            "sync": self._sync,
            "transformer_version": scope.transformer_version,
            "deletes": scope.deletes,
            "complete": scope.complete,
        }
        self._counts, self._scope = None, scope
        if self._leaves_out:
            self._cursor.execute(_SQL["drop_left_out"])
        self._cursor.execute(_SQL["clear_comparison"])
        self._cursor.executemany(
            _SQL["note_version"], [{"shard": shard, "version": version} for shard, version in scope.versions.items()]
        )
        self._cursor.execute(_SQL["mark_outdone"])
        # Prepared, it would be planned for whole runs and for parts of one alike.
        self._cursor.execute(_SQL["compare"], facts, prepare=False)
        self._cursor.execute(_SQL["drop_rejected"])
        if scope.newer:
            self._cursor.execute(_SQL["mark_outrun"], {"sync": self._sync, "newer": list(scope.newer)})
        self._cursor.execute(_SQL["mark_told"], facts)
        self._cursor.execute(_SQL["compare_rejected"], facts)
        return [(row["shard"], row["seq"]) for row in self._cursor.execute(_SQL["unmapped"])]

    def counts(self) -> DiffCounts:
        """Return what the last comparison has come to."""
        self._counts = self._counts or self._count()
        return self._counts

    def write_diff(self, file: BinaryIO) -> None:
        """Write the diff as Parquet."""
        copy_to_parquet(self._cursor, sql.SQL(_SQL["result"]), {field.name: field.type for field in DIFF_SCHEMA}, file)

    def expecting(self, columns: Collection[str], patience: timedelta, moved: Callable[[], object]) -> PostgresExpecting:
        """Hold what the table would be by the last comparison against expectations; once in a session."""
        return PostgresExpecting(self._cursor, self._table, columns, patience, moved)

    def inspecting(self, samples: int = 20) -> PostgresInspecting:
        """Take a closer look at the last comparison; once in a session."""
        return PostgresInspecting(self._cursor, self._table, self.counts(), samples)

    def _count(self) -> DiffCounts:
        found = {row["outcome"]: row for row in self._cursor.execute(_SQL["outcomes"])}
        objects = {outcome: row["objects"] for outcome, row in sorted(found.items())}
        return DiffCounts(
            seen=sum(row["seen"] for row in found.values()),
            unchanged=objects.pop("unchanged", 0),
            live_before=self._number("live"),
            first_loaded=self._number("first_loaded"),
            vanished=sum(row["vanished"] for row in found.values()),
            moved=sum(row["moved"] for row in found.values()),
            noted=sum(row["noted"] for row in found.values()),
            outcomes={Outcome(name): number for name, number in objects.items() if name != "vanished"},
            versions=self._versions(),
        )

    def _versions(self) -> tuple[VersionCount, ...]:
        """Return what each version of the transformation has made, unless there is but one."""
        if self._scope is None or not self._scope.versions:
            return ()
        found = self._cursor.execute(_SQL["versions"], {"transformer_version": self._scope.transformer_version})
        return tuple(VersionCount.model_validate(row) for row in found)

    def _number(self, query: str) -> int:
        row = self._cursor.execute(_SQL[query], {"sync": self._sync}).fetchone()
        return int(row[query]) if row else 0


def _places(count: int) -> pa.Array:
    """Return 0, 1, 2, and so on, counted by Arrow: what Python counts is taken over one by one."""
    return pc.cumulative_sum(pa.repeat(_ONE, count), start=_BEFORE_FIRST)
