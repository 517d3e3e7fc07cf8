"""The pages of objects: what became of one, where each of its values comes from, and the supplier's own bytes."""

from collections.abc import Sequence
from threading import Semaphore
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from sluice.errors import NotFound, UsageInvalid
from sluice.mapping.keys import key_named
from sluice.model.explanation import Explanation
from sluice.model.reject import RawAddress
from sluice.upkeep.explanation import explain
from sluice.upkeep.records import stored_record
from sluice.web.object_history import history_of, letters_of
from sluice.web.pages import Pages
from sluice.web.reading import spec_of, sync_named
from sluice.web.surroundings import Surroundings

_LONGEST_KEY: Final = 8_192
_LARGEST: Final = 128_000_000
"""Bytes of one artifact that following an object back is ready to look through."""
_LONGEST_RECORD: Final = 1_000_000
"""Bytes of a record that are shown."""
_RAW_HEADERS: Final = {"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'self'"}
"""Whatever the supplier has sent, it is text, and no page of Airflow's origin."""

Key = Annotated[str | None, Query(max_length=_LONGEST_KEY)]
Limit = Annotated[int, Query(ge=1, le=1000)]


def router(around: Surroundings, pages: Pages) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/dags/{dag_id}", dependencies=[Depends(around.access.may_read_dag)])
    followed_at_once = Semaphore(1)

    @routes.get("/objects")
    def page(request: Request, dag_id: str, key: Key = None, limit: Limit = 20) -> Response:
        history, letters, near, trouble = None, [], (), None
        with around.services() as services:
            spec = spec_of(services, dag_id)
            if key:
                try:
                    named = key_named(spec, key)
                    letters = letters_of(services, spec, named)
                    history = history_of(services, spec, named, limit)
                except UsageInvalid as error:
                    trouble = error.message
                except NotFound as error:
                    near = error.facts.get("near", ())
                    trouble = f"nothing of {named} was ever published" if letters else error.message
        told: dict[str, Any] = {"history": history, "letters": letters, "near": near, "trouble": trouble}
        status = 404 if key and history is None and not letters else 200
        return pages.render("object.html", request, status, spec=spec, key=key, limit=limit, **told)

    @routes.get("/objects/origin")
    def origin(
        request: Request,
        dag_id: str,
        key: Annotated[str, Query(min_length=1, max_length=_LONGEST_KEY)],
        limit: Limit = 5,
    ) -> Response:
        with around.services() as services, followed_at_once:
            spec = spec_of(services, dag_id)
            explained = explain(services, spec, key_named(spec, key), limit, _LARGEST)
        return pages.render(
            "origin.html", request, sync=spec.sync, key=key, limit=limit, explained=explained, origins=_origins(explained)
        )

    @routes.get("/raw")
    def raw(
        dag_id: str,
        artifact: Annotated[str, Query(min_length=1, max_length=2_048)],
        page: Annotated[int, Query(ge=0)],
        index: Annotated[int, Query(ge=0)],
    ) -> Response:
        with around.services() as services:
            address = RawAddress(artifact=artifact, frame=page, index=index)
            record = stored_record(services, sync_named(dag_id), address, _LARGEST)
        text = record[:_LONGEST_RECORD].decode(errors="backslashreplace")
        if len(record) > _LONGEST_RECORD:
            text += (
                f"\n… {len(record) - _LONGEST_RECORD:,} bytes more: `sluice why --raw` and `sluice dlq show --raw` print all"
            )
        return Response(text, media_type="text/plain; charset=utf-8", headers=_RAW_HEADERS)

    return routes


def _origins(explained: Explanation) -> Sequence[dict[str, Any]]:
    """Return the fields of the present row, each with what brought its value, and the record that was made of."""
    found = []
    for origin in explained.origins:
        trace = explained.trace_of(origin.publication)
        source = explained.source_of(trace) if trace is not None else None
        found.append({"origin": origin, "trace": trace, "raw": source.raw if source is not None else None})
    return found
