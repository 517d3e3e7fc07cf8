"""The pages of reviews: what a review is about, and its packet."""

from typing import Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from sluice.errors import ArtifactCorrupt, NotFound
from sluice.flow.damage import note
from sluice.flow.packet import evidence_of, packet_name, packet_of
from sluice.flow.pinned_spec import pinned_spec
from sluice.model.base import ReviewId
from sluice.model.ledger import Outcome
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.packet.page import evidence_part
from sluice.ports import Services
from sluice.web.pages import Pages
from sluice.web.reading import review_facts, run_of
from sluice.web.samples import Sample, samples_of
from sluice.web.surroundings import Surroundings

_LARGEST: Final = 16_000_000
"""Bytes a page is ready to fetch from the object store."""
_PACKET_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
"""A packet carries its sheet in itself. Whatever might be in it, it is no page of Airflow's origin."""


def router(around: Surroundings, pages: Pages) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/dags/{dag_id}/reviews/{review_id}", dependencies=[Depends(around.access.may_read_dag)])

    @routes.get("")
    def page(request: Request, dag_id: str, review_id: str) -> Response:
        with around.services() as services:
            review = services.reviews.get(ReviewId(review_id))
            run = run_of(services, dag_id, review.run)
            evidence = _evidence(services, run, review)
            samples = _samples(services, review) if evidence is None else None
            newest = services.reviews.latest(run.id)
        newer = newest if newest is not None and newest.id != review.id else None
        shown: dict[str, Any] = {"run": run, "review": review, "newer": newer, "evidence": evidence, "samples": samples}
        return pages.render("review.html", request, **shown, **review_facts(review))

    @routes.get("/packet")
    def packet(dag_id: str, review_id: str, *, download: bool = False) -> Response:
        with around.services() as services:
            review = services.reviews.get(ReviewId(review_id))
            run_of(services, dag_id, review.run)
            data = packet_of(services, review)
        if data is None:
            raise NotFound(
                f"the packet of review {review.id} was lost, or never made: the review's own page tells what is known"
            )
        disposition = "attachment" if download else "inline"
        headers = {
            "Content-Security-Policy": _PACKET_POLICY,
            "Content-Disposition": f'{disposition}; filename="{packet_name(review)}"',
        }
        return HTMLResponse(data, headers=headers)

    return routes


def _evidence(services: Services, run: Run, review: Review) -> Markup | None:
    if review.evidence is None or review.evidence.bytes > _LARGEST:
        return None
    evidence = evidence_of(services, review)
    return None if evidence is None else evidence_part(pinned_spec(services, run), review, evidence)


def _samples(services: Services, review: Review) -> dict[Outcome, list[Sample]] | None:
    """Return some of the objects of a review without evidence; None if its diff is too large for a page, or lost."""
    if review.diff.bytes > _LARGEST:
        return None
    try:
        return samples_of(services, review)
    except ArtifactCorrupt as error:
        note(services, review.diff, error)
        return None
