"""A table of every type, driven the way a run drives it: JSON objects in; what a review finds, and publications, out."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BytesIO
from typing import Any, Final

import psycopg

from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.targets.postgres import PostgresTarget
from sluice.errors import TargetUnavailable
from sluice.mapping.mapper import Mapper
from sluice.model.artifact import ArtifactKind
from sluice.model.base import ShardKey, Token
from sluice.model.evidence import FieldChange, ObjectSample, Profile
from sluice.model.lifecycle import Verdict
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo, DiffCounts, DiffScope, Expecting
from tests.support.nouns import a_pointer, a_review, a_run

SHARD = ShardKey("all")

TYPES: Final = {
    "id": "text",
    "price": "numeric",
    "fee": "numeric(10,2)",
    "stars": "integer",
    "revision": "bigint",
    "rating": "double precision",
    "opened": "date",
    "seen_at": "timestamptz",
    "active": "boolean",
    "city": "text",
    "note": "text",
    "code": "uuid",
    "tags": "json",
}


def market_spec(**changes: Any) -> SyncSpec:
    """Return a spec with a field of each type."""
    declared: dict[str, Any] = {
        "sync": "market",
        "stage": "hotel-content",
        "source": {
            "kind": "rest",
            "connection": "supplier",
            "path": "/stalls",
            "cursor": {"path": "next", "parameter": "cursor"},
        },
        "object": {"key": ["id"]},
        "fields": [{"name": name, "type": kind} for name, kind in TYPES.items()],
        "target": {"table": "shop.stalls"},
    }
    return SyncSpec.model_validate(declared | changes)


class Looked:
    """What a review has found."""

    def __init__(
        self,
        diff: bytes,
        counts: DiffCounts,
        differences: tuple[tuple[FieldChange, ...], tuple[ObjectSample, ...]],
        profile: Profile,
    ) -> None:
        self.diff = diff
        self.counts = counts
        self.changes = {change.field: change for change in differences[0]}
        self.order = [change.field for change in differences[0]]
        self.samples = {(sample.outcome.value, sample.key): sample for sample in differences[1]}
        self.profile = profile
        self.fields = {field.field: field for field in profile.fields}


class Market:
    """One target."""

    def __init__(self, info: ConnectionInfo, spec: SyncSpec | None = None) -> None:
        self.spec = spec or market_spec()
        self.info = info
        self._database = Database(info, TargetUnavailable)
        self._target = PostgresTarget(self._database, self.spec)
        self._token = 0

    def close(self) -> None:
        """Close its connections."""
        self._database.close()

    def rows(self, objects: Iterable[dict[str, Any]]) -> bytes:
        """Return the rows artifact of these objects, as the mapper makes it."""
        page = json.dumps(list(objects), default=str).encode()
        mapped = Mapper(self.spec).map_chunk([page], "raw", lambda _: {})
        assert not mapped.rejects, mapped.rejects
        return mapped.rows

    def look(self, *chunks: bytes, complete: bool = False, baseline: Profile | None = None) -> Looked:
        """Compare these rows artifacts, and look closer."""
        with self._target.diffing() as diffing:
            for seq, chunk in enumerate(chunks):
                diffing.stage(SHARD, seq, chunk)
            diffing.compare(DiffScope(complete=complete, transformer_version=1))
            diff, counts = BytesIO(), diffing.counts()
            diffing.write_diff(diff)
            inspecting = diffing.inspecting()
            for shard, seq in inspecting.needed():
                inspecting.load_rows(shard, seq, chunks[seq])
            fields = [field.name for field in self.spec.fields]
            return Looked(diff.getvalue(), counts, inspecting.differences(), inspecting.profile(baseline, fields))

    @contextmanager
    def expecting(self, chunk: bytes, patience: timedelta = timedelta(minutes=1)) -> Iterator[Expecting]:
        """Compare a rows artifact, and yield what the table would be by that."""
        with self._target.diffing() as diffing:
            diffing.stage(SHARD, 0, chunk)
            diffing.compare(DiffScope(complete=False, transformer_version=1))
            expecting = diffing.expecting([field.name for field in self.spec.fields], patience, lambda: None)
            for shard, seq in expecting.needed():
                expecting.load_rows(shard, seq, chunk)
            expecting.complete()
            yield expecting

    def bring(self, *chunks: bytes, complete: bool = False, baseline: Profile | None = None) -> Looked:
        """Compare and publish these rows artifacts."""
        looked = self.look(*chunks, complete=complete, baseline=baseline)
        self._token += 1
        run = a_run(f"run-{self._token}", sync=self.spec.sync, token=Token(self._token))
        review = a_review(f"review-{self._token}", run=run.id, verdict=Verdict.AUTO_APPROVED, sync=self.spec.sync)
        self._target.check()
        with self._target.publishing(run.token, timedelta(minutes=5)) as publishing:
            for shard, seq in publishing.load(BytesIO(looked.diff), with_deletes=True):
                publishing.load_rows(shard, seq, chunks[seq])
            publishing.apply(run, review, a_pointer(run.id, kind=ArtifactKind.UNDO))
        return looked

    def run(self, *statements: str) -> None:
        """Do something to the table behind Sluice's back."""
        with psycopg.connect(conninfo(self.info)) as connection:
            for statement in statements:
                connection.execute(statement)
