"""Handing over: older runs and a newer one go in, what the older have fetched becomes the newer's own.

Of one request, with all checkpoints, where the newer takes over (see `guard.takeover`); the raw chunks alone, where it replays.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from sluice.adapters.queries import Queries
from sluice.adapters.state import journal, redrives
from sluice.adapters.state.columns import failure_columns, failure_facts
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import SHARD_TRANSITIONS, RunStatus, ShardEvent, ShardStatus, destination, sources
from sluice.model.run import Failure, Run
from sluice.model.shard import SHARD_STATE_VERSION, some_of

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
    redrives.hand_over(connection, donor, run)
    kept = sum(row["has_checkpoint"] for row in adopted)
    journal.note_run(connection, run, "adopt", RunStatus.PENDING, donor=donor, shards=kept)


def replay(
    connection: psycopg.Connection[DictRow],
    run: Run,
    donors: Sequence[RunId],
    versions: Mapping[ShardKey, int],
    expires_at: datetime,
) -> None:
    """Make shards of those that the run replays and was asked for, as they were fetched, with pointers to their raw chunks.

    The replayed runs are locked before that, so that nobody removes the chunks meanwhile.
    """
    facts = {
        "donors": list(donors),
        "run": run.id,
        "shards": list(run.shards),
        "versions": Jsonb(dict(versions)),
        "pending": ShardStatus.PENDING,
        "state_version": SHARD_STATE_VERSION,
        "raw": ArtifactKind.RAW,
        "expires_at": expires_at,
    }
    connection.execute(_SQL["hold_donors"], facts)
    whole = connection.execute(_SQL["whole_shards"], facts).fetchall()
    facts |= {"runs": [row["run"] for row in whole], "keys": [row["key"] for row in whole]}
    adopted = connection.execute(_SQL["replay_shards"], facts).fetchall()
    facts["adopted"] = [row["key"] for row in adopted]
    connection.execute(_SQL["replay_chunks"], facts)
    journal.note_run(connection, run.id, "adopt", run.status, donor=some_of(donors), shards=len(adopted))
