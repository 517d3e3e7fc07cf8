"""A publication taken back: its before-images in; the diff and its conflicts, or table and ledger as they were, out."""

from datetime import datetime
from itertools import groupby, islice
from typing import Any, BinaryIO, Final

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.targets.arrow_copy import copy_in, copy_parquet_in, copy_to_parquet
from sluice.adapters.targets.diffing import DIFF_SCHEMA
from sluice.adapters.targets.holding import held_beside
from sluice.adapters.targets.names import type_sql
from sluice.adapters.targets.table import TargetTable
from sluice.errors import LedgerMoved, NotUndoable, TargetMismatch
from sluice.model.base import ObjectKey, PublicationId, ShardKey
from sluice.model.evidence import FieldChange, ObjectSample, ValueChange, cut
from sluice.model.ledger import Outcome, Publication
from sluice.model.rows import VALID_FROM
from sluice.model.run import Run
from sluice.model.spec import SyncSpec
from sluice.model.undo import Conflict, ConflictKind
from sluice.ports import Undo

_SQL: Final = Queries(__package__, "rolling_back.sql")

_OBJECTS_SHOWN: Final = 20
_EXAMPLES_OF_A_FIELD: Final = 3
_ROWS_AT_A_TIME: Final = 5_000
_FOUND: Final = pa.schema([("key", pa.string()), ("row_hash", pa.string()), ("is_live", pa.bool_())])


