"""The stores of sluice_state, their SQL and their migrations."""

from sluice.adapters.state.dead_letters import PostgresDeadLetterStore
from sluice.adapters.state.pointers import PostgresPointerStore
from sluice.adapters.state.reviews import PostgresReviewStore
from sluice.adapters.state.runs import PostgresRunStore
from sluice.adapters.state.shards import PostgresShardStore
from sluice.adapters.state.watermarks import PostgresWatermarkStore

__all__ = [
    "PostgresDeadLetterStore",
    "PostgresPointerStore",
    "PostgresReviewStore",
    "PostgresRunStore",
    "PostgresShardStore",
    "PostgresWatermarkStore",
]
