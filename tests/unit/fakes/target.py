"""A `Target` in memory: a table with its ledger, compared and published object by object."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from sluice.errors import ApprovalVoid, Fenced, SluiceError
from sluice.model import rows
from sluice.model.artifact import Pointer
from sluice.model.base import ObjectKey, PublicationId, ReviewId, ShardKey, Token
from sluice.model.ledger import WRITING_OUTCOMES, LedgerObject, ObjectState, Outcome, Publication
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.ports import DiffCounts, DiffScope, Held, Undo
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.expecting import MemoryExpecting
from tests.unit.fakes.inspecting import MemoryInspecting
from tests.unit.fakes.ledger import MemoryLedger
from tests.unit.fakes.undoing import Image, MemoryUndoing

_ROWS_NEEDED: Final = WRITING_OUTCOMES - {Outcome.DELETED}

Place = tuple[ShardKey, int]


@dataclass
class MemoryTarget:
    """One sync's table: `rows` by key, `ledger` beside it; `trouble` is raised as a table that does not fit would."""

    ledger: MemoryLedger
    clock: FakeClock
    sync: str = "hotels"
    rows: dict[ObjectKey, dict[str, Any]] = field(default_factory=dict)
    trouble: SluiceError | None = None
    fence: Token | None = None
    patience: timedelta | None = None
    """How long the last publication might have been silent."""
    scopes: list[DiffScope] = field(default_factory=list)
    undos: list[Pointer] = field(default_factory=list)
    altered: set[ObjectKey] = field(default_factory=set)
    """Objects whose rows others have changed since."""
    expecting: MemoryExpecting | None = None
    """What the last suite was held against."""
    planned: tuple[str, ...] = ()
    """What the next publication would do to the table itself."""

    def check(self) -> tuple[str, ...]:
        if self.trouble:
            raise self.trouble
        return self.planned

    @contextmanager
    def held(self, keys: Sequence[ObjectKey] | None = None) -> "Iterator[Iterator[Held]]":
        """Hash a row as the ledger has it, unless others have changed it."""
        self.check()
        objects = self.ledger.objects
        yield (
            Held(
                key=key,
                row_hash=None if key in self.altered or (self.sync, key) not in objects else objects[self.sync, key].row_hash,
                is_live=True,
                values={name: None if value is None else str(value) for name, value in row.items()},
            )
            for key, row in list(self.rows.items())
            if keys is None or key in keys
        )

    @contextmanager
    def missing(self) -> "Iterator[Iterator[ObjectKey]]":
        live = sorted(key for (_, key), known in self.ledger.objects.items() if known.state is ObjectState.LIVE)
        yield (key for key in live if key not in self.rows)

    @property
    def undoing(self) -> MemoryUndoing:
        return MemoryUndoing(self.sync, self.rows, self.ledger, self.altered)

    def undo_of(self, publication: PublicationId, images: BinaryIO, diff: BinaryIO) -> Undo:
        self.check()
        return self.undoing.compare(publication, images, diff)

    @contextmanager
    def diffing(self) -> "Iterator[MemoryDiffing]":
        yield MemoryDiffing(self)

    @contextmanager
    def publishing(self, token: Token, patience: timedelta) -> "Iterator[MemoryPublishing]":
        """Keep what was applied only if the block ends well."""
        if self.fence is not None and token < self.fence:
            raise Fenced(f"a newer worker has published sync {self.sync}", sync=self.sync, token=token)
        self.patience = patience
        publishing = MemoryPublishing(self)
        yield publishing
        self.fence = token
        publishing.commit()


