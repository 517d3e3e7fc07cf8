"""The pages as one FastAPI application: read only, without scripts, and behind a login on every route."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sluice.errors import ArtifactCorrupt, NotFound, Retryable, SluiceError
from sluice.flow.damage import note
from sluice.flow.packet import evidence_of, packet_name, packet_of
from sluice.flow.pinned_spec import pinned_spec
from sluice.model.base import ReviewId, RunId
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import WAITING_VERDICTS
from sluice.model.progress import shown
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.shard_tally import tallies, worth_showing
from sluice.packet.page import evidence_part, style
from sluice.packet.words import counts_of, sentence
from sluice.ports import Services
from sluice.web.access import Access
from sluice.web.samples import Sample, samples_of

_HERE: Final = Path(__file__).parent
_RUNS_SHOWN: Final = 100
_LARGEST: Final = 16_000_000
"""Bytes a page is ready to fetch from the object store."""
_POLICY: Final = "default-src 'none'; style-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
_PACKET_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
"""A packet carries its sheet in itself. Whatever might be in it, it is no page of Airflow's origin."""
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Surroundings:
    """What the pages need of whoever mounts them."""

    access: Access
    services: Callable[[], AbstractContextManager[Services]]
    run_id_of: Callable[[str, str], RunId]
    """A DagRun's run, by DAG id and DagRun id."""
    dag_id_of: Callable[[str], str]
    """A sync's DAG."""


