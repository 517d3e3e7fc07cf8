"""A run that has been admitted, with everything a step needs, all of it in memory."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest

from sluice.errors import SluiceError, SupplierRefused
from sluice.flow.admission import admit
from sluice.flow.fetcher import fetch
from sluice.flow.sharder import plan_shards
from sluice.flow.transformer import transform
from sluice.mapping.remedies import remedies
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, ShardKey
from sluice.model.quality import Suite, SuiteExpectation
from sluice.model.run import Origin, Run, RunRequest
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from sluice.ports import Ledger, Page, Services, Source, Target, TeamFunction, Webhook
from tests.unit.fakes.alert_store import MemoryAlertStore
from tests.unit.fakes.artifact_store import MemoryArtifactStore
from tests.unit.fakes.audit_store import MemoryAuditStore
from tests.unit.fakes.by_hand_store import MemoryByHandStore
from tests.unit.fakes.call_store import MemoryCallStore
from tests.unit.fakes.chunk_codec import PlainChunkCodec
from tests.unit.fakes.dag_runs import MemoryDagRuns
from tests.unit.fakes.dead_letter_store import MemoryDeadLetterStore
from tests.unit.fakes.event_reader import MemoryEventReader
from tests.unit.fakes.garbage_store import MemoryGarbageStore
from tests.unit.fakes.gates import MemoryGates
from tests.unit.fakes.ledger import MemoryLedger
from tests.unit.fakes.letter_desk import MemoryLetterDesk
from tests.unit.fakes.memory import Memory
from tests.unit.fakes.metrics import MemoryMetrics
from tests.unit.fakes.overview_store import MemoryOverviewStore
from tests.unit.fakes.pointer_store import MemoryPointerStore
from tests.unit.fakes.progress_store import MemoryProgressStore
from tests.unit.fakes.rebuild_store import MemoryRebuildStore
from tests.unit.fakes.redo_store import MemoryRedoStore
from tests.unit.fakes.redrive_store import MemoryRedriveStore
from tests.unit.fakes.review_store import MemoryReviewStore
from tests.unit.fakes.run_store import MemoryRunStore
from tests.unit.fakes.shard_finder import ListedShardFinder
from tests.unit.fakes.shard_store import MemoryShardStore
from tests.unit.fakes.source import ListedSource
from tests.unit.fakes.target import MemoryTarget
from tests.unit.fakes.triggers import MemoryTriggers
from tests.unit.fakes.watermark_store import MemoryWatermarkStore

RUN = RunId("run-1")
NORTH, SOUTH = ShardKey("north"), ShardKey("south")
MAY, JUNE = "2024-05-01T00:00:00Z", "2024-06-01T00:00:00Z"


def sync_spec(**changes: Any) -> SyncSpec:
    """The spec of a sync with two shards."""
    declared = {
        "sync": "hotels",
        "stage": "hotel-content",
        "source": {
            "kind": "rest",
            "connection": "shop",
            "path": "/hotels",
            "query": {"region": "{{ shard.region }}", "since": "{{ watermark }}"},
            "cursor": {"path": "next", "parameter": "cursor"},
            "records": "hotels",
            "watermark": "updated_at",
        },
        "shards": {"kind": "values", "name": "region", "values": ["north", "south"]},
        "object": {"key": ["id"]},
        "fields": [{"name": "id", "type": "text"}, {"name": "updated_at", "type": "timestamptz"}],
        "target": {"table": "hotels"},
    }
    return SyncSpec.model_validate(declared | changes)


def _unneeded(_: SyncSpec) -> Any:
    raise AssertionError("a fetching step has no business with the target")


def page(number: int, *hotels: tuple[str | None, str], is_last: bool = False) -> Page:
    """A page of hotels, given as id and date of update."""
    body = json.dumps({"hotels": [{"id": key, "updated_at": at} for key, at in hotels], "next": number})
    return Page(body.encode(), len(hotels), None if is_last else number)


@dataclass
class Workshop:
    """The stores, and what the supplier will answer."""

    spec: SyncSpec = field(default_factory=sync_spec)
    policy: StagePolicy = field(default_factory=StagePolicy)
    supplier: Source = field(default_factory=lambda: ListedSource([]))
    finder: ListedShardFinder = field(default_factory=ListedShardFinder)
    memory: Memory = field(default_factory=Memory)
    metrics: MemoryMetrics = field(default_factory=MemoryMetrics)
    artifacts: MemoryArtifactStore = field(default_factory=MemoryArtifactStore)
    codec: PlainChunkCodec = field(default_factory=PlainChunkCodec)
    shards: MemoryShardStore | None = None
    target: MemoryTarget | None = None
    webhooks: dict[str, Webhook] = field(default_factory=dict)
    gates: MemoryGates = field(default_factory=MemoryGates)
    dag_runs: MemoryDagRuns = field(default_factory=MemoryDagRuns)
    triggers: MemoryTriggers = field(default_factory=MemoryTriggers)
    function: TeamFunction | None = None
    suite: Suite = field(default_factory=lambda: Suite(expectations=(SuiteExpectation(type="expect_anything"),)))

    @property
    def services(self) -> Services:
        """What a step is given."""
        target = self.target
        return Services(
            clock=self.memory.clock,
            metrics=self.metrics,
            runs=MemoryRunStore(self.memory),
            shards=self.shards or MemoryShardStore(self.memory),
            pointers=MemoryPointerStore(self.memory),
            redos=MemoryRedoStore(self.memory),
            reviews=MemoryReviewStore(self.memory),
            rebuilds=MemoryRebuildStore(self.memory),
            progress=MemoryProgressStore(self.memory),
            events=MemoryEventReader(self.memory),
            overview=MemoryOverviewStore(self.memory),
            garbage=MemoryGarbageStore(self.memory),
            dead_letters=MemoryDeadLetterStore(self.memory),
            redrives=MemoryRedriveStore(self.memory),
            letter_desk=MemoryLetterDesk(self.memory),
            by_hand=MemoryByHandStore(self.memory),
            audit=MemoryAuditStore(self.memory),
            watermarks=MemoryWatermarkStore(self.memory),
            artifacts=self.artifacts,
            codec=self.codec,
            source=lambda _spec, _policy: self.supplier,
            shard_finder=lambda _spec, _policy: self.finder,
            transform=lambda _spec, _shard: self.function,
            triage=lambda _: remedies,
            ledger=cast(Callable[[SyncSpec], Ledger], (lambda _: target.ledger) if target else _unneeded),
            target=cast(Callable[[SyncSpec], Target], (lambda _: target) if target else _unneeded),
            spec=lambda _name: self.spec,
            suite=lambda _spec: self.suite,
            policy=lambda _name: self.policy,
            calls=MemoryCallStore(self.memory),
            webhook=lambda hook, _policy: self.webhooks[hook.name],
            alerts=MemoryAlertStore(self.memory),
            gates=self.gates,
            dag_runs=self.dag_runs,
            triggers=self.triggers,
        )

    def supply(self, *answers: Page | SluiceError) -> ListedSource:
        """Let the supplier answer so."""
        self.supplier = ListedSource(answers)
        return self.supplier

    def equip(self) -> MemoryTarget:
        """Provide an empty table with its ledger."""
        self.target = MemoryTarget(MemoryLedger(), self.memory.clock)
        return self.target

    def begin(self, **changes: Any) -> Run:
        """Admit the run and plan its shards."""
        self.admit(**changes)
        plan_shards(self.services, RUN)
        return self.memory.runs[RUN]

    def bring_in(self, key: ShardKey, *hotels: tuple[str | None, str]) -> Shard:
        """Take a shard through fetching and transforming, its one page being these hotels."""
        self.supply(page(1, *hotels, is_last=True))
        fetch(self.services, RUN, key)
        return transform(self.services, RUN, key)

    def lose(self, key: ShardKey) -> None:
        """Let the supplier refuse a shard."""
        self.supply(SupplierRefused("403 Forbidden"))
        with pytest.raises(SupplierRefused):
            fetch(self.services, RUN, key)

    def admit(self, **changes: Any) -> Run:
        """Admit the run."""
        return admit(self.services, RunRequest(sync="hotels", origin=Origin(), **changes), RUN)

    def shard(self, key: ShardKey = NORTH) -> Shard:
        """Return the shard as it stands in state."""
        return self.memory.shards[RUN, key]

    def chunks(self, key: ShardKey = NORTH) -> list[list[bytes]]:
        """Return the pages of each chunk that has a pointer, having checked that they are numbered without a gap."""
        pointers = self.services.pointers.of(RUN, ArtifactKind.RAW, key)
        assert [pointer.ref.seq for pointer in pointers] == list(range(len(pointers)))
        return [list(self.codec.pages(self.artifacts.get(pointer))) for pointer in pointers]


def planned(**parts: Any) -> Workshop:
    """A workshop with a planned run."""
    workshop = Workshop(**parts)
    workshop.begin()
    return workshop


def small_chunks(pages: int = 1, age: timedelta = timedelta(hours=1)) -> StagePolicy:
    """A policy whose chunks close after so many of the fake's pages of 11 bytes."""
    return StagePolicy(chunk_bytes=11 * pages, chunk_age=age)


def bodies(pages: Sequence[Page]) -> list[bytes]:
    """Return the bodies of pages."""
    return [page.body for page in pages]
