"""Somebody who visits the pages of a workshop: with a name, rights, and a browser that speaks as `sluice.js` does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient

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
    _browser: TestClient | None = field(default=None, repr=False)

    def client(self) -> TestClient:
        """Return her browser, always the same one: to make the pages takes longer than to look at one."""
        self._browser = self._browser or TestClient(self.app())
        return self._browser

    def app(self) -> FastAPI:
        """Return the pages as she may see them."""

        def may_read_dag(dag_id: str) -> None:
            if dag_id not in self.reads:
                raise HTTPException(403, "not yours to read")

        def may_change_dag(dag_id: str) -> None:
            if dag_id not in self.changes:
                raise HTTPException(403, "not yours to change")

        @contextmanager
        def services() -> Iterator[Services]:
            yield self.workshop.services

        access = Access(
            authenticated=lambda: None,
            user=lambda: "Ann",
            user_id=lambda: self.id,
            readable_dags=lambda: self.reads,
            may_read_dag=may_read_dag,
            may_change_dag=may_change_dag,
            can_change_dag=lambda dag_id: dag_id in self.changes,
        )
        return create_app(
            Surroundings(
                access=access,
                services=services,
                run_id_of=lambda _, run: RunId(run),
                schedules=dict,
                later=lambda _, errand: errand(self.workshop.services),
            )
        )

    def get(self, path: str, dag: str = DAG, **query: Any) -> Any:
        """Return a page of a DAG."""
        return self.client().get(f"/dags/{dag}/{path}", params=query)

    def post(self, path: str, form: Any, dag: str = DAG, headers: Any = OURS) -> Any:
        """Send a form of a DAG's page."""
        return self.client().post(f"/dags/{dag}/{path}", json=form, headers=headers)
