"""What the flow needs from the world, one small Protocol for each need, and `Services`, the bundle of them all."""

from sluice.ports.artifacts import ArtifactStore, ChunkCodec, ColdStore
from sluice.ports.by_hand import AuditStore, ByHandStore, DagRuns
from sluice.ports.coordination import (
    AccessTokenStore,
    AlertStore,
    BreakerStore,
    CallStore,
    ProgressStore,
    RateStore,
    SealedToken,
    Webhook,
)
from sluice.ports.gates import Gates, Triggered, Triggers
from sluice.ports.letters import DeadLetterStore, LetterDesk, RedriveStore
from sluice.ports.run_memory import PointerStore, ReviewStore, RunStore, ShardStore, WatermarkStore
from sluice.ports.services import Services
from sluice.ports.supplier import Page, PageRequest, RequestFacts, ShardFinder, ShardQuestion, Source, SourceContext
from sluice.ports.surroundings import Clock, ConnectionInfo, Connections, DatabaseProbe, Metrics, SpecReader
from sluice.ports.target import (
    DiffCounts,
    Diffing,
    DiffScope,
    Expecting,
    Held,
    Inspecting,
    Ledger,
    Publishing,
    Refused,
    Remember,
    Target,
    Undo,
)
from sluice.ports.transforms import TeamFunction
from sluice.ports.triage import Triage
from sluice.ports.upkeep import GarbageStore, Holder, RebuildStore, RedoStore
from sluice.ports.watching import EventReader, OverviewStore

__all__ = [
    "AccessTokenStore",
    "AlertStore",
    "ArtifactStore",
    "AuditStore",
    "BreakerStore",
    "ByHandStore",
    "CallStore",
    "ChunkCodec",
    "Clock",
    "ColdStore",
    "ConnectionInfo",
    "Connections",
    "DagRuns",
    "DatabaseProbe",
    "DeadLetterStore",
    "DiffCounts",
    "DiffScope",
    "Diffing",
    "EventReader",
    "Expecting",
    "GarbageStore",
    "Gates",
    "Held",
    "Holder",
    "Inspecting",
    "Ledger",
    "LetterDesk",
    "Metrics",
    "OverviewStore",
    "Page",
    "PageRequest",
    "PointerStore",
    "ProgressStore",
    "Publishing",
    "RateStore",
    "RebuildStore",
    "RedoStore",
    "RedriveStore",
    "Refused",
    "Remember",
    "RequestFacts",
    "ReviewStore",
    "RunStore",
    "SealedToken",
    "Services",
    "ShardFinder",
    "ShardQuestion",
    "ShardStore",
    "Source",
    "SourceContext",
    "SpecReader",
    "Target",
    "TeamFunction",
    "Triage",
    "Triggered",
    "Triggers",
    "Undo",
    "WatermarkStore",
    "Webhook",
]
