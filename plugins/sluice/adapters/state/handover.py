"""Handing over: two runs of one request go in, the checkpoints of the older become the newer's own. See `guard.takeover`."""

from datetime import timedelta
from typing import Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.state import journal
from sluice.adapters.state.columns import failure_columns, failure_facts
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId
from sluice.model.lifecycle import SHARD_TRANSITIONS, RunStatus, ShardEvent, ShardStatus, destination, sources
from sluice.model.run import Failure

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
    """Copy the donor's shards that made progress within `fresh`, and their pointers, to `run`, which has none yet."""
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
    journal.note_run(connection, run, "adopt", RunStatus.PENDING, donor=donor, shards=len(adopted))
