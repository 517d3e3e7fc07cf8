"""What a person decides by: figures and reasons in Markdown, in which nobody else's words can pass for markup."""

from datetime import UTC, datetime
from typing import Any

import pytest

from sluice.adapters.spec_files import SpecFiles
from sluice.airflow_glue.packet import markdown_text, review_body, review_subject
from sluice.model.airflow_names import ANSWERS
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import ReviewId, RunId, Token
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, Step, Verdict
from sluice.model.review import Figures, Review
from sluice.model.run import Mode, Origin, ReviewMode, Run
from tests.support.servers import PROJECT

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REF = ArtifactRef(sync="hotels", run=RunId("run"), kind=ArtifactKind.DIFF)


def a_review(**changes: Any) -> Review:
    """A review that waits."""
    figures = {"seen": 1234, "unchanged": 1000, "live_before": 1300, "outcomes": {Outcome.CREATED: 34, Outcome.DELETED: 5}}
    review = Review(
        id=ReviewId("run.digest"),
        run=RunId("run"),
        sync="hotels",
        digest="digest",
        figures=Figures.model_validate(figures | changes.pop("figures", {})),
        reasons=("5 of 1,300 objects deleted",),
        verdict=Verdict.NEEDS_HUMAN,
        diff=Pointer(
            ref=ArtifactRef(sync="hotels", run=RunId("run"), kind=ArtifactKind.DIFF),
            key="k",
            bytes=1,
            sha256="0" * 64,
            records=1,
        ),
        created_at=NOW,
    )
    return review.model_copy(update=changes)


def a_run() -> Run:
    """The run of that review."""
    return Run(
        id=RunId("run"),
        sync="hotels",
        stage="hotel-content",
        tenant="default",
        request_key="key",
        mode=Mode.FULL,
        window=None,
        shards=(),
        review=ReviewMode.POLICY,
        spec_hash="hash",
        transformer_version=1,
        origin=Origin(),
        status=RunStatus.WAITING,
        step=Step.GATE,
        token=Token(1),
        created_at=NOW,
    )


def test_the_question_names_what_would_change() -> None:
    """The headline has the sync, the number of rows and the table; a block is said there."""
    spec = SpecFiles(PROJECT / "include").sync("hotels")
    assert review_subject(spec, a_review()) == "hotels: change 39 rows of public.hotels?"
    assert review_subject(spec, a_review(verdict=Verdict.BLOCKED)).startswith("hotels, blocked: ")


def test_the_body_has_reasons_figures_and_where_to_look() -> None:
    """Everything a decision needs, on one page."""
    body = review_body(a_run(), a_review(figures={"shards_failed": 2}))
    assert "- 5 of 1,300 objects deleted" in body
    assert "| created | 34 |" in body
    assert "| **seen** | 1,234 | 1,300 are in the table now |" in body
    assert "2 shards failed" in body
    assert "sluice review show run.digest" in body
    assert all(label in body for label in ANSWERS.values())


@pytest.mark.parametrize(
    "words", ["<img src=x onerror=alert(1)>", "a | b", "[click](http://x)", "**bold** `code`", "line\n# heading", "&lt;b&gt;"]
)
def test_other_people_s_words_are_no_markup(words: str) -> None:
    """Each mark that means something to Markdown or HTML is escaped, and no line begins with them."""
    text = markdown_text(words)
    assert "\n" not in text
    for mark in "<>|[]()*`#&":
        assert text.count(mark) == text.count(f"\\{mark}")
