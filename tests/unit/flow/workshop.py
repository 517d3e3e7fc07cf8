"""A run that has been admitted, with everything a fetching step needs, all of it in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from sluice.errors import SluiceError
from sluice.flow.admission import admit
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, ShardKey
from sluice.model.run import Origin, Run, RunRequest
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from sluice.ports import Ledger, Page, Services, Source, Target
from tests.unit.fakes.artifact_store import MemoryArtifactStore
from tests.unit.fakes.chunk_codec import PlainChunkCodec
from tests.unit.fakes.dead_letter_store import MemoryDeadLetterStore
from tests.unit.fakes.memory import Memory
from tests.unit.fakes.pointer_store import MemoryPointerStore
from tests.unit.fakes.review_store import MemoryReviewStore
from tests.unit.fakes.run_store import MemoryRunStore
from tests.unit.fakes.shard_store import MemoryShardStore
from tests.unit.fakes.source import ListedSource
from tests.unit.fakes.watermark_store import MemoryWatermarkStore

RUN = RunId("run-1")
NORTH = ShardKey("north")


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


@dataclass
class Workshop:
    """The stores, and what the supplier will answer."""

    spec: SyncSpec = field(default_factory=sync_spec)
    policy: StagePolicy = field(default_factory=StagePolicy)
    supplier: Source = field(default_factory=lambda: ListedSource([]))
    memory: Memory = field(default_factory=Memory)
    artifacts: MemoryArtifactStore = field(default_factory=MemoryArtifactStore)
    codec: PlainChunkCodec = field(default_factory=PlainChunkCodec)
    shards: MemoryShardStore | None = None

    @property
    def services(self) -> Services:
        """What a step is given."""
        return Services(
            clock=self.memory.clock,
            runs=MemoryRunStore(self.memory),
            shards=self.shards or MemoryShardStore(self.memory),
            pointers=MemoryPointerStore(self.memory),
            reviews=MemoryReviewStore(self.memory),
            dead_letters=MemoryDeadLetterStore(self.memory),
            watermarks=MemoryWatermarkStore(self.memory),
            artifacts=self.artifacts,
            codec=self.codec,
            source=lambda _spec, _policy: self.supplier,
            ledger=cast(Callable[[SyncSpec], Ledger], _unneeded),
            target=cast(Callable[[SyncSpec], Target], _unneeded),
            spec=lambda _name: self.spec,
            policy=lambda _name: self.policy,
        )

    def supply(self, *answers: Page | SluiceError) -> ListedSource:
        """Let the supplier answer so."""
        self.supplier = ListedSource(answers)
        return self.supplier

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


def small_chunks(pages: int = 1, age: timedelta = timedelta(hours=1)) -> StagePolicy:
    """A policy whose chunks close after so many of the fake's pages of 11 bytes."""
    return StagePolicy(chunk_bytes=11 * pages, chunk_age=age)


def bodies(pages: Sequence[Page]) -> list[bytes]:
    """Return the bodies of pages."""
    return [page.body for page in pages]
