"""The pages of dead letters: by cause, one by one, what may be the matter with them, and what is done about them."""

from threading import Semaphore
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from sluice.errors import NotFound
from sluice.model.airflow_names import dag_id_of
from sluice.model.reject import Cause, DeadLetter
from sluice.model.run import Redrive
from sluice.packet.words import pretty
from sluice.ports import Services
from sluice.upkeep.letters import raw_record
from sluice.upkeep.triage import triaged
from sluice.web.letter_acts import Chosen, discarded, redriven
from sluice.web.pages import Pages
from sluice.web.reading import spec_of, sync_named
from sluice.web.surroundings import Surroundings
from sluice.web.writing import Done, writes

_PAGE: Final = 50
_RAW_SHOWN: Final = 20_000
"""Characters of a record that a letter's page shows."""

OfCause = Annotated[str | None, Query(max_length=1_000)]
Number = Annotated[int | None, Query(ge=1, le=2**63 - 1)]


def router(around: Surroundings, pages: Pages) -> APIRouter:
    """Return the routes."""
    access = around.access
    routes = APIRouter()
    dag_only = [Depends(access.may_read_dag)]
    weighed_at_once = Semaphore(1)
    User = Annotated[str, Depends(access.user)]  # noqa: N806 - a type
    MayChange = Annotated[bool, Depends(access.can_change_dag)]  # noqa: N806

    @routes.get("/letters")
    def everywhere(request: Request, readable: Annotated[set[str], Depends(access.readable_dags)]) -> Response:
        with around.services() as services:
            groups = [group for group in services.letter_desk.groups(None) if dag_id_of(group.sync) in readable]
        return pages.render("causes.html", request, groups=groups)

    @routes.get("/dags/{dag_id}/letters", dependencies=dag_only)
    def page(request: Request, dag_id: str, may_change: MayChange, cause: OfCause = None, before: Number = None) -> Response:
        sync = sync_named(dag_id)
        with around.services() as services:
            groups = services.letter_desk.groups(sync)
            letters = services.letter_desk.selected(sync, Redrive(cause=cause), _PAGE + 1, before)
        chosen = next((group for group in groups if cause == str(group.cause)), None)
        shown, more = letters[:_PAGE], len(letters) > _PAGE
        told: dict[str, Any] = {"cause": cause, "chosen": chosen, "may_change": may_change, "is_first": before is None}
        return pages.render("letters.html", request, sync=sync, groups=groups, letters=shown, more=more, **told)

    @routes.get("/dags/{dag_id}/letters/proposals", dependencies=dag_only)
    def proposals(request: Request, dag_id: str, cause: Annotated[str, Query(min_length=1, max_length=1_000)]) -> Response:
        with around.services() as services, weighed_at_once:
            spec = spec_of(services, dag_id)
            has_code = spec.triage is not None or spec.transform is not None
            found = [] if has_code else list(triaged(services, spec, Cause.named(cause)))
        return pages.render("proposals.html", request, sync=spec.sync, cause=cause, found=found, has_code=has_code)

    @routes.get("/dags/{dag_id}/letters/{number}", dependencies=dag_only)
    def one(request: Request, dag_id: str, number: int, may_change: MayChange) -> Response:
        with around.services() as services:
            letter = _letter(services, sync_named(dag_id), number)
            record, gone = raw_record(services, letter)
        text = None if record is None else pretty(record)
        told: dict[str, Any] = {"text": text and text[:_RAW_SHOWN], "is_cut": text is not None and len(text) > _RAW_SHOWN}
        return pages.render("letter.html", request, letter=letter, gone=gone, may_change=may_change, **told)

    @routes.post("/dags/{dag_id}/letters/redrive", dependencies=writes(access))
    def redrive(dag_id: str, chosen: Chosen, user: User) -> Done:
        with around.services() as services:
            return redriven(around, services, sync_named(dag_id), chosen, user)

    @routes.post("/dags/{dag_id}/letters/discard", dependencies=writes(access))
    def discard(dag_id: str, chosen: Chosen, user: User) -> Done:
        with around.services() as services:
            return discarded(services, sync_named(dag_id), chosen, user)

    return routes


def _letter(services: Services, sync: str, number: int) -> DeadLetter:
    """Return a letter, if it is one of the sync."""
    letter = services.letter_desk.get(number)
    if letter.sync != sync:
        raise NotFound(f"{sync} has no dead letter {number}")
    return letter