@dataclass
class MemoryDiffing:
    """A staging area; the diff is one line of JSON for each object."""

    target: MemoryTarget
    staged: dict[Place, list[dict[str, Any]]] = field(default_factory=dict)
    rejected: set[ObjectKey] = field(default_factory=set)
    left_out: set[ObjectKey] = field(default_factory=set)
    compared: dict[ObjectKey, dict[str, Any]] = field(default_factory=dict)

    def stage(self, shard: ShardKey, seq: int, rows: bytes) -> None:
        assert (shard, seq) not in self.staged, "what is staged twice counts twice"
        self.staged[shard, seq] = _read(rows)

    def stage_rejected(self, keys: Iterable[ObjectKey], version: int | None = None) -> None:  # noqa: ARG002  nobody asks
        self.rejected.update(keys)

    def leave_out(self, keys: Sequence[ObjectKey]) -> None:
        self.left_out.update(keys)

    def unstage(self, shard: ShardKey, seq: int) -> None:
        del self.staged[shard, seq]

    def compare(self, scope: DiffScope) -> list[Place]:
        self.target.scopes.append(scope)
        held = self._held()
        self.compared = {}
        for (shard, seq), chunk in sorted(self.staged.items()):
            for row in chunk:
                if row[rows.KEY] in self.left_out:
                    continue
                outcome = _outcome(row, held.get(row[rows.KEY]), scope)
                self.compared[row[rows.KEY]] = {"outcome": outcome, "shard": shard, "seq": seq, "mapped": row[rows.MAPPED]}
        for key in self.rejected - set(self.compared):
            self.compared[key] = {"outcome": Outcome.REJECTED}
        if scope.complete:
            for key, known in held.items():
                if known.state is ObjectState.LIVE and key not in self.compared:
                    self.compared[key] = {"outcome": Outcome.DELETED if scope.deletes else "vanished", "shard": known.shard}
        return sorted(
            {
                (entry["shard"], entry["seq"])
                for entry in self.compared.values()
                if entry["outcome"] in _ROWS_NEEDED and not entry["mapped"]
            }
        )

    def write_diff(self, file: BinaryIO) -> None:
        lines = [json.dumps({"key": key} | self.compared[key]) for key in sorted(self.compared) if self._is_told(key)]
        file.write("\n".join(lines).encode())

    def counts(self) -> DiffCounts:
        held = self._held()
        entries = self.compared.values()
        outcomes = [entry["outcome"] for entry in entries]
        loaded = {known.shard for known in held.values() if known.state is ObjectState.LIVE}
        created = [entry["shard"] for entry in entries if entry["outcome"] == Outcome.CREATED]
        return DiffCounts(
            seen=sum("seq" in entry or entry["outcome"] == Outcome.REJECTED for entry in entries),
            unchanged=outcomes.count("unchanged"),
            live_before=sum(known.state is ObjectState.LIVE for known in held.values()),
            first_loaded=sum(shard not in loaded for shard in created),
            vanished=sum(
                entry["outcome"] == "vanished" or ("seq" not in entry and entry["outcome"] == Outcome.DELETED)
                for entry in entries
            ),
            moved=sum(
                "seq" in entry and key in held and held[key].shard != entry["shard"] for key, entry in self.compared.items()
            ),
            noted=0,
            outcomes={outcome: outcomes.count(outcome) for outcome in Outcome if outcome in outcomes},
        )

    def expecting(self, columns: Collection[str], patience: timedelta, moved: Callable[[], object]) -> MemoryExpecting:
        self.target.patience = patience
        moved()
        self.target.expecting = MemoryExpecting(self.target.rows, self.compared, columns, self._reject)
        return self.target.expecting

    def _reject(self, key: ObjectKey) -> None:
        """Forget what was staged of an object, and note that it was delivered."""
        for rows_of_chunk in self.staged.values():
            rows_of_chunk[:] = [row for row in rows_of_chunk if row[rows.KEY] != key]
        self.rejected.add(key)

    def inspecting(self, samples: int = 20) -> MemoryInspecting:  # noqa: ARG002  it draws none
        return MemoryInspecting(self.target.rows, self.compared)

    def _is_told(self, key: ObjectKey) -> bool:
        return self.compared[key]["outcome"] not in ("unchanged", "vanished")

    def _held(self) -> dict[ObjectKey, LedgerObject]:
        return {key: known for (sync, key), known in self.target.ledger.objects.items() if sync == self.target.sync}


