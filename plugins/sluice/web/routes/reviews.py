"""The pages of reviews: those that wait, what each is about, its packet, and the decision about it."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from sluice.checks.policy import is_mass_deletion
from sluice.errors import ArtifactCorrupt, NotFound, SpecInvalid, StateTooNew, StateUnreadable
from sluice.flow.damage import note
from sluice.flow.gate import expires_at
from sluice.flow.packet import evidence_of, packet_name, packet_of
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.rollback import conflicts_of
from sluice.model.airflow_names import dag_id_of
from sluice.model.base import ReviewId
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import WAITING_VERDICTS, RunStatus
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.spec import SyncSpec
from sluice.model.undo import Conflict
from sluice.packet.page import evidence_part
from sluice.ports import Services
from sluice.web.deciding import Answer, Person, decided
from sluice.web.pages import Pages
from sluice.web.reading import review_facts, run_of
from sluice.web.samples import Sample, samples_of
from sluice.web.surroundings import Surroundings
from sluice.web.writing import Done, writes

_LARGEST: Final = 16_000_000
"""Bytes a page is ready to fetch from the object store."""
_MOST_LISTED: Final = 200
_MOST_CONFLICTS: Final = 10_000
"""So many objects that a rollback leaves alone are read for a page, and so many are shown:"""
_CONFLICTS_SHOWN: Final = 100
_PACKET_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
"""A packet carries its sheet in itself. Whatever might be in it, it is no page of Airflow's origin."""


def router(around: Surroundings, pages: Pages) -> APIRouter:
    """Return the routes."""
    routes = APIRouter()
    dag_only = [Depends(around.access.may_read_dag)]

    @routes.get("/reviews")
    def waiting(request: Request, readable: Annotated[set[str], Depends(around.access.readable_dags)]) -> Response:
        with around.services() as services:
            found = services.reviews.waiting()
            now = services.clock.now()
        mine = [review for review in found if dag_id_of(review.sync) in readable]
        return pages.render("reviews.html", request, reviews=mine[:_MOST_LISTED], in_all=len(mine), now=now)

    @routes.get("/dags/{dag_id}/reviews/{review_id}", dependencies=dag_only)
    def page(
        request: Request,
        dag_id: str,
        review_id: str,
        may_decide: Annotated[bool, Depends(around.access.can_change_dag)],
        user_id: Annotated[str, Depends(around.access.user_id)],
    ) -> Response:
        with around.services() as services:
            review = services.reviews.get(ReviewId(review_id))
            run = run_of(services, dag_id, review.run)
            spec = _spec(services, run)
            evidence = _evidence(services, spec, review)
            samples = _samples(services, review) if evidence is None else None
            newest = services.reviews.latest(run.id)
            question = _question(services, spec, run, review, user_id) if may_decide else None
            conflicts = _conflicts(services, review)
        newer = newest if newest is not None and newest.id != review.id else None
        shown: dict[str, Any] = {"run": run, "review": review, "newer": newer, "evidence": evidence, "samples": samples}
        told: dict[str, Any] = {"question": question, "conflicts": conflicts[:_CONFLICTS_SHOWN]}
        return pages.render("review.html", request, **shown, **told, **review_facts(review))

    @routes.post("/dags/{dag_id}/reviews/{review_id}", dependencies=writes(around.access))
    def decide(
        dag_id: str,
        review_id: str,
        answer: Answer,
        user: Annotated[str, Depends(around.access.user)],
        user_id: Annotated[str, Depends(around.access.user_id)],
    ) -> Done:
        with around.services() as services:
            review = services.reviews.get(ReviewId(review_id))
            run_of(services, dag_id, review.run)
            return decided(around, services, review, answer, Person(user, user_id))

    @routes.get("/dags/{dag_id}/reviews/{review_id}/packet", dependencies=dag_only)
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


@dataclass(frozen=True)
class _Question:
    """What a person who may change the DAG is asked."""

    is_open: bool
    """Whether the review waits; else it was decided, and its run has yet to go on."""
    approvers: tuple[str, ...]
    """Who may answer, if that is not whoever asks for the page."""
    wants_number: bool
    """Whether an approval has to name how many objects may be deleted."""
    until: datetime | None
    """When policy decides in a person's place, as far as that is known."""


def _question(services: Services, spec: SyncSpec | None, run: Run, review: Review, user_id: str) -> _Question | None:
    is_open = review.verdict in WAITING_VERDICTS
    if not (is_open or _is_left_alone(services, run, review)):
        return None
    if spec is None:
        return _Question(is_open, (), wants_number=False, until=None)
    policy = spec.review
    return _Question(
        is_open,
        approvers=() if user_id in policy.approvers else policy.approvers,
        wants_number=is_mass_deletion(policy, review.figures),
        until=expires_at(services, review) if is_open else None,
    )


def _is_left_alone(services: Services, run: Run, review: Review) -> bool:
    """Whether an inline run is not over by this review, which was decided, and nobody is at it."""
    if review.decision is None or run.origin.is_airflow or run.status not in (RunStatus.WAITING, RunStatus.RUNNING):
        return False
    is_alive = any(lease.owner == run.id and not lease.is_expired for lease in services.by_hand.leases())
    newest = services.reviews.latest(run.id)
    return not is_alive and newest is not None and newest.id == review.id


def _spec(services: Services, run: Run) -> SyncSpec | None:
    """Return the spec that the run was admitted with; None if it cannot be read any more."""
    with suppress(NotFound, ArtifactCorrupt, SpecInvalid, StateUnreadable, StateTooNew):
        return pinned_spec(services, run)
    return None


def _evidence(services: Services, spec: SyncSpec | None, review: Review) -> Markup | None:
    if spec is None or review.evidence is None or review.evidence.bytes > _LARGEST:
        return None
    evidence = evidence_of(services, review)
    return None if evidence is None else evidence_part(spec, review, evidence)


def _samples(services: Services, review: Review) -> dict[Outcome, list[Sample]] | None:
    """Return some of the objects of a review without evidence; None if its diff is too large for a page, or lost."""
    if review.diff.bytes > _LARGEST:
        return None
    try:
        return samples_of(services, review)
    except ArtifactCorrupt as error:
        note(services, review.diff, error)
        return None


def _conflicts(services: Services, review: Review) -> list[Conflict]:
    """Return what a rollback leaves alone, unless that is too much for a page."""
    return conflicts_of(services, review) if 0 < review.figures.conflicts <= _MOST_CONFLICTS else []
