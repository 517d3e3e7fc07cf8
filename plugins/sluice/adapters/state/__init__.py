"""The stores of sluice_state, their SQL and their migrations."""

from sluice.adapters.state.access_tokens import PostgresAccessTokenStore
from sluice.adapters.state.alerts import PostgresAlertStore
from sluice.adapters.state.audit import PostgresAuditStore
from sluice.adapters.state.breakers import PostgresBreakerStore
from sluice.adapters.state.by_hand import PostgresByHandStore
from sluice.adapters.state.calls import PostgresCallStore
from sluice.adapters.state.dead_letters import PostgresDeadLetterStore
from sluice.adapters.state.following import PostgresEventReader
from sluice.adapters.state.garbage import PostgresGarbageStore
from sluice.adapters.state.letter_desk import PostgresLetterDesk
from sluice.adapters.state.overview import PostgresOverviewStore
from sluice.adapters.state.pointers import PostgresPointerStore
from sluice.adapters.state.progress import PostgresProgressStore
from sluice.adapters.state.rates import PostgresRateStore
from sluice.adapters.state.rebuilds import PostgresRebuildStore
from sluice.adapters.state.redos import PostgresRedoStore
from sluice.adapters.state.redrives import PostgresRedriveStore
from sluice.adapters.state.reviews import PostgresReviewStore
from sluice.adapters.state.runs import PostgresRunStore
from sluice.adapters.state.shards import PostgresShardStore
from sluice.adapters.state.watermarks import PostgresWatermarkStore

__all__ = [
    "PostgresAccessTokenStore",
    "PostgresAlertStore",
    "PostgresAuditStore",
    "PostgresBreakerStore",
    "PostgresByHandStore",
    "PostgresCallStore",
    "PostgresDeadLetterStore",
    "PostgresEventReader",
    "PostgresGarbageStore",
    "PostgresLetterDesk",
    "PostgresOverviewStore",
    "PostgresPointerStore",
    "PostgresProgressStore",
    "PostgresRateStore",
    "PostgresRebuildStore",
    "PostgresRedoStore",
    "PostgresRedriveStore",
    "PostgresReviewStore",
    "PostgresRunStore",
    "PostgresShardStore",
    "PostgresWatermarkStore",
]
