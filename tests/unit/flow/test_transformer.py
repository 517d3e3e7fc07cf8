"""Transforming: what a shard's chunks become, in which order it is kept, and what is left of it when something goes wrong."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs

from sluice.errors import ArtifactsUnavailable, Fenced, NotFound, RedoNeeded, SchemaOutdated, ShardsFailed, SupplierRefused
from sluice.flow.fetcher import fetch
from sluice.flow.sharder import plan_shards
from sluice.flow.transformer import transform
from sluice.mapping.columns import reading_of
from sluice.mapping.mapper import Mapper
from sluice.mapping.reject_lines import read
from sluice.model import rows
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import ObjectKey, ShardKey
from sluice.model.ledger import LedgerObject, ObjectState, Remembered
from sluice.model.lifecycle import RunEvent, RunStatus, ShardStatus
from sluice.model.run import Failure
from sluice.model.shard import Shard
from sluice.model.stage import StagePolicy
from sluice.ports import Page, Services
from tests.unit.fakes.artifact_store import MemoryArtifactStore
from tests.unit.fakes.ledger import MemoryLedger
from tests.unit.flow.workshop import JUNE, MAY, NORTH, RUN, Workshop, page


class Bench:
    """A workshop whose north shard has been fetched, a chunk for each page."""

    def __init__(self, *pages: Page, artifacts: MemoryArtifactStore | None = None) -> None:
        policy = StagePolicy(chunk_bytes=1, chunk_age=timedelta(hours=1))
        self.workshop = Workshop(policy=policy, artifacts=artifacts or MemoryArtifactStore())
        self.workshop.admit()
        plan_shards(self.workshop.services, RUN)
        self.workshop.supply(*pages)
        fetch(self.workshop.services, RUN, NORTH)
        self.ledger = MemoryLedger()

    @property
    def services(self) -> Services:
        """What the step is given."""
        return replace(self.workshop.services, ledger=lambda _: self.ledger)

    def transform(self) -> Shard:
        """Run the step."""
        return transform(self.services, RUN, NORTH)

    def pointers(self, kind: ArtifactKind) -> list[Pointer]:
        """The shard's pointers of one kind."""
        return self.services.pointers.of(RUN, kind, NORTH)

    def rows(self) -> list[list[dict[str, Any]]]:
        """The rows of each chunk."""
        files = [self.workshop.artifacts.get(pointer) for pointer in self.pointers(ArtifactKind.ROWS)]
        return [pq.read_table(pa.BufferReader(file)).to_pylist() for file in files]

    def keys(self) -> list[list[str]]:
        """The keys of each chunk's rows."""
        return [[row[rows.KEY] for row in chunk] for chunk in self.rows()]


