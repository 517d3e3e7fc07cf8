"""A published table driven the way runs drive it, with rows that came through the mapper: records in, publications out."""

import json
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from typing import Any

import psycopg

from sluice.adapters.ledger.store import PostgresLedger
from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.targets.postgres import PostgresTarget
from sluice.errors import TargetUnavailable
from sluice.model.artifact import ArtifactKind
from sluice.model.base import ObjectKey, PublicationId, ShardKey, Token
from sluice.model.ledger import Publication
from sluice.model.lifecycle import Verdict
from sluice.model.run import Mode
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo, DiffCounts, DiffScope, Undo
from tests.support.nouns import a_pointer, a_review, a_run
from tests.unit.mapping.workbench import map_records

SHARD = ShardKey("all")
PATIENCE = timedelta(minutes=5)


@dataclass(frozen=True)
class Reviewed:
    """What a run delivered, and what its diff says of it."""

    rows: bytes
    diff: bytes
    counts: DiffCounts


@dataclass(frozen=True)
class ReviewedUndo(Undo):
    """What taking a publication back would do, and the diff that says so."""

    diff: bytes


class Table:
    """One sync's table and ledger; `hand` changes the table behind their backs."""

    def __init__(self, info: ConnectionInfo, spec: SyncSpec, turn: int = 0) -> None:
        """Runs are numbered from behind `turn`, so that those of several tables have different reviews."""
        self.spec = spec
        self.database = Database(info, TargetUnavailable)
        self.target = PostgresTarget(self.database, spec)
        self.ledger = PostgresLedger(self.database)
        self.hand = psycopg.connect(conninfo(info), autocommit=True)
        self.images: dict[PublicationId, bytes] = {}
        self._turn = turn

    def close(self) -> None:
        self.hand.close()
        self.database.close()

    def bring(self, *records: dict[str, Any], complete: bool = False) -> Publication:
        """Publish what a run delivered; one that is `complete` deletes what it did not deliver."""
        return self.publish(self.review(*records, complete=complete))

    def review(self, *records: dict[str, Any], complete: bool = False, deletes: bool = True) -> "Reviewed":
        """Compare what a run delivered with the ledger."""
        rows = map_records(self.spec, *map(json.dumps, records)).rows
        return self.review_rows(rows, complete=complete, deletes=deletes)

    def review_rows(self, rows: bytes, *, complete: bool = False, deletes: bool = True) -> "Reviewed":
        """Compare a rows artifact with the ledger."""
        with self.target.diffing() as diffing:
            diffing.stage(SHARD, 0, rows)
            diffing.compare(DiffScope(complete=complete, transformer_version=1, deletes=deletes))
            diff = BytesIO()
            diffing.write_diff(diff)
            return Reviewed(rows, diff.getvalue(), diffing.counts())

    def publish(self, reviewed: "Reviewed") -> Publication:
        """Publish what was reviewed, now or a while ago."""
        return self._publish(reviewed.diff, rows=reviewed.rows)

    def respec(self, spec: SyncSpec) -> None:
        """Go on under another spec."""
        self.spec = spec
        self.target = PostgresTarget(self.database, spec)

    def undo_of(self, undone: Publication) -> "ReviewedUndo":
        """Hold a publication against what became of its objects."""
        diff = BytesIO()
        undo = self.target.undo_of(undone.id, BytesIO(self.images[undone.id]), diff)
        return ReviewedUndo(**vars(undo), diff=diff.getvalue())

    def roll_back(self, undone: Publication, undo: "ReviewedUndo | None" = None, *, with_deletes: bool = True) -> Publication:
        """Take a publication back, as it is now or as it was reviewed."""
        return self._publish((undo or self.undo_of(undone)).diff, undone=undone, with_deletes=with_deletes)

    def _publish(
        self, diff: bytes, rows: bytes = b"", undone: Publication | None = None, *, with_deletes: bool = True
    ) -> Publication:
        self._turn += 1
        changes = {"mode": Mode.ROLLBACK, "undoes": undone.id} if undone else {}
        run = a_run(f"run-{self._turn}", sync=self.spec.sync, token=Token(self._turn), **changes)
        review = a_review(f"{self.spec.sync}-{self._turn}", run=run.id, verdict=Verdict.AUTO_APPROVED, sync=self.spec.sync)
        with self.target.publishing(run.token, PATIENCE) as publishing:
            if undone is not None:
                images = BytesIO(self.images[undone.id])
                publishing.load_undo(BytesIO(diff), undone.id, images, with_deletes=with_deletes)
            else:
                for shard, seq in publishing.load(BytesIO(diff), with_deletes=True):
                    publishing.load_rows(shard, seq, rows)
            images = BytesIO()
            publishing.before_images(images)
            publication = publishing.apply(run, review, a_pointer(run.id, kind=ArtifactKind.UNDO))
        self.images[publication.id] = images.getvalue()
        return publication

    def rows(self, columns: str = "*") -> list[dict[str, Any]]:
        """Return the rows of the table, in the order of their first column."""
        query = f"select {columns} from {self.spec.target.table} order by 1"
        with self.hand.cursor(row_factory=psycopg.rows.dict_row) as cursor:
            return cursor.execute(query.encode()).fetchall()

    def ledger_of(self, key: str) -> dict[str, Any]:
        """Return what the ledger knows of an object, but for who changed it last."""
        known = self.ledger.object(self.spec.sync, ObjectKey(key))
        assert known is not None
        return known.model_dump(exclude={"publication", "last_changed_run"})
