"""The transaction of a publication: an approved diff and its rows in; table, ledger, events and publication out."""

from collections.abc import Set as AbstractSet
from typing import Any, BinaryIO, Final

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from sluice.adapters.ledger.store import publication_from_row, publication_of
from sluice.adapters.queries import Queries
from sluice.adapters.targets.arrow_copy import copy_in, copy_parquet_in, copy_to_parquet, read_parquet
from sluice.adapters.targets.refusals import taking_rows
from sluice.adapters.targets.rolling_back import PostgresRollingBack
from sluice.adapters.targets.table import TargetTable
from sluice.errors import ApprovalVoid, Fenced, LedgerMoved
from sluice.model import rows
from sluice.model.artifact import Pointer
from sluice.model.base import PublicationId, ReviewId, ShardKey, Token
from sluice.model.ledger import Outcome, Publication
from sluice.model.review import Review
from sluice.model.run import Run

_SQL: Final = Queries(__package__, "publishing.sql")

_WITH_ROWS: Final = (Outcome.CREATED, Outcome.CHANGED, Outcome.REAPPEARED)
_REMEMBERING: Final = {
    "remember_new": {Outcome.CREATED},
    "remember_rows": {Outcome.CHANGED, Outcome.REAPPEARED},
    "remember_deletions": {Outcome.DELETED},
    "remember_tombstones": {Outcome.REFRESHED},
    "refresh_hashes": {Outcome.REFRESHED},
}
"""What the ledger is told of which outcomes, in this order."""
_UNDO_COLUMNS: Final = {
    "key": pa.string(),
    "outcome": pa.string(),
    "row": pa.string(),
    "ledger": pa.string(),
}


