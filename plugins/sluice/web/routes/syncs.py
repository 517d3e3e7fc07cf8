"""The pages about syncs: all that the user may see, and the runs of one."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from sluice.model.airflow_names import dag_id_of
from sluice.web.pages import Pages
from sluice.web.surroundings import Surroundings

_RUNS_SHOWN: Final = 100


def router(around: Surroundings, pages: Pages) -> APIRouter:
    """Return the routes."""
    routes = APIRouter()

    @routes.get("/")
    def all_runs(
        request: Request,
        readable: Annotated[set[str], Depends(around.access.readable_dags)],
        sync: Annotated[str | None, Query(max_length=63)] = None,
    ) -> Response:
        with around.services() as services:
            found = services.runs.recent(sync, [], _RUNS_SHOWN)
        mine = [run for run in found if dag_id_of(run.sync) in readable]
        return pages.render("runs.html", request, runs=mine, sync=sync)

    return routes
