"""Somebody who visits the pages of a workshop: with a name, rights, and a browser that speaks as `sluice.js` does."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from sluice.model.base import RunId
from sluice.ports import Services
from sluice.web.access import Access
from sluice.web.app import create_app
from sluice.web.surroundings import Surroundings

DAG = "sluice_hotels"
OURS = {"X-Sluice": "1", "Sec-Fetch-Site": "same-origin"}


class Served(Protocol):
    """Whatever has stores behind its pages."""

    @property
    def services(self) -> Services:
        """Them, and all else."""


@dataclass
class Visitor:
    """Ann, known as `u7`, may read and change everything; what she sets going is done before she hears of it."""

    workshop: Served
    id: str = "u7"
    reads: set[str] = field(default_factory=lambda: {DAG})
    changes: set[str] = field(default_factory=lambda: {DAG})

    def client(self) -> TestClient:
        """Return her browser."""
        return TestClient(self.app())

    def app(self) -> ASGIApp:
        """Return the pages as she may see them. They are made once for all visitors: that takes longer than to look at one."""

        async def as_she_sees_them(scope: Scope, receive: Receive, send: Send) -> None:
            _VISITOR.set(self)
            await _pages()(scope, receive, send)

        return as_she_sees_them

    def get(self, path: str, dag: str = DAG, **query: Any) -> Any:
        """Return a page of a DAG."""
        return self.client().get(f"/dags/{dag}/{path}", params=query)

    def post(self, path: str, form: Any, dag: str = DAG, headers: Any = OURS) -> Any:
        """Send a form of a DAG's page."""
        return self.client().post(f"/dags/{dag}/{path}", json=form, headers=headers)


_VISITOR: ContextVar[Visitor] = ContextVar("visitor")
"""Whoever asks."""


@cache
def _pages() -> FastAPI:
    """Return the pages, for whoever asks."""

    def may_read_dag(dag_id: str) -> None:
        if dag_id not in _VISITOR.get().reads:
            raise HTTPException(403, "not yours to read")

    def may_change_dag(dag_id: str) -> None:
        if dag_id not in _VISITOR.get().changes:
            raise HTTPException(403, "not yours to change")

    @contextmanager
    def services() -> Iterator[Services]:
        yield _VISITOR.get().workshop.services

    access = Access(
        authenticated=lambda: None,
        user=lambda: "Ann",
        user_id=lambda: _VISITOR.get().id,
        readable_dags=lambda: _VISITOR.get().reads,
        may_read_dag=may_read_dag,
        may_change_dag=may_change_dag,
        can_change_dag=lambda dag_id: dag_id in _VISITOR.get().changes,
    )
    return create_app(
        Surroundings(
            access=access,
            services=services,
            run_id_of=lambda _, run: RunId(run),
            schedules=dict,
            later=lambda _, errand: errand(_VISITOR.get().workshop.services),
        )
    )
