"""Rows of `sluice_state.review` and `decision`: a review or decision goes in, its columns come out, and the other way round."""

from typing import Any, Final

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from sluice.adapters.state.columns import storable
from sluice.adapters.state.versions import Row, Versioned
from sluice.model.artifact import Pointer
from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import REVIEW_TRANSITIONS, ReviewEvent, Verdict, destination, sources
from sluice.model.review import REVIEW_STATE_VERSION, Choice, Decision, Figures, Review


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
        checks=row["checks"],
        verdict=Verdict(row["verdict"]),
        diff=Pointer.model_validate(row["diff"]),
        evidence=Pointer.model_validate(row["evidence"]) if row["evidence"] is not None else None,
        report=Pointer.model_validate(row["report"]) if row["report"] is not None else None,
        decision=_decision_from_row(row) if row["choice"] is not None else None,
        superseded_by=ReviewId(row["superseded_by"]) if row["superseded_by"] is not None else None,
        state_version=row["state_version"],
        created_at=row["created_at"],
    )


def _with_a_packet(row: Row) -> Row:
    """Version 1 had figures and nothing besides."""
    return {"evidence": None, "report": None, "deletes_at_most": None, "superseded_by": None, **row}


def _with_checks(row: Row) -> Row:
    """Version 2 held the table against no suite."""
    return {"checks": None, **row}


_VERSIONED: Final = Versioned(
    table="review",
    known=REVIEW_STATE_VERSION,
    identity={"review": "id", "run": "run"},
    migrations={1: _with_a_packet, 2: _with_checks},
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


def review_columns(review: Review) -> dict[str, Any]:
    """Return the columns of a review."""
    return {
        "id": review.id,
        "run": review.run,
        "sync": review.sync,
        "digest": review.digest,
        "figures": Jsonb(review.figures.model_dump(mode="json")),
        "reasons": list(review.reasons),
        "checks": review.checks,
        "verdict": review.verdict,
        "diff": Jsonb(review.diff.model_dump(mode="json")),
        "evidence": _jsonb(review.evidence),
        "report": _jsonb(review.report),
        "state_version": review.state_version,
        "created_at": review.created_at,
    }


def _jsonb(pointer: Pointer | None) -> Jsonb | None:
    return None if pointer is None else Jsonb(pointer.model_dump(mode="json"))


def decision_columns(review: ReviewId, decision: Decision) -> dict[str, Any]:
    """Return the columns of a decision."""
    return {
        "review": review,
        "choice": decision.choice,
        "by": storable(decision.by),
        "via": decision.via,
        "comment": storable(decision.comment),
        "deletes_at_most": decision.deletes_at_most,
        "at": decision.at,
    }


def transition(event: ReviewEvent) -> dict[str, Any]:
    """Return where an event leads, and what it may leave."""
    return {"verdict": destination(REVIEW_TRANSITIONS, event), "sources": sources(REVIEW_TRANSITIONS, event)}
