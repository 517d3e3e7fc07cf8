"""The pages about syncs: all that the user may see at a glance, and the runs of one."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from sluice.errors import SpecInvalid
from sluice.model.airflow_names import dag_id_of, sync_of
from sluice.model.base import RunId
from sluice.model.health import MEANINGS, Health, health
from sluice.model.overview import RestingStage, SyncGlance
from sluice.model.schedule import Schedule
from sluice.model.spec import SyncSpec
from sluice.ports import Services
from sluice.web.pages import Pages
from sluice.web.reading import sync_named
from sluice.web.surroundings import Surroundings

_RUNS_AT_A_GLANCE: Final = 14
_RUNS_A_PAGE: Final = 50


@dataclass(frozen=True)
class SyncRow:
    """A sync as the page of all of them shows it."""

    glance: SyncGlance
    health: Health
    schedule: Schedule | None
    resting: list[RestingStage]
    """The hosts that its stage leaves alone."""


def router(around: Surroundings, pages: Pages) -> APIRouter:
    """Return the routes."""
    routes = APIRouter()
    Readable = Annotated[set[str], Depends(around.access.readable_dags)]  # noqa: N806 - a type

    @routes.get("/")
    def syncs(request: Request, readable: Readable) -> Response:
        schedules = around.schedules()
        with around.services() as services:
            rows = _rows(services, readable, schedules)
            now = services.clock.now()
        return pages.render("syncs.html", request, rows=rows, meanings=MEANINGS, now=now)

    @routes.get("/dags/{dag_id}", dependencies=[Depends(around.access.may_read_dag)])
    def sync(request: Request, dag_id: str, before: Annotated[str | None, Query(max_length=250)] = None) -> Response:
        name = sync_named(dag_id)
        schedules = around.schedules()
        with around.services() as services:
            (row,) = _rows(services, [dag_id], schedules)
            runs = services.runs.recent(name, [], _RUNS_A_PAGE + 1, RunId(before) if before is not None else None)
            spec = _spec(services, name)
            now = services.clock.now()
        return pages.render(
            "sync.html",
            request,
            row=row,
            runs=runs[:_RUNS_A_PAGE],
            older=runs[_RUNS_A_PAGE - 1].id if len(runs) > _RUNS_A_PAGE else None,
            before=before,
            spec=spec,
            meanings=MEANINGS,
            now=now,
        )

    return routes


def _rows(services: Services, dags: Iterable[str], schedules: Mapping[str, Schedule]) -> list[SyncRow]:
    """Return the syncs of these DAGs, those first that want somebody."""
    syncs = [sync for dag in dags if dag_id_of(sync := sync_of(dag)) == dag]
    resting = services.overview.resting()
    now = services.clock.now()
    rows = [
        SyncRow(
            glance,
            health(glance, schedules.get(dag_id_of(glance.sync)), now),
            schedules.get(dag_id_of(glance.sync)),
            [stage for stage in resting if stage.stage == glance.stage],
        )
        for glance in services.overview.syncs(syncs, _RUNS_AT_A_GLANCE)
    ]
    urgency = list(Health)
    return sorted(rows, key=lambda row: (urgency.index(row.health), row.glance.sync))


def _spec(services: Services, sync: str) -> SyncSpec | None:
    """Return the spec as it stands; None where the server has no such file, or none that can be read."""
    with suppress(SpecInvalid):
        return services.spec(sync)
    return None