class PostgresPublishing:
    """One publication, inside one transaction that holds the target's lock."""

    def __init__(
        self, connection: psycopg.Connection[DictRow], sync: str, table: TargetTable, rolling_back: PostgresRollingBack
    ) -> None:
        self._cursor = connection.cursor()
        self._sync = sync
        self._table = table
        self._rolling_back = rolling_back
        self._is_new = False
        self._loaded = 0

    def take_lock(self, token: Token) -> None:
        """Wait for the target's lock and raise the fence to `token`; raise `Fenced` if somebody holds a newer one."""
        self._table.lock(self._cursor)
        if self._run("take_fence", token=token).fetchone() is None:
            raise Fenced(f"a newer worker has published sync {self._sync}", sync=self._sync, token=token)

    def find(self, review: ReviewId) -> Publication | None:
        """Return the publication of that review if it is there already."""
        return publication_of(self._cursor, review)

    def load(self, diff: BinaryIO, *, with_deletes: bool) -> list[tuple[ShardKey, int]]:
        """Load the reviewed diff, less what the ledger has outrun; return the (shard, seq) of the rows it needs."""
        self._is_new = not self._table.exists(self._cursor)
        if self._is_new:
            self._table.evolve(self._cursor)
            if self._fills_directly:
                self._table.drop_key(self._cursor)
        else:
            self._table.check(self._cursor)
        self._approve(diff)
        if not with_deletes:
            self._run("leave_deletions_out")
        if self._run("find_moved").rowcount:
            self._shrink()
        self._run("create_wanted")
        return [(row["shard"], row["seq"]) for row in self._run("needed")]

    def load_rows(self, shard: ShardKey, seq: int, data: bytes) -> None:
        """Load the rows of one rows artifact that the diff asks for; raise `ApprovalVoid` if they are not as reviewed."""
        wanted = self._run("wanted", shard=shard, seq=seq).fetchone() or {"positions": [], "row_hashes": b""}
        names = [field.name for field in self._table.fields]
        table = read_parquet(data, [rows.KEY, rows.ROW_HASH, *names])
        positions = pa.array(wanted["positions"], pa.int32())
        in_order = pc.sort_indices(positions)
        positions = positions.take(in_order)
        if len(positions) and positions[-1].as_py() >= table.num_rows:
            raise ApprovalVoid(f"the rows of shard {shard}, chunk {seq}, are not the ones that were reviewed")
        # All of a first load's rows are wanted, and need not be copied.
        table = table if len(positions) == table.num_rows else table.take(positions)
        _require_reviewed(table, _hashes(wanted["row_hashes"]).take(in_order))
        self._loaded += table.num_rows
        fields = {name: table[name] for name in names}
        if self._fills_directly:
            with taking_rows(f"{self._table.schema}.{self._table.name}"):
                copy_in(self._cursor, self._table.identifier, pa.table(fields), is_new=True)
        else:
            copy_in(self._cursor, sql.Identifier("incoming"), pa.table({rows.KEY: table[rows.KEY], **fields}))

    def load_undo(self, diff: BinaryIO, undone: PublicationId, images: BinaryIO, *, with_deletes: bool) -> None:
        """Load the reviewed diff, and the before-images that it puts back."""
        self._approve(diff)
        if not with_deletes:
            self._run("leave_removals_out")
        self._rolling_back.load(undone, images)

    def before_images(self, file: BinaryIO) -> int:
        """Write the rows of target and ledger that would change or go, as they are; return their number."""
        query = sql.SQL(
            """select a.key, a.outcome, {row}::text, to_json(o.*)::text
            from approved a {beside}
            left join sluice_ledger.object o on o.sync = {sync} and o.key = a.key
            where a.outcome in ('created', 'changed', 'reappeared', 'deleted', 'rolled-back') order by a.key"""
        ).format(
            # What stands in a table that is new has come with this publication.
            row=sql.SQL("null" if self._is_new else "to_json(t.*)"),
            beside=sql.SQL("") if self._is_new else self._beside,
            sync=sql.Literal(self._sync),
        )
        return copy_to_parquet(self._cursor, query, _UNDO_COLUMNS, file)

    def apply(self, run: Run, review: Review, undo: Pointer) -> Publication:
        """Write rows, ledger, events and the publication; raise `ApprovalVoid` if a row is not as reviewed."""
        found = {Outcome(row["outcome"]): row["objects"] for row in self._run("outcomes")}
        counts = {str(outcome): objects for outcome, objects in found.items() if outcome is not Outcome.REFRESHED}
        if run.undoes is None:
            if self._loaded != sum(counts.get(outcome, 0) for outcome in _WITH_ROWS):
                raise ApprovalVoid
            if self._fills_directly:
                with taking_rows(f"{self._table.schema}.{self._table.name}"):
                    self._table.add_key(self._cursor)
            # Only now: who alters a table shuts its readers out until the commit.
            self._table.evolve(self._cursor)
        row = self._run(
            "add_publication",
            review=review.id,
            run=run.id,
            counts=Jsonb(dict(sorted(counts.items()))),
            approved_by=review.decision.by if review.decision else "policy",
            undoes=run.undoes,
            undo_key=undo.key,
            undo_sha256=undo.sha256,
            transformer_version=run.transformer_version,
        ).fetchone()
        assert row is not None  # noqa: S101 - an INSERT … RETURNING without a row has raised
        publication = publication_from_row(row)
        self._run("ensure_partition", applied_at=publication.applied_at)
        with taking_rows(f"{self._table.schema}.{self._table.name}"):
            if run.undoes is None:
                self._write(run, publication, found.keys())
            else:
                self._rolling_back.restore(run.undoes, publication, run)
            # What others have deferred to the commit is told here as well.
            self._table.check_deferred(self._cursor)
        return publication

    def _approve(self, diff: BinaryIO) -> None:
        self._run("create_approved")
        columns = sql.SQL(", ").join(sql.SQL("{} text").format(sql.Identifier(field.name)) for field in self._table.fields)
        self._cursor.execute(sql.SQL(_SQL["create_incoming"]).format(columns))
        copy_parquet_in(self._cursor, sql.Identifier("approved"), diff)
        self._run("index_approved")

    @property
    def _fills_directly(self) -> bool:
        """Whether rows need no staging: nobody else has seen the table, nothing is in it, and its columns are as declared."""
        return self._is_new and not self._table.is_dated

    @property
    def _beside(self) -> sql.Composed:
        """The join that lays beside each object the row that is overwritten."""
        overwritten = self._table.overwritten("t", sql.SQL("a.key"))
        return sql.SQL("left join {} t on {}").format(self._table.identifier, overwritten)

    def _write(self, run: Run, publication: Publication, outcomes: AbstractSet[Outcome]) -> None:
        if not self._fills_directly:
            self._table.write(self._cursor, "incoming", publication.applied_at)
        if Outcome.DELETED in outcomes:
            self._table.delete(self._cursor, "approved", publication.applied_at)
        facts = {
            "run": run.id,
            "publication": publication.id,
            "transformer_version": run.transformer_version,
            "applied_at": publication.applied_at,
        }
        for query, of in _REMEMBERING.items():
            # Each of them reads the whole ledger where the planner thinks so, and most publications need two.
            if outcomes & of:
                self._run(query, **facts)
        self._run("add_events", **facts)

    def _shrink(self) -> None:
        for query in ("drop_settled", "mark_stale", "keep_newer"):
            self._run(query)
        if undecided := [row["key"] for row in self._run("undecided")]:
            raise LedgerMoved(
                f"{LedgerMoved.__doc__} {len(undecided)} objects, first of them: {', '.join(undecided[:5])}",
                objects=len(undecided),
            )

    def _run(self, query: str, **facts: Any) -> psycopg.Cursor[DictRow]:
        return self._cursor.execute(_SQL[query], {"sync": self._sync, **facts})


def _hashes(joined: bytes) -> pa.Array:
    """Return hashes that stand one behind the other."""
    return pa.Array.from_buffers(pa.binary(rows.HASH_BYTES), len(joined) // rows.HASH_BYTES, [None, pa.py_buffer(joined)])


def _require_reviewed(table: pa.Table, reviewed: pa.Array) -> None:
    """Raise `ApprovalVoid`, naming some, unless the rows have the hashes that were reviewed. Their keys are part of them."""
    if table[rows.ROW_HASH].equals(pa.chunked_array([reviewed])):
        return
    strangers = table.filter(pc.not_equal(table[rows.ROW_HASH], reviewed))[rows.KEY].to_pylist()
    raise ApprovalVoid(f"{ApprovalVoid.__doc__} First of them: {', '.join(sorted(strangers)[:5])}")
