"""The journal of a run: inside a transaction, a transition goes in; it becomes the run's next event."""

from typing import Any, Final, Literal

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from sluice.adapters.queries import Queries
from sluice.model.base import ReviewId, RunId, ShardKey

_SQL: Final = Queries(__package__, "event.sql")


def note_run(connection: psycopg.Connection[DictRow], run: RunId, event: str, status: str, **facts: Any) -> None:
    """Note what happened to the run itself."""
    _append(connection, run, ("run", run), (event, status), facts)


def note_shard(
    connection: psycopg.Connection[DictRow], run: RunId, shard: ShardKey, event: str, status: str, **facts: Any
) -> None:
    """Note what happened to a shard."""
    _append(connection, run, ("shard", shard), (event, status), facts)


def note_review(
    connection: psycopg.Connection[DictRow], run: RunId, review: ReviewId, event: str, verdict: str, **facts: Any
) -> None:
    """Note what happened to a review."""
    _append(connection, run, ("review", review), (event, verdict), facts)


def note_call(connection: psycopg.Connection[DictRow], run: RunId, name: str, event: str, standing: str, **facts: Any) -> None:
    """Note what happened to a call; nothing, if the run's state was removed meanwhile."""
    _append(connection, run, ("call", name), (event, standing), facts)


def _append(
    connection: psycopg.Connection[DictRow],
    run: RunId,
    subject: tuple[Literal["run", "shard", "review", "call"], str],
    transition: tuple[str, str],
    facts: dict[str, Any],
) -> None:
    connection.execute(
        _SQL["append"],
        {
            "run": run,
            "subject": subject[0],
            "name": subject[1],
            "event": transition[0],
            "status": transition[1],
            "facts": Jsonb(facts),
        },
    )