@dataclass
class MemoryPublishing:
    """What a publication is about to write, until its commit."""

    target: MemoryTarget
    approved: list[dict[str, Any]] = field(default_factory=list)
    incoming: dict[ObjectKey, dict[str, Any]] = field(default_factory=dict)
    returning: dict[ObjectKey, Image] = field(default_factory=dict)
    run: Run | None = None
    undo: Pointer | None = None
    publication: Publication | None = None
    after_apply: Callable[[], object] | None = None
    """What happens between writing and committing."""

    def find(self, review: ReviewId) -> Publication | None:
        return self.target.ledger.publication_of(review)

    def load(self, diff: BinaryIO, *, with_deletes: bool) -> list[Place]:
        self.target.check()
        writing = [entry for entry in map(json.loads, diff.read().splitlines()) if entry["outcome"] in WRITING_OUTCOMES]
        self.approved = [entry for entry in writing if with_deletes or entry["outcome"] != Outcome.DELETED]
        return sorted({(entry["shard"], entry["seq"]) for entry in self.approved if entry["outcome"] in _ROWS_NEEDED})

    def load_rows(self, shard: ShardKey, seq: int, rows: bytes) -> None:
        wanted = {entry["key"] for entry in self.approved if (entry["shard"], entry.get("seq")) == (shard, seq)}
        self.incoming.update({row["_key"]: row for row in _read(rows) if row["_key"] in wanted})

    def load_undo(self, diff: BinaryIO, undone: PublicationId, images: BinaryIO, *, with_deletes: bool) -> None:
        entries = [json.loads(line) for line in diff]
        self.approved = [entry for entry in entries if with_deletes or "position" in entry]
        self.returning = self.target.undoing.load([entry["key"] for entry in self.approved], undone, images)

    def before_images(self, file: BinaryIO) -> int:
        file.write(self.target.undoing.images(entry["key"] for entry in self.approved))
        return len(self.approved)

    def apply(self, run: Run, review: Review, undo: Pointer) -> Publication:
        loaded = {**self.incoming, **self.returning}
        if any(entry["outcome"] in _ROWS_NEEDED and entry["key"] not in loaded for entry in self.approved):
            raise ApprovalVoid
        outcomes = [Outcome(entry["outcome"]) for entry in self.approved]
        self.run, self.undo = run, undo
        self.publication = Publication(
            id=PublicationId(len(self.target.ledger.published) + 1),
            sync=run.sync,
            review=review.id,
            run=run.id,
            counts={outcome: outcomes.count(outcome) for outcome in Outcome if outcome in outcomes},
            undo_key=undo.key,
            undoes=run.undoes,
            applied_at=self.target.clock.now(),
        )
        if self.after_apply:
            self.after_apply()
        return self.publication

    def commit(self) -> None:
        """Write what was applied."""
        if self.publication is None or self.run is None or self.undo is None:
            return
        self.target.undos.append(self.undo)
        self.target.ledger.published.append(self.publication)
        if self.publication.undoes is not None:
            self.target.undoing.restore(self.returning, self.publication)
            return
        for entry in self.approved:
            key = ObjectKey(entry["key"])
            if entry["outcome"] == Outcome.DELETED:
                del self.target.rows[key]
                gone = self.target.ledger.objects[self.target.sync, key].model_copy(update={"state": ObjectState.DELETED})
                self.target.ledger.objects[self.target.sync, key] = gone
                continue
            row = self.incoming[key]
            self.target.rows[key] = {name: value for name, value in row.items() if not name.startswith("_")}
            self.target.ledger.objects[self.target.sync, key] = LedgerObject(
                sync=self.target.sync,
                key=key,
                shard=ShardKey(entry["shard"]),
                raw_hash=row[rows.RAW_HASH],
                row_hash=row[rows.ROW_HASH],
                transformer_version=self.run.transformer_version,
                source_version=row[rows.VERSION],
                state=ObjectState.LIVE,
                first_seen=self.publication.applied_at,
                last_changed_run=self.run.id,
                publication=self.publication.id,
            )


def _read(data: bytes) -> list[dict[str, Any]]:
    return list(pq.read_table(pa.BufferReader(data)).to_pylist())


def _outcome(row: dict[str, Any], held: LedgerObject | None, scope: DiffScope) -> str:
    if row[rows.DELETED]:
        gone = Outcome.DELETED if scope.deletes else "vanished"
        return gone if held is not None and held.state is ObjectState.LIVE else "unchanged"
    if held is None:
        return Outcome.CREATED
    if held.state is ObjectState.DELETED:
        return Outcome.REAPPEARED
    if row[rows.ROW_HASH] != held.row_hash:
        return Outcome.CHANGED
    return Outcome.REFRESHED if row[rows.RAW_HASH] != held.raw_hash else "unchanged"