class PostgresRollingBack:
    """The before-images of one publication, inside one transaction."""

    def __init__(self, connection: psycopg.Connection[DictRow], spec: SyncSpec, table: TargetTable) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._spec = spec
        self._table = table
        self._has_history = spec.target.form == "history"

    def compare(self, undone: PublicationId, images: BinaryIO, diff: BinaryIO) -> Undo:
        """Return what would be restored of the publication, and what was changed since; nothing but the diff is written."""
        self._load(images)
        self._find_conflicts(undone)
        self._find_differences()
        figures = self._run("figures").fetchone() or {}
        types = {field.name: field.type for field in DIFF_SCHEMA}
        copy_to_parquet(self._cursor, self._on_table("result", sync=sql.Literal(self._spec.sync)), types, diff)
        return Undo(
            objects=figures["objects"],
            restored=figures["restored"],
            live_before=figures["live_before"],
            live_after=figures["live_before"] + figures["live_more"],
            conflicts=self._conflicts(),
            changes=self._changes(),
            samples=self._samples(),
        )

    def load(self, undone: PublicationId, images: BinaryIO) -> None:
        """Load what was approved of the images, with its rows locked.

        Raises `NotUndoable` if the publication has been taken back meanwhile, and `LedgerMoved` if an object was changed.
        """
        row = self._run("take_undone", undone=undone).fetchone()
        if row is None or row["rolled_back_by"] is not None:
            by = f" by publication {row['rolled_back_by']}" if row else ""
            raise NotUndoable(f"publication {undone} has been taken back meanwhile{by}", publication=undone)
        self._load(images)
        self._cursor.execute(self._on_table("lock_rows"))
        self._find_conflicts(undone)
        if moved := [row["key"] for row in self._run("moved")]:
            raise LedgerMoved(
                f"{len(moved)} objects of publication {undone} were changed between the review and its publication, first of "
                f"them: {', '.join(moved[:5])}",
                objects=len(moved),
            )
        self._run("keep_approved")

    def restore(self, undone: PublicationId, publication: Publication, run: Run) -> None:
        """Write the rows and the ledger as they were; let both publications name each other."""
        if self._has_history:
            self._add_versions(publication.applied_at)
        else:
            self._put_rows()
        facts = {
            "run": run.id,
            "publication": publication.id,
            "transformer_version": run.transformer_version,
            "applied_at": publication.applied_at,
            "undone": undone,
        }
        for query in ("remember_former", "bury_created", "add_events", "mark_undone"):
            self._run(query, **facts)
        # The spec of a row that came before the publication may have declared other fields.
        self._look()
        self._run("remember_hashes")

    def _load(self, images: BinaryIO) -> None:
        self._require_columns()
        self._run("create_images")
        copy_parquet_in(self._cursor, sql.Identifier("image"), images)
        self._cursor.execute("analyze image")

    def _require_columns(self) -> None:
        table, present = f"{self._table.schema}.{self._table.name}", self._columns()
        if missing := [name for name in self._declared() if name not in present]:
            raise TargetMismatch(
                f"table {table} has lost columns that the publication to take back had written: {', '.join(missing)}. "
                "Add them again first"
            )
        if self._has_history is not (VALID_FROM in present):
            raise TargetMismatch(f"table {table} had another form when the publication to take back was made")

    def _find_conflicts(self, undone: PublicationId) -> None:
        """Mark the images of objects that are not as the publication left them."""
        self._look()
        fields = sql.Literal([field.name for field in self._table.fields])
        self._cursor.execute(self._on_table("find_conflicts", fields=fields), {"sync": self._spec.sync, "undone": undone})

    def _look(self) -> None:
        """Note what the table holds of the objects by now, hashed under this spec."""
        self._run("forget_found")
        rows = (
            (row.key, None if row.row_hash is None else "\\x" + row.row_hash.hex(), row.is_live)
            for row in held_beside(self._connection, self._spec, self._table, sql.Identifier("image"))
            if row.key is not None and (row.is_live or not self._has_history)
        )
        while some := list(islice(rows, _ROWS_AT_A_TIME)):
            columns = dict(zip(_FOUND.names, map(list, zip(*some, strict=True)), strict=True))
            copy_in(self._cursor, sql.Identifier("found"), pa.table(columns, _FOUND))
        self._cursor.execute("analyze found")

    def _conflicts(self) -> tuple[Conflict, ...]:
        return tuple(
            Conflict(key=ObjectKey(row["key"]), kind=ConflictKind(row["conflict"]), publication=row["changed_by"])
            for row in self._run("conflicts")
        )

    def _find_differences(self) -> None:
        self._cursor.execute(self._on_table("find_differences", fields=sql.Literal(self._declared())))

    def _changes(self) -> tuple[FieldChange, ...]:
        rows = self._run("changes", samples=_EXAMPLES_OF_A_FIELD).fetchall()
        return tuple(
            FieldChange(
                field=field,
                objects=objects,
                samples=tuple((ObjectKey(row["key"]), cut(row["old"]), cut(row["new"])) for row in some),
            )
            for (field, objects), some in groupby(rows, key=lambda row: (row["field"], row["objects"]))
        )

    def _samples(self) -> tuple[ObjectSample, ...]:
        grouped = groupby(self._run("samples", samples=_OBJECTS_SHOWN).fetchall(), key=lambda row: row["key"])
        return tuple(_sample(list(rows)) for _, rows in grouped)

    def _put_rows(self) -> None:
        keys = {field.name for field in self._table.key_fields}
        changes = [sql.SQL("{0} = r.{0}").format(sql.Identifier(name)) for name in self._declared() if name not in keys]
        self._cursor.execute(self._on_table("take_out"))
        if changes:
            self._cursor.execute(self._on_table("overwrite", changes=sql.SQL(", ").join(changes)))
        first = self._run("first_row").fetchone()
        if first is not None:
            had = [name for name in self._columns() if name in first["row"]]
            self._cursor.execute(
                self._on_table(
                    "put_back",
                    columns=sql.SQL(", ").join(map(sql.Identifier, had)),
                    values=sql.SQL(", ").join(sql.Identifier("r", name) for name in had),
                )
            )

    def _add_versions(self, at: datetime) -> None:
        fields = [(sql.Identifier(field.name), type_sql(field.type.sql)) for field in self._table.fields]
        self._cursor.execute(
            self._on_table(
                "bring_in",
                fields=sql.SQL(", ").join(name for name, _ in fields),
                columns=sql.SQL(", ").join(sql.SQL("{} {}").format(name, kind) for name, kind in fields),
                values=sql.SQL(", ").join(sql.SQL("r.{}::text").format(name) for name, _ in fields),
            )
        )
        self._run("create_taken_out")
        self._table.delete(self._cursor, "taken_out", at)
        self._table.write(self._cursor, "incoming", at)

    def _columns(self) -> list[str]:
        rows = self._run("columns", schema=self._table.schema, table=self._table.name)
        return [row["name"] for row in rows]

    def _declared(self) -> list[str]:
        """Return the columns that a publication writes: of a history, those of the fields alone."""
        own = [] if self._has_history else sorted(self._table.own)
        return [*(field.name for field in self._table.fields), *own]

    def _on_table(self, query: str, **parts: sql.Composable) -> sql.Composed:
        key = sql.SQL("i.key")
        return sql.SQL(_SQL[query]).format(
            table=self._table.identifier,
            matches=self._table.key_matches("t", key),
            overwritten=self._table.overwritten("t", key),
            **parts,
        )

    def _run(self, query: str, **facts: Any) -> psycopg.Cursor[DictRow]:
        return self._cursor.execute(_SQL[query], {"sync": self._spec.sync, **facts})


def _sample(rows: list[DictRow]) -> ObjectSample:
    first = rows[0]
    return ObjectSample(
        key=ObjectKey(first["key"]),
        outcome=Outcome.ROLLED_BACK,
        shard=None if first["shard"] is None else ShardKey(first["shard"]),
        old_version=first["old_version"],
        version=first["version"],
        values=tuple(
            ValueChange(field=row["field"], old=cut(row["old"]), new=cut(row["new"]))
            for row in rows
            if row["field"] is not None
        ),
    )
