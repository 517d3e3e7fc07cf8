"""Going on from an earlier run: two runs of one request go in, the checkpoints of the older become the newer's own."""

from collections.abc import Sequence
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
from sluice.model.run import Failure, Run

FRESH: Final = timedelta(days=1)
"""What was fetched longer ago is better fetched again."""

_OF_SHARDS: Final = (ArtifactKind.RAW, ArtifactKind.ROWS, ArtifactKind.REJECTS)

_SQL: Final = Queries(__package__, "handover.sql")


def is_due(earlier: Run, run: Run, dead: Sequence[Run]) -> bool:
    """Whether `run` goes on from the checkpoints of `earlier`, the newest run of its request before it.

    It does so in two cases. `earlier` was at work when its lease ran out: it is among the `dead`. Or it ended failed or
    partial, and processes outside Airflow executed both: there, asking again for the same is how one resumes. A DagRun is
    resumed by clearing its tasks; a later one is a new look at the supplier. A run that waits for a person, was called off
    or succeeded hands nothing over.

    Handed over is each shard that has made progress within `FRESH`, with its pointers; one that was not finished is pending
    again. The rest is planned anew. The older run keeps rows of its own, so that it can still be explained.
    """
    if earlier.id in {gone.id for gone in dead}:
        return True
    resumable = earlier.status in (RunStatus.FAILED, RunStatus.PARTIAL)
    return resumable and not earlier.origin.is_airflow and not run.origin.is_airflow


def taken_over_by(successor: RunId) -> Failure:
    """Return what ended a run that died at work."""
    return Failure(error="TakenOver", message=f"its lease ran out; run {successor} has taken over")


def end_shards(connection: psycopg.Connection[DictRow], run: RunId, failure: Failure) -> None:
    """Spend the tokens of a dead run's shards; those that were under way have failed."""
    rows = connection.execute(
        _SQL["end_shards"],
        {
            "run": run,
            "status": destination(SHARD_TRANSITIONS, ShardEvent.FAIL),
            "sources": sources(SHARD_TRANSITIONS, ShardEvent.FAIL),
            **failure_columns(failure),
        },
    ).fetchall()
    for row in rows:
        if row["was_under_way"]:
            journal.note_shard(connection, run, row["key"], ShardEvent.FAIL, row["status"], **failure_facts(failure))


def adopt(connection: psycopg.Connection[DictRow], donor: RunId, run: RunId) -> None:
    """Copy the donor's fresh shards and their pointers to `run`, which has none yet."""
    facts = {
        "donor": donor,
        "run": run,
        "fresh": FRESH,
        "finished": ShardStatus.SUCCEEDED,
        "pending": ShardStatus.PENDING,
        "kinds": list(_OF_SHARDS),
    }
    adopted = connection.execute(_SQL["adopt_shards"], facts).fetchall()
    connection.execute(_SQL["adopt_artifacts"], facts)
    journal.note_run(connection, run, "adopt", RunStatus.PENDING, donor=donor, shards=len(adopted))
