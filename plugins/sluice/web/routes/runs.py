"""The page of a run: its shards, and what its review says."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from sluice.model.base import RunId
from sluice.model.progress import shown
from sluice.model.shard_tally import tallies, worth_showing
from sluice.web.pages import Pages
from sluice.web.reading import review_facts, run_of
from sluice.web.surroundings import Surroundings


def router(around: Surroundings, pages: Pages) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(dependencies=[Depends(around.access.may_read_dag)])

    def page(request: Request, dag_id: str, run_id: RunId) -> Response:
        with around.services() as services:
            run = run_of(services, dag_id, run_id)
            shards = shown(services.shards.of(run.id), services.progress.of(run.id))
            review = services.reviews.latest(run.id)
        return pages.render(
            "run.html",
            request,
            run=run,
            review=review,
            shards=worth_showing(shards),
            tallies=tallies(shards),
            shards_in_all=len(shards),
            **review_facts(review),
        )

    @routes.get("/dags/{dag_id}/dagRuns/{dag_run_id}")
    def run_of_dag_run(request: Request, dag_id: str, dag_run_id: str) -> Response:
        return page(request, dag_id, around.run_id_of(dag_id, dag_run_id))

    @routes.get("/dags/{dag_id}/runs/{run_id}")
    def run(request: Request, dag_id: str, run_id: str) -> Response:
        return page(request, dag_id, RunId(run_id))

    return routes
