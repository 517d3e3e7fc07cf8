"""The pages of a review, over stores in memory: what they show, and what they are locked down with."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi.testclient import TestClient

from sluice.flow.packet import with_packet
from sluice.model.artifact import ArtifactKind, ArtifactRef
from sluice.model.ledger import Outcome
from sluice.model.review import Figures, Review
from tests.support.evidence import some_evidence
from tests.support.nouns import a_review
from tests.unit.flow.workshop import NORTH, RUN, Workshop
from tests.unit.packet.reading import Reading, drawings
from tests.unit.web.visitor import Visitor

DAG = "sluice_hotels"
WORD = "<script>alert(1)</script>"


@dataclass
class Site:
    """The pages of a workshop's run, and the review they are about."""

    workshop: Workshop
    review: Review
    allowed: set[str] = field(default_factory=lambda: {DAG})

    def client(self) -> TestClient:
        """Return a browser."""
        return Visitor(self.workshop, reads=self.allowed, changes=self.allowed).client()

    def get(self, path: str = "", dag: str = DAG) -> Any:
        """Return the answer for a page of the review."""
        return self.client().get(f"/dags/{dag}/reviews/{self.review.id}{path}")


@pytest.fixture
def site() -> Site:
    """A review with its evidence and its packet."""
    workshop = Workshop()
    workshop.equip()
    workshop.begin()
    workshop.bring_in(NORTH, ("a", "2024-05-01T00:00:00Z"))
    evidence = some_evidence(WORD)
    ref = ArtifactRef(sync="hotels", run=RUN, kind=ArtifactKind.EVIDENCE)
    stored = workshop.artifacts.put(ref, evidence.model_dump_json().encode(), records=1, expires_at=None)
    figures = Figures(seen=10, unchanged=7, live_before=9, outcomes={Outcome.CHANGED: 2}, vanished=4)
    review = a_review("run-1.abcd", evidence=stored, figures=figures)
    made = with_packet(workshop.services, workshop.spec, workshop.memory.runs[RUN], review, evidence=evidence, shards=[])
    workshop.memory.reviews[made.id] = made
    return Site(workshop, made)


def test_the_page_of_a_review_shows_its_evidence(site: Site) -> None:
    """Side by side, drawn, escaped; with nothing that its policy would refuse."""
    page = site.get()
    assert page.status_code == 200
    reading = Reading(page.text)
    assert not reading.unclosed
    assert "style" not in {tag for tag, _ in reading.elements}
    assert [attributes for tag, attributes in reading.elements if tag == "script"] == [
        {"src": "../../../sluice.js", "defer": None}
    ]
    assert "style" not in {name for _, attributes in reading.elements for name in attributes}
    assert f"the {WORD}" in reading.text
    assert "population stability index" in reading.text
    assert "4 in the table, but not delivered" in " ".join(reading.text.split())
    assert len(drawings(page.text)) > 3
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in page.headers["content-security-policy"]


def test_a_review_that_counts_no_more_leads_to_the_one_that_does(site: Site) -> None:
    """Where its run was reviewed again, its page says so."""
    assert "reviewed again" not in site.get().text
    newer = site.review.model_copy(update={"id": "run-1.ef01"})
    site.workshop.memory.reviews[newer.id] = newer
    page = site.get().text
    assert "reviewed again" in page
    assert f'href="../../../dags/{DAG}/reviews/run-1.ef01"' in page


def test_its_packet_is_shown_and_handed_out(site: Site) -> None:
    """By links of the page that lead to it; whatever is in it, it is in a box of its own."""
    links = [str(a["href"]) for tag, a in Reading(site.get().text).elements if tag == "a" and "/packet" in str(a.get("href"))]
    assert len(links) == 2
    page = site.client().get(f"/dags/{DAG}/reviews/x").url
    shown, kept = (site.client().get(str(page.join(link))) for link in links)
    assert shown.content == kept.content == site.workshop.artifacts.get(site.review.report)  # type: ignore[arg-type]
    assert shown.headers["content-security-policy"].startswith("sandbox; default-src 'none'; style-src 'unsafe-inline'")
    assert "frame-ancestors 'self'" in shown.headers["content-security-policy"]
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert shown.headers["cache-control"] == "no-store"
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert shown.headers["content-disposition"] == 'inline; filename="hotels-run-1.abcd.html"'
    assert kept.headers["content-disposition"] == 'attachment; filename="hotels-run-1.abcd.html"'


def test_a_packet_is_its_dag_s(site: Site) -> None:
    """Who may not read the DAG gets none, nor who may read another one only."""
    assert site.get("/packet", dag="sluice_other").status_code == 403
    site.allowed = {"sluice_other"}
    assert site.get("/packet").status_code == 403
    assert site.get("/packet", dag="sluice_other").status_code == 404


def test_a_packet_that_was_lost_leaves_the_page(site: Site) -> None:
    """It says so itself; evidence that is lost, too, leaves the figures."""
    assert site.review.report is not None
    site.workshop.artifacts.remove(site.review.report)
    lost = site.get("/packet")
    assert lost.status_code == 404
    assert "was lost, or never made" in lost.text
    assert "population stability index" in site.get().text
    workshop = site.workshop
    workshop.artifacts.objects = {key: data for key, data in workshop.artifacts.objects.items() if "|evidence|" not in key}
    bare = site.get()
    assert bare.status_code == 200
    assert "vanished" in bare.text
    assert "population stability index" not in bare.text


def test_the_sheet_is_that_of_the_packet_and_of_the_pages(site: Site) -> None:
    """One look, in one request."""
    sheet = site.client().get("/style.css")
    assert sheet.headers["content-type"].startswith("text/css")
    assert "svg.histogram" in sheet.text
    assert "nav {" in sheet.text
