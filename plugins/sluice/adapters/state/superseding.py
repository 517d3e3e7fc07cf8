"""Superseding: inside a transaction, a review that was just saved goes in; those that wait no longer for its sake are noted."""

from typing import Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.state import audit, journal
from sluice.adapters.state.review_rows import review_from_row, transition
from sluice.adapters.state.run_rows import run_from_row
from sluice.adapters.state.versions import readable
from sluice.guard.supersession import Reviewed, covers
from sluice.model.audit import POLICY, Act
from sluice.model.base import ReviewId, RunId, ShardKey
from sluice.model.lifecycle import ReviewEvent
from sluice.model.review import Review
from sluice.model.run import Run

_SQL: Final = Queries(__package__, "review.sql")

Connection = psycopg.Connection[DictRow]


def supersede(connection: Connection, review: Review, run: Run) -> None:
    """Let the review take the place of the run's others that wait, and of those of older runs that it covers."""
    waiting = {"sources": transition(ReviewEvent.SUPERSEDE)["sources"]}
    of_the_run = connection.execute(_SQL["waiting_of"], {"runs": [run.id], **waiting})
    superseded = [ReviewId(row["id"]) for row in of_the_run]
    # A row that cannot be read keeps waiting: nobody knows what it covers.
    runs = readable(connection.execute(_SQL["lock_older"], {"run": run.id, **waiting}), run_from_row)
    if runs:
        marks = _watermarks(connection, [run.id, *(older.id for older in runs)])
        newer = Reviewed(run, review.figures, marks.get(run.id, {}))
        by_id = {older.id: older for older in runs}
        reviews = connection.execute(_SQL["waiting_of"], {"runs": list(by_id), **waiting})
        superseded += [
            older.id
            for older in readable(reviews, review_from_row)
            if covers(newer, Reviewed(by_id[older.run], older.figures, marks.get(older.run, {})))
        ]
    _note(connection, [name for name in superseded if name != review.id], review.id)


def _watermarks(connection: Connection, runs: list[RunId]) -> dict[RunId, dict[ShardKey, str | None]]:
    """Return from where on the shards of some runs were asked for."""
    marks: dict[RunId, dict[ShardKey, str | None]] = {}
    for row in connection.execute(_SQL["watermarks"], {"runs": runs}):
        marks.setdefault(RunId(row["run"]), {})[ShardKey(row["key"])] = row["watermark"]
    return marks


def _note(connection: Connection, superseded: list[ReviewId], successor: ReviewId) -> None:
    if not superseded:
        return
    facts = {"ids": superseded, "successor": successor, **transition(ReviewEvent.SUPERSEDE)}
    for row in connection.execute(_SQL["supersede"], facts).fetchall():
        journal.note_review(connection, row["run"], row["id"], ReviewEvent.SUPERSEDE, row["verdict"], successor=successor)
        told = {"verdict": row["verdict"], "successor": successor}
        audit.note(connection, Act.DECIDE_REVIEW, POLICY, sync=row["sync"], run=row["run"], subject=row["id"], **told)
