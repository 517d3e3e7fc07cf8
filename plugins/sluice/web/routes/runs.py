"""The page of a run: its shards as they come in, what its review says, what was done to it by hand, and what may be done."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response

from sluice.model.base import RunId
from sluice.model.lifecycle import ShardStatus, Step
from sluice.model.progress import shown
from sluice.web import run_acts
from sluice.web.live import Live
from sluice.web.pages import Pages
from sluice.web.reading import review_facts, run_of, sync_named
from sluice.web.shard_list import shard_list
from sluice.web.surroundings import Surroundings
from sluice.web.writing import Done, writes

_EVENTS_SHOWN: Final = 30
_ENTRIES_SHOWN: Final = 50
_FOLLOWERS_SHOWN: Final = 20
_NOBODY_LOOKS_FURTHER: Final = 10_000


@dataclass(frozen=True)
class Rows:
    """Which shards the table has, as the address of the page says."""

    shards: Annotated[ShardStatus | None, Query()] = None
    page_of: Annotated[int, Query(ge=1, le=_NOBODY_LOOKS_FURTHER)] = 1


def router(around: Surroundings, pages: Pages) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(dependencies=[Depends(around.access.may_read_dag)])
    live = Live(around.services)
    CanChange = Annotated[bool, Depends(around.access.can_change_dag)]  # noqa: N806 - a type
    User = Annotated[str, Depends(around.access.user)]  # noqa: N806 - a type
    of_run = "/dags/{dag_id}/runs/{run_id}"

    Asked = Annotated[Rows, Depends()]  # noqa: N806 - a type

    @routes.get("/dags/{dag_id}/dagRuns/{dag_run_id}")
    def run_of_dag_run(request: Request, dag_id: str, dag_run_id: str, rows: Asked, can_change: CanChange) -> Response:
        run_id = around.run_id_of(dag_id, dag_run_id)
        return pages.render("run.html", request, **_shown(around, dag_id, run_id, rows), can_change=can_change)

    @routes.get(of_run)
    def run(request: Request, dag_id: str, run_id: str, rows: Asked, can_change: CanChange) -> Response:
        return pages.render("run.html", request, **_shown(around, dag_id, RunId(run_id), rows), can_change=can_change)

    @routes.get(f"{of_run}/events")
    def events(
        dag_id: str,
        run_id: str,
        after: Annotated[int, Query(ge=0)] = 0,
        last_event_id: Annotated[int | None, Header(ge=0)] = None,
    ) -> Response:
        with around.services() as services:
            run_of(services, dag_id, RunId(run_id))
        return live.answer(RunId(run_id), after if last_event_id is None else last_event_id)

    @routes.post(f"{of_run}/shards", dependencies=writes(around.access))
    def act_on_shard(dag_id: str, run_id: str, asked: run_acts.ActOnShard, user: User) -> Done:
        with around.services() as services:
            return run_acts.act_on_shard(services, run_of(services, dag_id, RunId(run_id)), asked, user)

    @routes.post(f"{of_run}/cancel", dependencies=writes(around.access))
    def cancel(dag_id: str, run_id: str, asked: run_acts.ActOnRun, user: User) -> Done:
        with around.services() as services:
            return run_acts.cancel(services, run_of(services, dag_id, RunId(run_id)), asked, user)

    @routes.post(f"{of_run}/release", dependencies=writes(around.access))
    def release(dag_id: str, run_id: str, asked: run_acts.ActOnRun, user: User) -> Done:
        with around.services() as services:
            return run_acts.release(services, run_of(services, dag_id, RunId(run_id)), asked, user)

    return routes


def _shown(around: Surroundings, dag_id: str, run_id: RunId, rows: Rows) -> dict[str, Any]:
    """Return what the page of a run shows. Its events come first: what happens meanwhile is told by the stream behind them."""
    sync_named(dag_id)
    with around.services() as services:
        run = run_of(services, dag_id, run_id)
        events = services.events.newest(run.id, _EVENTS_SHOWN)
        shards = shown(services.shards.of(run.id), services.progress.of(run.id))
        standing = services.events.standing(run.id)
        review = services.reviews.latest(run.id)
        followers = services.runs.followed_by(run.id, _FOLLOWERS_SHOWN)
        entries = services.audit.of(None, run.id, _ENTRIES_SHOWN)
    return {
        "run": run,
        "steps": list(Step),
        "followers": followers,
        "events": events,
        "standing": standing,
        "shards": shard_list(shards, rows.shards, rows.page_of),
        "statuses": list(ShardStatus),
        "review": review,
        "entries": entries,
        **review_facts(review),
    }
