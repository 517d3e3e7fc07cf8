"""Handing over: two runs go in, what the older has fetched becomes the newer's own.

Of one request, with all checkpoints, where the newer takes over (see `guard.takeover`); the raw chunks alone, where it replays.
"""

from datetime import datetime, timedelta
from typing import Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.state import journal, redrives
from sluice.adapters.state.columns import failure_columns, failure_facts
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId
from sluice.model.lifecycle import SHARD_TRANSITIONS, RunStatus, ShardEvent, ShardStatus, destination, sources
from sluice.model.run import Failure, Run
from sluice.model.shard import SHARD_STATE_VERSION

_OF_SHARDS: Final = (ArtifactKind.RAW, ArtifactKind.ROWS, ArtifactKind.REJECTS)

_SQL: Final = Queries(__package__, "handover.sql")


def end_shards(connection: psycopg.Connection[DictRow], run: RunId, failure: Failure, *, all_of_them: bool) -> None:
    """Let the shards of a run that is over fail that were under way, and spend their tokens: those of all, if it died."""
    rows = connection.execute(
        _SQL["end_shards"],
        {
            "run": run,
            "all_of_them": all_of_them,
            "status": destination(SHARD_TRANSITIONS, ShardEvent.FAIL),
            "sources": sources(SHARD_TRANSITIONS, ShardEvent.FAIL),
            **failure_columns(failure),
        },
    ).fetchall()
    for row in rows:
        if row["was_under_way"]:
            journal.note_shard(connection, run, row["key"], ShardEvent.FAIL, row["status"], **failure_facts(failure))


def adopt(connection: psycopg.Connection[DictRow], donor: RunId, run: RunId, fresh: timedelta) -> None:
    """Copy the donor's plan to `run`, which has none yet, with checkpoints and pointers of what made progress within `fresh`.

    Nothing, if no shard did.
    """
    facts = {
        "donor": donor,
        "run": run,
        "fresh": fresh,
        "finished": ShardStatus.SUCCEEDED,
        "pending": ShardStatus.PENDING,
        "kinds": list(_OF_SHARDS),
    }
    adopted = connection.execute(_SQL["adopt_shards"], facts).fetchall()
    connection.execute(_SQL["adopt_artifacts"], facts)
    kept = sum(row["has_checkpoint"] for row in adopted)
    journal.note_run(connection, run, "adopt", RunStatus.PENDING, donor=donor, shards=kept)
    redrives.hand_over(connection, donor, run)


def replay(connection: psycopg.Connection[DictRow], run: Run, expires_at: datetime) -> None:
    """Copy the shards that the run replays and was asked for, as they were fetched, and the pointers to their raw chunks.

    The replayed run is locked before that, so that nobody removes the chunks meanwhile.
    """
    facts = {
        "donor": run.replays,
        "run": run.id,
        "shards": list(run.shards),
        "pending": ShardStatus.PENDING,
        "state_version": SHARD_STATE_VERSION,
        "raw": ArtifactKind.RAW,
        "expires_at": expires_at,
    }
    connection.execute(_SQL["hold_donor"], facts)
    adopted = connection.execute(_SQL["replay_shards"], facts).fetchall()
    facts["adopted"] = [row["key"] for row in adopted]
    connection.execute(_SQL["replay_chunks"], facts)
    journal.note_run(connection, run.id, "adopt", run.status, donor=run.replays, shards=len(adopted))
