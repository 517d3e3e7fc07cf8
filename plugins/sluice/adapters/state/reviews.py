"""Reviews and decisions: `sluice_state.review` and `decision` behind the port `ReviewStore`."""

from typing import Any, Final

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import flights, journal
from sluice.adapters.state.columns import storable
from sluice.adapters.state.versions import Row, Versioned, readable
from sluice.errors import IllegalTransition, NotFound
from sluice.model.artifact import Pointer
from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import REVIEW_TRANSITIONS, ReviewEvent, Verdict, destination, sources
from sluice.model.review import REVIEW_STATE_VERSION, Choice, Decision, Figures, Review
from sluice.model.run import Run

_SQL: Final = Queries(__package__, "review.sql")


class PostgresReviewStore:
    """Reviews in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def save(self, review: Review, run: Run) -> Review:
        """Insert the review and supersede those of the run that wait; one that is there is returned as it is."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            if connection.execute(_SQL["insert"], _columns(review)).fetchone() is not None:
                journal.note_review(connection, review.run, review.id, "make", review.verdict)
                rows = connection.execute(
                    _SQL["supersede"], {"run": review.run, "id": review.id, **_transition(ReviewEvent.SUPERSEDE)}
                ).fetchall()
                for row in rows:
                    journal.note_review(
                        connection, review.run, row["id"], ReviewEvent.SUPERSEDE, row["verdict"], successor=review.id
                    )
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

    def waiting(self, sync: str | None = None) -> list[Review]:
        """Return the reviews that wait for a decision, oldest first."""
        with self._database.transaction() as connection:
            return readable(connection.execute(_SQL["waiting"], {"sync": sync}), review_from_row)

    def decide(self, review: ReviewId, decision: Decision) -> Review:
        """Record the decision and move the verdict; the same choice again changes nothing."""
        event = decision.choice.event
        with self._database.transaction() as connection:
            connection.execute(_SQL["lock_run"], {"id": review})
            row = connection.execute(_SQL["decide"], {"id": review, **_transition(event)}).fetchone()
            present = _get(connection, review)
            if row is None and present.decision is not None and present.decision.choice is decision.choice:
                return present
            if row is None:
                raise _no_longer_waits(present, event)
            connection.execute(_SQL["insert_decision"], _decision_columns(review, decision))
            journal.note_review(
                connection, present.run, review, event, present.verdict, by=storable(decision.by), via=decision.via
            )
            return _get(connection, review)


def review_from_row(row: DictRow) -> Review:
    """Return the review that a row, joined with its decision, stands for; see `versions`."""
    return _VERSIONED.read(row)


def _noun(row: Row) -> Review:
    return Review(
        id=ReviewId(row["id"]),
        run=RunId(row["run"]),
        sync=row["sync"],
        digest=row["digest"],
        figures=Figures.model_validate(row["figures"]),
        reasons=tuple(row["reasons"]),
        verdict=Verdict(row["verdict"]),
        diff=Pointer.model_validate(row["diff"]),
        evidence=Pointer.model_validate(row["evidence"]) if row["evidence"] is not None else None,
        report=Pointer.model_validate(row["report"]) if row["report"] is not None else None,
        decision=_decision_from_row(row) if row["choice"] is not None else None,
        state_version=row["state_version"],
        created_at=row["created_at"],
    )


def _with_a_packet(row: Row) -> Row:
    """Version 1 had figures and nothing besides."""
    return {"evidence": None, "report": None, "deletes_at_most": None, **row}


_VERSIONED: Final = Versioned(
    table="review",
    known=REVIEW_STATE_VERSION,
    identity={"review": "id", "run": "run"},
    migrations={1: _with_a_packet},
    build=_noun,
)


def _decision_from_row(row: Row) -> Decision:
    return Decision(
        choice=Choice(row["choice"]),
        by=row["decided_by"],
        via=row["via"],
        comment=row["comment"],
        deletes_at_most=row["deletes_at_most"],
        at=row["at"],
    )


def _columns(review: Review) -> dict[str, Any]:
    return {
        "id": review.id,
        "run": review.run,
        "sync": review.sync,
        "digest": review.digest,
        "figures": Jsonb(review.figures.model_dump(mode="json")),
        "reasons": list(review.reasons),
        "verdict": review.verdict,
        "diff": Jsonb(review.diff.model_dump(mode="json")),
        "evidence": _jsonb(review.evidence),
        "report": _jsonb(review.report),
        "state_version": review.state_version,
        "created_at": review.created_at,
    }


def _jsonb(pointer: Pointer | None) -> Jsonb | None:
    return None if pointer is None else Jsonb(pointer.model_dump(mode="json"))


def _decision_columns(review: ReviewId, decision: Decision) -> dict[str, Any]:
    return {
        "review": review,
        "choice": decision.choice,
        "by": storable(decision.by),
        "via": decision.via,
        "comment": storable(decision.comment),
        "deletes_at_most": decision.deletes_at_most,
        "at": decision.at,
    }


def _transition(event: ReviewEvent) -> dict[str, Any]:
    return {"verdict": destination(REVIEW_TRANSITIONS, event), "sources": sources(REVIEW_TRANSITIONS, event)}


def _get(connection: psycopg.Connection[DictRow], review: ReviewId) -> Review:
    row = connection.execute(_SQL["get"], {"id": review}).fetchone()
    if row is None:
        raise NotFound(f"there is no review {review}", review=review)
    return review_from_row(row)


def _no_longer_waits(review: Review, event: ReviewEvent) -> IllegalTransition:
    given_by = f", by {review.decision.by} at {review.decision.at:%Y-%m-%dT%H:%M:%SZ}" if review.decision else ""
    return IllegalTransition(
        f"review {review.id} is {review.verdict}{given_by}: it no longer waits, so {event} may not happen now",
        state=str(review.verdict),
        event=str(event),
    )
