"""The pages of publications: what each did, who let it pass, and how it is taken back."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from sluice.errors import NotFound
from sluice.model.audit import Actor
from sluice.model.base import PublicationId
from sluice.model.ledger import Publication
from sluice.ports import Services
from sluice.web.pages import Pages
from sluice.web.reading import spec_of
from sluice.web.surroundings import Surroundings
from sluice.web.undoing import begun, undoing_of
from sluice.web.writing import Done, Form, Reason, writes

_PAGE: Final = 50
_LARGEST: Final = 2**63 - 1

Before = Annotated[int | None, Query(ge=1, le=_LARGEST)]


class _Asked(Form):
    """The form that asks for an undo."""

    reason: Reason


def router(around: Surroundings, pages: Pages) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/dags/{dag_id}/publications", dependencies=[Depends(around.access.may_read_dag)])

    @routes.get("")
    def page(request: Request, dag_id: str, before: Before = None) -> Response:
        with around.services() as services:
            spec = spec_of(services, dag_id)
            older = None if before is None else PublicationId(before)
            found = services.ledger(spec).publications(spec.sync, _PAGE + 1, older)
        more = len(found) > _PAGE
        return pages.render("publications.html", request, spec=spec, publications=found[:_PAGE], more=more)

    @routes.get("/{number}")
    def one(
        request: Request, dag_id: str, number: int, may_change: Annotated[bool, Depends(around.access.can_change_dag)]
    ) -> Response:
        with around.services() as services:
            made = _publication(services, dag_id, number)
            undoing = undoing_of(services, made)
        return pages.render("publication.html", request, made=made, undoing=undoing, may_change=may_change)

    @routes.post("/{number}/undo", dependencies=writes(around.access))
    def undo(dag_id: str, number: int, asked: _Asked, user: Annotated[str, Depends(around.access.user)]) -> Done:
        with around.services() as services:
            made = _publication(services, dag_id, number)
            return begun(around, services, made, Actor(name=user, via="pages", reason=asked.reason))

    return routes


def _publication(services: Services, dag_id: str, number: int) -> Publication:
    """Return a publication, if it is one of the DAG's sync."""
    spec = spec_of(services, dag_id)
    made = services.ledger(spec).publication(PublicationId(number)) if 0 < number <= _LARGEST else None
    if made is None or made.sync != spec.sync:
        raise NotFound(f"{spec.sync} has no publication {number}")
    return made
