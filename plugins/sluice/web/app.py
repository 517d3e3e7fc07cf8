"""The pages as one FastAPI application: behind a login on every route, locked down, without inline scripts."""

from typing import Any, Final

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from sluice.errors import DecisionRefused, IllegalTransition, NotFound, NotUndoable, Retryable, SluiceError, UsageInvalid
from sluice.packet.page import style
from sluice.web.pages import HERE, Pages
from sluice.web.protection import LockedDown, names_something
from sluice.web.routes import letters, objects, publications, reviews, runs, syncs
from sluice.web.surroundings import Surroundings

_ROUTERS: Final = (syncs.router, runs.router, reviews.router, objects.router, letters.router, publications.router)
"""Each makes the routes of one kind of page."""

_STATUS: Final[tuple[tuple[type[SluiceError], int], ...]] = (
    (NotFound, 404),
    (IllegalTransition, 409),
    (DecisionRefused, 409),
    (NotUndoable, 409),
    (UsageInvalid, 422),
    (Retryable, 503),
)


def create_app(around: Surroundings) -> FastAPI:
    """Return the application; every link in it is relative, so that it may be mounted anywhere."""
    pages = Pages()
    app = FastAPI(
        title="Sluice",
        dependencies=[Depends(around.access.authenticated), Depends(names_something)],
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(LockedDown)
    _explain(app, pages)
    for router in _ROUTERS:
        app.include_router(router(around, pages))

    @app.get("/style.css")
    def sheet() -> Response:
        return Response(style() + _static("style.css"), media_type="text/css")

    @app.get("/sluice.js")
    def script() -> Response:
        return Response(_static("sluice.js"), media_type="text/javascript")

    return app


def _static(name: str) -> str:
    return (HERE / "static" / name).read_text(encoding="utf-8")


def _explain(app: FastAPI, pages: Pages) -> None:
    """Let every error be told in a sentence: as a page to whoever looks, as JSON to our script."""

    @app.exception_handler(SluiceError)
    async def ours(request: Request, error: SluiceError) -> Response:
        status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
        return pages.problem(request, status, error.message)

    @app.exception_handler(HTTPException)
    async def refusal(request: Request, error: HTTPException) -> Response:
        words: dict[int, str] = {401: "You are not logged in to Airflow.", 404: "There is no such page."}
        return pages.problem(request, error.status_code, words.get(error.status_code, str(error.detail)), error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return pages.problem(request, 422, "; ".join(_said(problem) for problem in error.errors()))


def _said(problem: Any) -> str:
    place = [str(part) for part in problem["loc"] if part not in ("body", "query", "path")]
    return f"{'.'.join(place) or 'what was sent'}: {problem['msg']}"
