"""`Services`, the bundle of all ports that a step may use."""

from collections.abc import Callable
from dataclasses import dataclass

from sluice.model.base import ShardKey
from sluice.model.quality import Suite
from sluice.model.spec import SyncSpec, WebhookSpec
from sluice.model.stage import StagePolicy
from sluice.ports.artifacts import ArtifactStore, ChunkCodec, ColdStore
from sluice.ports.by_hand import AuditStore, ByHandStore, DagRuns
from sluice.ports.coordination import AlertStore, CallStore, ProgressStore, Webhook
from sluice.ports.gates import Gates, Triggers
from sluice.ports.letters import DeadLetterStore, LetterDesk, RedriveStore
from sluice.ports.run_memory import PointerStore, ReviewStore, RunStore, ShardStore, WatermarkStore
from sluice.ports.supplier import ShardFinder, Source
from sluice.ports.surroundings import Clock, Metrics
from sluice.ports.target import Ledger, Target
from sluice.ports.transforms import TeamFunction
from sluice.ports.triage import Triage
from sluice.ports.upkeep import GarbageStore, RebuildStore, RedoStore
from sluice.ports.watching import EventReader, OverviewStore


@dataclass(frozen=True)
class Services:
    """Everything a step may use. Built by `wiring` alone."""

    clock: Clock
    metrics: Metrics
    runs: RunStore
    shards: ShardStore
    pointers: PointerStore
    redos: RedoStore
    reviews: ReviewStore
    rebuilds: RebuildStore
    dead_letters: DeadLetterStore
    redrives: RedriveStore
    letter_desk: LetterDesk
    watermarks: WatermarkStore
    progress: ProgressStore
    events: EventReader
    overview: OverviewStore
    by_hand: ByHandStore
    audit: AuditStore
    garbage: GarbageStore
    artifacts: ArtifactStore
    codec: ChunkCodec
    source: Callable[[SyncSpec, StagePolicy], Source]
    shard_finder: Callable[[SyncSpec, StagePolicy], ShardFinder]
    """For syncs whose supplier has to be asked what there is to be cut into shards."""
    transform: Callable[[SyncSpec, ShardKey], TeamFunction | None]
    """Loads the team's function for the objects of a shard; None: the spec has none. Raises `SpecInvalid`."""
    triage: Callable[[SyncSpec], Triage]
    """Loads whom a spec has asked about its dead letters. Raises `SpecInvalid`."""
    ledger: Callable[[SyncSpec], Ledger]
    target: Callable[[SyncSpec], Target]
    spec: Callable[[str], SyncSpec]
    """Reads the spec of a sync by name, as it stands in `include/syncs` now."""
    suite: Callable[[SyncSpec], Suite]
    """Reads the suite that a spec names, as it stands in `include/expectations` now."""
    policy: Callable[[str], StagePolicy]
    """Reads the policy of a stage by name."""
    calls: CallStore
    webhook: Callable[[WebhookSpec, StagePolicy], Webhook]
    alerts: AlertStore
    gates: Gates
    dag_runs: DagRuns
    triggers: Triggers
    cold: ColdStore | None = None
    """Where copies of what is removed are kept; None: none are."""
    airflow_url: str | None = None
    """Where people reach this Airflow; None: that is not known here."""