class OutdatedLedger(MemoryLedger):
    """A ledger that answers so often; then a table is missing."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self._answers = answers

    def remembered(self, sync: str, transformer_version: int, keys: Sequence[ObjectKey]) -> dict[ObjectKey, Remembered]:
        """Answer, or raise."""
        if not self._answers:
            raise SchemaOutdated("no table")
        self._answers -= 1
        return super().remembered(sync, transformer_version, keys)


TWO_CHUNKS = (page(1, ("a", JUNE), ("b", MAY)), page(2, ("c", MAY), is_last=True))


def test_transforms_a_shard() -> None:
    """Each raw chunk has a rows artifact of the same number; the shard has succeeded, with its high mark."""
    bench = Bench(*TWO_CHUNKS)
    shard = bench.transform()
    assert shard == bench.workshop.shard()
    assert (shard.status, shard.high_mark, shard.chunks, shard.records) == (ShardStatus.SUCCEEDED, JUNE, 2, 3)
    assert bench.keys() == [["a", "b"], ["c"]]
    pointers = bench.pointers(ArtifactKind.ROWS)
    assert [(pointer.ref.seq, pointer.records) for pointer in pointers] == [(0, 2), (1, 1)]
    assert all(pointer.ref.variant.startswith("v1-") for pointer in pointers)
    assert [pointer.expires_at for pointer in pointers] == [raw.expires_at for raw in bench.pointers(ArtifactKind.RAW)]
    assert bench.pointers(ArtifactKind.REJECTS) == []
    assert bench.ledger.asked == [["a", "b"], ["c"]]


def test_an_empty_chunk_has_an_empty_rows_artifact() -> None:
    """So that it is known to be done."""
    bench = Bench(page(1, is_last=True))
    assert (bench.transform().high_mark, bench.keys()) == (None, [[]])


def test_rejects_become_an_artifact_and_dead_letters() -> None:
    """Bad objects are kept, one a line, with the address of their bytes, and leave good ones alone."""
    bench = Bench(page(1, ("a", JUNE), ("b", "yesterday"), (None, JUNE), is_last=True))
    bench.transform()
    assert bench.keys() == [["a"]]
    (pointer,) = bench.pointers(ArtifactKind.REJECTS)
    assert (pointer.ref.seq, pointer.records) == (0, 2)
    rejects = list(read(bench.workshop.artifacts.get(pointer)))
    (raw,) = bench.pointers(ArtifactKind.RAW)
    assert pointer.ref.variant == f"v1-{reading_of(bench.workshop.spec):016x}-{raw.ref.variant}"
    assert [(reject.key, reject.field, reject.address.index) for reject in rejects] == [("b", "updated_at", 1), (None, "id", 2)]
    assert {reject.address.artifact for reject in rejects} == {raw.key}
    letters = bench.workshop.memory.dead_letters
    assert [(letter.run, letter.shard, letter.reject) for letter in letters] == [(RUN, NORTH, reject) for reject in rejects]


def test_what_the_ledger_holds_is_not_mapped() -> None:
    """An object whose bytes the ledger remembers under this transformer version is only counted."""
    bench = Bench(page(1, ("a", JUNE), ("b", MAY), is_last=True))
    raw = [f'{{"id": "{key}", "updated_at": "{at}"}}'.encode() for key, at in (("a", JUNE), ("b", MAY))]
    mapped = Mapper(bench.workshop.spec).map_chunk([b'{"hotels": [' + b",".join(raw) + b"]}"], "x", lambda _: {})
    for row, version in zip(pq.read_table(pa.BufferReader(mapped.rows)).to_pylist(), (1, 2), strict=True):
        key = ObjectKey(row[rows.KEY])
        bench.ledger.objects["hotels", key] = LedgerObject(
            sync="hotels",
            key=key,
            shard=NORTH,
            raw_hash=row[rows.RAW_HASH],
            row_hash=row[rows.ROW_HASH],
            transformer_version=version,
            source_version=None,
            state=ObjectState.LIVE,
            first_seen=bench.workshop.memory.clock.now(),
            last_changed_run=RUN,
            publication=1,
        )
    assert bench.transform().high_mark == JUNE
    assert [(row[rows.KEY], row[rows.MAPPED]) for row in bench.rows()[0]] == [("a", False), ("b", True)]


def test_a_second_time_changes_nothing() -> None:
    """A shard that succeeded is returned as it is, without a claim and without a look at its chunks."""
    bench = Bench(*TWO_CHUNKS)
    shard = bench.transform()
    token = bench.workshop.memory.runs[RUN].token
    bench.workshop.artifacts.objects.clear()
    assert bench.transform() == shard
    assert bench.workshop.memory.runs[RUN].token == token


class Failing(MemoryArtifactStore):
    """A store that refuses to take some artifacts, once."""

    def __init__(self, kind: ArtifactKind, seq: int) -> None:
        super().__init__()
        self._refused: tuple[ArtifactKind, int] | None = (kind, seq)

    def put(self, ref: ArtifactRef, *args: Any, **kwargs: Any) -> Pointer:
        if (ref.kind, ref.seq) == self._refused:
            self._refused = None
            raise ArtifactsUnavailable
        return super().put(ref, *args, **kwargs)


def test_goes_on_behind_the_last_chunk_that_is_done() -> None:
    """A retry maps only what has no rows yet, and the high mark counts all chunks."""
    bench = Bench(*TWO_CHUNKS, artifacts=Failing(ArtifactKind.ROWS, 1))
    with pytest.raises(ArtifactsUnavailable):
        bench.transform()
    assert (bench.workshop.shard().status, bench.keys()) == (ShardStatus.RUNNING, [["a", "b"]])
    shard = bench.transform()
    assert (shard.status, shard.high_mark) == (ShardStatus.SUCCEEDED, JUNE)
    assert bench.keys() == [["a", "b"], ["c"]]
    assert bench.ledger.asked == [["a", "b"], ["c"], ["c"]]


def test_a_chunk_is_not_done_before_its_rejects_are_kept() -> None:
    """If the rejects cannot be stored, no pointer says that the chunk is done; the retry keeps them once."""
    bench = Bench(page(1, ("a", JUNE), (None, JUNE), is_last=True), artifacts=Failing(ArtifactKind.REJECTS, 0))
    with pytest.raises(ArtifactsUnavailable):
        bench.transform()
    assert bench.pointers(ArtifactKind.ROWS) == []
    bench.transform()
    assert [letter.attempts for letter in bench.workshop.memory.dead_letters] == [1]
    assert [pointer.records for pointer in bench.pointers(ArtifactKind.REJECTS)] == [1]


def test_a_worker_that_lost_the_shard_stops() -> None:
    """Its first pointer is fenced, and what its successor committed stays what it is."""
    bench = Bench(*TWO_CHUNKS)

    class Overtaken(MemoryLedger):
        def remembered(self, *args: Any) -> Any:
            if not self.asked:
                self.asked.append([])
                transform(bench.services, RUN, NORTH)
                self.objects.clear()
            return super().remembered(*args)

    bench.ledger = Overtaken()
    with pytest.raises(Fenced):
        bench.transform()
    assert bench.workshop.shard().status is ShardStatus.SUCCEEDED
    assert bench.keys() == [["a", "b"], ["c"]]


def test_a_permanent_error_fails_the_shard() -> None:
    """What only a person can mend is noted with the shard."""
    bench = Bench(*TWO_CHUNKS)
    bench.ledger = OutdatedLedger(answers=1)
    with capture_logs() as logs, pytest.raises(SchemaOutdated):
        bench.transform()
    shard = bench.workshop.shard()
    assert (shard.status, shard.failure) == (ShardStatus.FAILED, Failure(error="SchemaOutdated", message="no table"))
    assert [pointer.ref.seq for pointer in bench.pointers(ArtifactKind.ROWS)] == [0]
    told = {"event": "sluice.shard_failed", "error": "SchemaOutdated", "message": "no table", "log_level": "warning"}
    assert logs[-1] == told


def test_a_lost_chunk_is_fetched_again() -> None:
    """The shard begins again from its first page; of what was made of it nothing counts any more."""
    bench = Bench(*TWO_CHUNKS)
    (_, second) = bench.pointers(ArtifactKind.RAW)
    del bench.workshop.artifacts.objects[second.key]
    with pytest.raises(RedoNeeded, match=f"{re.escape(second.key)} is missing; it is made again"):
        bench.transform()
    shard = bench.workshop.shard()
    assert (shard.status, shard.epoch, shard.cursor, shard.exhausted) == (ShardStatus.PENDING, 1, None, False)
    assert (bench.pointers(ArtifactKind.RAW), bench.pointers(ArtifactKind.ROWS)) == ([], [])
    assert bench.workshop.metrics.of("artifact_corrupt", kind="raw") == 1


def test_a_chunk_that_cannot_be_read_is_fetched_again() -> None:
    """Bytes that are as they were stored, and yet no chunk, are as good as lost."""
    bench = Bench(page(1, ("a", JUNE), is_last=True))
    (raw,) = bench.pointers(ArtifactKind.RAW)
    nonsense = bench.workshop.artifacts.put(raw.ref, (9).to_bytes(8), records=1, expires_at=None)
    bench.services.pointers.add(nonsense)
    with pytest.raises(RedoNeeded):
        bench.transform()
    assert bench.workshop.shard().epoch == 1


def test_lost_rows_are_mapped_again_all_at_once() -> None:
    """Where the mark of a chunk that was done is read, all lost rows of the shard are due again, and no page is fetched."""
    bench = Bench(*TWO_CHUNKS)
    bench.transform()
    for pointer in bench.pointers(ArtifactKind.ROWS):
        del bench.workshop.artifacts.objects[pointer.key]
    place = RUN, NORTH
    bench.workshop.memory.shards[place] = bench.workshop.shard().model_copy(update={"status": ShardStatus.RUNNING})
    with pytest.raises(RedoNeeded):
        bench.transform()
    assert bench.pointers(ArtifactKind.ROWS) == []
    assert (bench.workshop.shard().status, bench.workshop.shard().exhausted) == (ShardStatus.PENDING, True)
    assert bench.workshop.metrics.of("artifact_corrupt", kind="rows") == 2
    assert bench.transform().status is ShardStatus.SUCCEEDED
    assert bench.keys() == [["a", "b"], ["c"]]


def test_a_shard_that_is_not_fetched_stays_as_it_is() -> None:
    """It is refused, naming it and why, and not claimed."""
    workshop = Workshop()
    workshop.admit()
    plan_shards(workshop.services, RUN)
    with pytest.raises(ShardsFailed, match=r"shard north is pending and not fetched to its end$"):
        transform(workshop.services, RUN, NORTH)
    workshop.supply(SupplierRefused("GET /hotels: 404"))
    with pytest.raises(SupplierRefused):
        fetch(workshop.services, RUN, NORTH)
    with pytest.raises(ShardsFailed, match=r"shard north is failed .* \(SupplierRefused: GET /hotels: 404\)$") as caught:
        transform(workshop.services, RUN, NORTH)
    assert caught.value.facts == {"shard": NORTH}
    assert (workshop.shard().status, workshop.shard().attempt) == (ShardStatus.FAILED, 1)


def test_an_unknown_shard_is_named() -> None:
    """It is not the run that is missing."""
    bench = Bench(*TWO_CHUNKS)
    with pytest.raises(NotFound, match="no shard east of run run-1"):
        transform(bench.services, RUN, ShardKey("east"))


def test_an_ended_run_is_reopened() -> None:
    """Clearing the task of a shard that failed here comes straight to transforming, and goes on."""
    bench = Bench(*TWO_CHUNKS)
    bench.ledger = OutdatedLedger(answers=0)
    with pytest.raises(SchemaOutdated):
        bench.transform()
    bench.services.runs.end(bench.workshop.memory.runs[RUN], RunEvent.FAIL)
    bench.ledger = MemoryLedger()
    assert bench.transform().status is ShardStatus.SUCCEEDED
    assert bench.workshop.memory.runs[RUN].status is RunStatus.RUNNING


def test_what_is_told() -> None:
    """Each chunk and the shard are one event with their facts; nothing of the rows is in them, and nothing stays bound."""
    bench = Bench(page(1, ("a", JUNE), (None, JUNE), is_last=True))
    with capture_logs() as logs:
        bench.transform()
    (rows_pointer,), (rejects_pointer,) = bench.pointers(ArtifactKind.ROWS), bench.pointers(ArtifactKind.REJECTS)
    stored = [
        {"event": "sluice.artifact_stored", "artifact": pointer.key, "kind": kind, "bytes": pointer.bytes, "records": 1}
        for kind, pointer in (("rows", rows_pointer), ("rejects", rejects_pointer))
    ]
    told = [
        *stored,
        {"event": "sluice.chunk_transformed", "chunk": 0, "objects": 1, "mapped": 1, "rejected": 1, "postdated": 0},
        {"event": "sluice.shard_transformed", "chunks": 1, "records": 2, "high_mark": JUNE, "transformer_version": 1},
    ]
    assert logs == [{**event, "log_level": "info"} for event in told]
    assert get_contextvars() == {}
