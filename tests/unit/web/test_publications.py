"""The pages of publications: listed in pages, and taken back by way of a review."""

from sluice.model.audit import Act
from sluice.model.base import ObjectKey, PublicationId, ReviewId, RunId
from sluice.model.ledger import Publication
from sluice.model.lifecycle import RunStatus, Verdict
from tests.support.nouns import NOW
from tests.unit.flow.workshop import Workshop
from tests.unit.web.test_objects import published
from tests.unit.web.visitor import DAG, Visitor


def table(workshop: Workshop) -> list[str]:
    """Return the keys of the table's rows."""
    assert workshop.target is not None
    return sorted(workshop.target.rows)


def test_a_publication_is_taken_back_once_its_review_is_approved() -> None:
    """First it is shown what that would do, and nothing is restored; then, for a reason, it is; then never again."""
    workshop = published("a", "b")
    ann = Visitor(workshop)
    for nothing in (" ", "x\0y"):
        assert ann.post("publications/1/undo", {"reason": nothing}).status_code == 422
    begun = ann.post("publications/1/undo", {"reason": "wrong currency"}).json()
    run = workshop.services.runs.get(RunId(begun["next"].rpartition("/")[2]))
    review = workshop.services.reviews.latest(run.id)
    assert review is not None
    assert (run.status, table(workshop)) == (RunStatus.WAITING, ["a", "b"])
    assert workshop.services.audit.of("hotels", None, 1)[0].act is Act.ROLL_BACK
    again = ann.post("publications/1/undo", {"reason": "wrong currency"}).json()
    assert again["next"] == f"dags/{DAG}/reviews/{review.id}"
    assert "Restore them" in ann.get(f"reviews/{review.id}").text
    assert ann.post(f"reviews/{review.id}", {"choice": "approve"}).status_code == 422
    assert ann.post(f"reviews/{review.id}", {"choice": "approve", "comment": "wrong currency"}).status_code == 200
    assert table(workshop) == []
    assert ann.post("publications/1/undo", {"reason": "once more"}).status_code == 409
    assert "taken back already" in ann.get("publications/1").text


def test_an_undo_that_is_declined_changes_nothing() -> None:
    """It takes no reason, and the publication may still be taken back."""
    workshop = published("a")
    ann = Visitor(workshop)
    ann.post("publications/1/undo", {"reason": "wrong currency"})
    (review,) = workshop.services.reviews.waiting("hotels")
    assert ann.post(f"reviews/{review.id}", {"choice": "reject"}).status_code == 200
    assert (workshop.services.reviews.get(review.id).verdict, table(workshop)) == (Verdict.REJECTED, ["a"])
    assert "/publications/1/undo" in ann.get("publications/1").text


def test_what_others_changed_since_is_named_in_its_review() -> None:
    """It would be left alone."""
    workshop = published("a", "b")
    assert workshop.target is not None
    workshop.target.altered.add(ObjectKey("b"))
    ann = Visitor(workshop)
    ann.post("publications/1/undo", {"reason": "wrong currency"})
    (review,) = workshop.services.reviews.waiting("hotels")
    shown = ann.get(f"reviews/{review.id}").text
    assert "Left alone" in shown
    assert "others changed it in the table" in shown


def test_publications_come_in_pages() -> None:
    """The newest first, and a link to those before; who may only read is offered no undo."""
    workshop = published("a")
    assert workshop.target is not None
    for number in range(2, 60):
        review = ReviewId(f"<b>{number}</b>")
        made = Publication(id=PublicationId(number), sync="hotels", review=review, run=RunId("r"), counts={}, applied_at=NOW)
        workshop.target.ledger.published.append(made)
    reader = Visitor(workshop, changes=set())
    newest = reader.get("publications").text
    assert "publications?before=10" in newest
    assert "<b>" not in newest
    oldest = reader.get("publications", before=10).text
    assert ("publications/9" in oldest, "publications/10" in oldest, "before=" in oldest) == (True, False, False)
    assert "data-act" not in reader.get("publications/1").text
    assert reader.post("publications/1/undo", {"reason": "x"}).status_code == 403
    assert reader.get("publications/99").status_code == 404
