"""The stores of state twice: in memory, as unit tests use them, and on Postgres. Every suite here runs on both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import pytest

from sluice.adapters.postgres import Database
from sluice.adapters.state import (
    PostgresAlertStore,
    PostgresAuditStore,
    PostgresByHandStore,
    PostgresCallStore,
    PostgresDeadLetterStore,
    PostgresEventReader,
    PostgresLetterDesk,
    PostgresOverviewStore,
    PostgresPointerStore,
    PostgresProgressStore,
    PostgresRedoStore,
    PostgresRedriveStore,
    PostgresReviewStore,
    PostgresRunStore,
    PostgresShardStore,
    PostgresWatermarkStore,
)
from sluice.errors import StateUnavailable
from sluice.ports import (
    AlertStore,
    AuditStore,
    ByHandStore,
    CallStore,
    DeadLetterStore,
    EventReader,
    LetterDesk,
    OverviewStore,
    PointerStore,
    ProgressStore,
    RedoStore,
    RedriveStore,
    ReviewStore,
    RunStore,
    ShardStore,
    WatermarkStore,
)
from tests.unit.fakes.alert_store import MemoryAlertStore
from tests.unit.fakes.audit_store import MemoryAuditStore
from tests.unit.fakes.by_hand_store import MemoryByHandStore
from tests.unit.fakes.call_store import MemoryCallStore
from tests.unit.fakes.dead_letter_store import MemoryDeadLetterStore
from tests.unit.fakes.event_reader import MemoryEventReader
from tests.unit.fakes.letter_desk import MemoryLetterDesk
from tests.unit.fakes.memory import Memory
from tests.unit.fakes.overview_store import MemoryOverviewStore
from tests.unit.fakes.pointer_store import MemoryPointerStore
from tests.unit.fakes.progress_store import MemoryProgressStore
from tests.unit.fakes.redo_store import MemoryRedoStore
from tests.unit.fakes.redrive_store import MemoryRedriveStore
from tests.unit.fakes.review_store import MemoryReviewStore
from tests.unit.fakes.run_store import MemoryRunStore
from tests.unit.fakes.shard_store import MemoryShardStore
from tests.unit.fakes.watermark_store import MemoryWatermarkStore

MOST_LETTERS = 3


@dataclass(frozen=True)
class Stores:
    """All that remembers."""

    runs: RunStore
    shards: ShardStore
    pointers: PointerStore
    redos: RedoStore
    reviews: ReviewStore
    dead_letters: DeadLetterStore
    """Opens three letters of a cause, and no more."""
    redrives: RedriveStore
    letter_desk: LetterDesk
    watermarks: WatermarkStore
    calls: CallStore
    alerts: AlertStore
    progress: ProgressStore
    events: EventReader
    overview: OverviewStore
    by_hand: ByHandStore
    audit: AuditStore
    let_pass: Callable[[timedelta], None]
    """Makes all that has happened so much longer ago."""


@pytest.fixture(params=["memory", "postgres"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    """Empty stores."""
    if request.param == "memory":
        memory = Memory()
        yield Stores(
            MemoryRunStore(memory),
            MemoryShardStore(memory),
            MemoryPointerStore(memory),
            MemoryRedoStore(memory),
            MemoryReviewStore(memory),
            MemoryDeadLetterStore(memory, MOST_LETTERS),
            MemoryRedriveStore(memory),
            MemoryLetterDesk(memory),
            MemoryWatermarkStore(memory),
            MemoryCallStore(memory),
            MemoryAlertStore(memory),
            MemoryProgressStore(memory),
            MemoryEventReader(memory),
            MemoryOverviewStore(memory),
            by_hand=MemoryByHandStore(memory),
            audit=MemoryAuditStore(memory),
            let_pass=memory.clock.move,
        )
        return
    database = Database(request.getfixturevalue("database"), StateUnavailable)
    yield Stores(
        PostgresRunStore(database),
        PostgresShardStore(database),
        PostgresPointerStore(database),
        PostgresRedoStore(database),
        PostgresReviewStore(database),
        PostgresDeadLetterStore(database, MOST_LETTERS),
        PostgresRedriveStore(database),
        PostgresLetterDesk(database),
        PostgresWatermarkStore(database),
        PostgresCallStore(database),
        PostgresAlertStore(database),
        PostgresProgressStore(database),
        PostgresEventReader(database),
        PostgresOverviewStore(database),
        by_hand=PostgresByHandStore(database),
        audit=PostgresAuditStore(database),
        let_pass=partial(_let_pass, database),
    )
    database.close()


def _let_pass(database: Database, span: timedelta) -> None:
    with database.transaction() as connection:
        connection.execute(
            "update sluice_state.run set finished_at = finished_at - %(span)s, follows_since = follows_since - %(span)s",
            {"span": span},
        )
        connection.execute("update sluice_state.shard set progress_at = progress_at - %s", (span,))
        connection.execute(
            "update sluice_state.lease set expires_at = expires_at - %(span)s, kept_until = kept_until - %(span)s, "
            "progress_at = progress_at - %(span)s",
            {"span": span},
        )