def create_app(around: Surroundings) -> FastAPI:
    """Return the application; every link in it is relative, so that it may be mounted anywhere."""
    app = FastAPI(
        title="Sluice",
        dependencies=[Depends(around.access.authenticated), Depends(_names_something)],
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    pages = _Pages(around)
    dag_only = [Depends(around.access.may_read_dag)]
    Readable = Annotated[set[str], Depends(around.access.readable_dags)]  # noqa: N806 - a type

    @app.middleware("http")
    async def protect(request: Request, call_next: Callable[[Request], Any]) -> Response:
        response: Response = await call_next(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.exception_handler(SluiceError)
    async def explain(request: Request, error: SluiceError) -> Response:
        status = 404 if isinstance(error, NotFound) else 503 if isinstance(error, Retryable) else 500
        return pages.render("problem.html", request, status, message=error.message)

    @app.get("/style.css")
    def sheet() -> Response:
        return Response(style() + (_HERE / "style.css").read_text(encoding="utf-8"), media_type="text/css")

    @app.get("/")
    def runs(request: Request, readable: Readable, sync: Annotated[str | None, Query(max_length=63)] = None) -> Response:
        return pages.runs(request, readable, sync)

    @app.get("/dags/{dag_id}/dagRuns/{dag_run_id}", dependencies=dag_only)
    def run_of_dag_run(request: Request, dag_id: str, dag_run_id: str) -> Response:
        return pages.run(request, dag_id, around.run_id_of(dag_id, dag_run_id))

    @app.get("/dags/{dag_id}/runs/{run_id}", dependencies=dag_only)
    def run(request: Request, dag_id: str, run_id: str) -> Response:
        return pages.run(request, dag_id, RunId(run_id))

    @app.get("/dags/{dag_id}/reviews/{review_id}", dependencies=dag_only)
    def review(request: Request, dag_id: str, review_id: str) -> Response:
        return pages.review(request, dag_id, ReviewId(review_id))

    @app.get("/dags/{dag_id}/reviews/{review_id}/packet", dependencies=dag_only)
    def packet(dag_id: str, review_id: str, *, download: bool = False) -> Response:
        return pages.packet(dag_id, ReviewId(review_id), "attachment" if download else "inline")

    return app


def _names_something(request: Request) -> None:
    """Refuse an address with characters that no name holds; Postgres takes no text with a NUL in it."""
    if not all(
        text.isprintable() for text in (request.url.path, *request.path_params.values(), *request.query_params.values())
    ):
        raise NotFound("there is nothing of that name")


class _Pages:
    """What each page shows."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        self._templates.globals["dag_id_of"] = around.dag_id_of
        self._templates.filters["moment"] = lambda moment: f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else ""
        self._templates.filters["sentence"] = sentence
        self._templates.globals["deletions"] = lambda review: review.figures.count(Outcome.DELETED)

    def render(self, template: str, request: Request, status: int = 200, **values: Any) -> Response:
        """Return a page. Links lead from the mount's root, which is as many levels up as the path is deep."""
        depth = request.url.path.removeprefix(request.scope.get("root_path", "")).count("/") - 1
        text = self._templates.get_template(template).render(root="../" * depth or "./", **values)
        return HTMLResponse(text, status)

    def runs(self, request: Request, readable: set[str], sync: str | None) -> Response:
        """Show the newest runs that the user may see."""
        with self._around.services() as services:
            found = services.runs.recent(sync, [], _RUNS_SHOWN)
        mine = [run for run in found if self._around.dag_id_of(run.sync) in readable]
        return self.render("runs.html", request, runs=mine, sync=sync)

    def run(self, request: Request, dag_id: str, run_id: RunId) -> Response:
        """Show a run, its shards and what its review says."""
        with self._around.services() as services:
            run = self._run(services, dag_id, run_id)
            shards = shown(services.shards.of(run.id), services.progress.of(run.id))
            review = services.reviews.latest(run.id)
        shown_shards: dict[str, Any] = {
            "shards": worth_showing(shards),
            "tallies": tallies(shards),
            "shards_in_all": len(shards),
        }
        return self.render("run.html", request, run=run, review=review, **shown_shards, **_review_facts(review))

    def review(self, request: Request, dag_id: str, review_id: ReviewId) -> Response:
        """Show a review with some of the objects it is about, and how to decide."""
        with self._around.services() as services:
            review = services.reviews.get(review_id)
            run = self._run(services, dag_id, review.run)
            evidence = self._evidence(services, run, review)
            samples = self._samples(services, review) if evidence is None else None
            newest = services.reviews.latest(run.id)
        newer = newest if newest is not None and newest.id != review.id else None
        shown: dict[str, Any] = {"run": run, "review": review, "newer": newer, "evidence": evidence, "samples": samples}
        return self.render("review.html", request, **shown, **_review_facts(review))

    def packet(self, dag_id: str, review_id: ReviewId, disposition: str) -> Response:
        """Show or hand out the packet of a review."""
        with self._around.services() as services:
            review = services.reviews.get(review_id)
            self._run(services, dag_id, review.run)
            data = packet_of(services, review)
        if data is None:
            raise NotFound(
                f"the packet of review {review.id} was lost, or never made: the review's own page tells what is known"
            )
        headers = {
            "Content-Security-Policy": _PACKET_POLICY,
            "Content-Disposition": f'{disposition}; filename="{packet_name(review)}"',
        }
        return HTMLResponse(data, headers=headers)

    def _evidence(self, services: Services, run: Run, review: Review) -> Markup | None:
        if review.evidence is None or review.evidence.bytes > _LARGEST:
            return None
        evidence = evidence_of(services, review)
        return None if evidence is None else evidence_part(pinned_spec(services, run), review, evidence)

    def _samples(self, services: Services, review: Review) -> dict[Outcome, list[Sample]] | None:
        """Return some of the objects of a review without evidence; None if its diff is too large for a page, or lost."""
        if review.diff.bytes > _LARGEST:
            return None
        try:
            return samples_of(services, review)
        except ArtifactCorrupt as error:
            note(services, review.diff, error)
            return None

    def _run(self, services: Services, dag_id: str, run_id: RunId) -> Run:
        """Return the run, if it belongs to the DAG that the user was found to be allowed to read."""
        run = services.runs.get(run_id)
        if self._around.dag_id_of(run.sync) != dag_id:
            raise NotFound(f"there is no run {run_id} of {dag_id}")
        return run


def _review_facts(review: Review | None) -> dict[str, Any]:
    return {
        "counts": [] if review is None else counts_of(review.figures),
        "waits": review is not None and review.verdict in WAITING_VERDICTS,
    }
