"""Reviews and decisions: `sluice_state.review` and `decision` behind the port `ReviewStore`."""

from contextlib import suppress
from typing import Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import audit, flights, journal
from sluice.adapters.state.columns import storable
from sluice.adapters.state.review_rows import decision_columns, review_columns, review_from_row, transition
from sluice.adapters.state.superseding import supersede
from sluice.adapters.state.versions import readable
from sluice.errors import IllegalTransition, NotFound, StateTooNew, StateUnreadable
from sluice.model.audit import POLICY, Act
from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import Verdict
from sluice.model.review import Decision, Review, no_longer_waits
from sluice.model.run import Run

_SQL: Final = Queries(__package__, "review.sql")


class PostgresReviewStore:
    """Reviews in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def save(self, review: Review, run: Run) -> Review:
        """Insert the review, and let it take the place of those it supersedes; one that is there is returned as it is."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            if connection.execute(_SQL["insert"], review_columns(review)).fetchone() is not None:
                journal.note_review(connection, review.run, review.id, "make", review.verdict)
                _note_approval(connection, review)
                supersede(connection, review, run)
            return _get(connection, review.id)

    def get(self, review: ReviewId) -> Review:
        """Return the review; raise `NotFound` naming it."""
        with self._database.transaction() as connection:
            return _get(connection, review)

    def latest(self, run: RunId) -> Review | None:
        """Return the newest review of the run."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["latest"], {"run": run}).fetchone()
            return review_from_row(row) if row else None

    def of(self, run: RunId) -> list[Review]:
        """Return the reviews of the run, the newest first."""
        with self._database.transaction() as connection:
            return [review_from_row(row) for row in connection.execute(_SQL["of_run"], {"run": run})]

    def waiting(self, sync: str | None = None) -> list[Review]:
        """Return the reviews that wait for a decision, oldest first."""
        with self._database.transaction() as connection:
            return readable(connection.execute(_SQL["waiting"], {"sync": sync}), review_from_row)

    def count_waiting(self) -> int:
        """Return how many reviews wait for a decision."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["count_waiting"]).fetchone()
            return int(row["reviews"]) if row else 0

    def superseded_by(self, review: ReviewId) -> list[Review]:
        """Return the reviews whose place that one has taken, oldest first."""
        with self._database.transaction() as connection:
            return readable(connection.execute(_SQL["superseded_by"], {"successor": review}), review_from_row)

    def decide(self, review: ReviewId, decision: Decision) -> Review:
        """Record the decision and move the verdict; the same choice again changes nothing."""
        with self._database.transaction() as connection:
            connection.execute(_SQL["lock_run"], {"id": review})
            return decide_review(connection, review, decision)


def decide_review(connection: psycopg.Connection[DictRow], review: ReviewId, decision: Decision) -> Review:
    """Record the decision about a review whose run is locked."""
    event = decision.choice.event
    row = connection.execute(_SQL["decide"], {"id": review, **transition(event)}).fetchone()
    present = _get(connection, review)
    if row is None and present.decision is not None and present.decision.answers_as(decision):
        return present
    if row is None:
        raise IllegalTransition(
            no_longer_waits(present, _successor(connection, present)), state=str(present.verdict), event=str(event)
        )
    connection.execute(_SQL["insert_decision"], decision_columns(review, decision))
    journal.note_review(connection, present.run, review, event, present.verdict, by=storable(decision.by), via=decision.via)
    facts = {"choice": decision.choice, "verdict": present.verdict, "deletes_at_most": decision.deletes_at_most}
    audit.note(connection, Act.DECIDE_REVIEW, decision.actor, sync=present.sync, run=present.run, subject=review, **facts)
    return _get(connection, review)


def _note_approval(connection: psycopg.Connection[DictRow], review: Review) -> None:
    """Note that policy has approved a review that nobody is asked about, if it has."""
    if review.verdict is Verdict.AUTO_APPROVED:
        facts = {"verdict": review.verdict, "writes": review.figures.writes}
        audit.note(connection, Act.DECIDE_REVIEW, POLICY, sync=review.sync, run=review.run, subject=review.id, **facts)


def _get(connection: psycopg.Connection[DictRow], review: ReviewId) -> Review:
    row = connection.execute(_SQL["get"], {"id": review}).fetchone()
    if row is None:
        raise NotFound(f"there is no review {review}", review=review)
    return review_from_row(row)


def _successor(connection: psycopg.Connection[DictRow], review: Review) -> Review | None:
    """Return the review that has taken the place of that one, if it has not been removed since."""
    if review.superseded_by is None:
        return None
    with suppress(NotFound, StateTooNew, StateUnreadable):
        return _get(connection, review.superseded_by)
    return None
