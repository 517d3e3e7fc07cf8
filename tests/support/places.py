"""A sync of places in this process, whose supplier's answers are given byte for byte; what became of them out."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
import yaml

from sluice.adapters.metrics import LoggedMetrics
from sluice.adapters.postgres import conninfo
from sluice.flow.gate import decide
from sluice.flow.inline import resume_inline, run_inline
from sluice.model.base import ObjectKey, PublicationId
from sluice.model.explanation import Explanation
from sluice.model.lifecycle import RunStatus
from sluice.model.reconciliation import Reconciliation
from sluice.model.review import Choice, Decision
from sluice.model.run import Mode, Origin, ReviewMode, Run, RunRequest
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo, Services
from sluice.settings import Settings
from sluice.upkeep.explanation import explain
from sluice.upkeep.reconciliation import reconcile
from sluice.wiring import open_services
from tests.support.scripted_supplier import ScriptedSupplier, answer, scripted

SPEC: Final[dict[str, Any]] = {
    "sync": "places",
    "stage": "hotel-content",
    "source": {
        "kind": "rest",
        "connection": "shop",
        "path": "/places",
        "records": "places",
        "cursor": {"path": "next", "parameter": "cursor"},
    },
    "object": {"key": ["id"]},
    "fields": [
        {"name": "id", "type": "text"},
        {"name": "rooms", "type": "integer"},
        {"name": "rate", "type": "numeric"},
        {"name": "tags", "type": "json"},
        {"name": "opened", "type": "timestamptz"},
    ],
    "review": {
        "first_load": "auto-approve",
        "auto_approve": {
            **dict.fromkeys(("created", "changed", "deleted", "rejected"), "100%"),
            "seen_at_least": "1%",
            "drift": 1000,
        },
        "block": {"deleted": "100%"},
    },
    "target": {"table": "public.places"},
}


class Places:
    """One supplier, one sync, one table."""

    def __init__(self, services: Services, supplier: ScriptedSupplier, target: ConnectionInfo, include: Path) -> None:
        self.services = services
        self.supplier = supplier
        self.target = target
        self._include = include

    @property
    def spec(self) -> SyncSpec:
        """The spec as it stands."""
        return self.services.spec("places")

    def declare(self, **changes: Any) -> None:
        """Edit the spec."""
        (self._include / "syncs/places.yaml").write_text(yaml.safe_dump({**SPEC, **changes}), encoding="utf-8")

    def bring(self, *records: str, by: str | None = None, comment: str = "", mode: Mode = Mode.FULL) -> Run:
        """Publish one page with these records; a person approves where one is named."""
        self.supplier.answers.append(answer(f'{{"places": [{", ".join(records)}], "next": null}}'.encode()))
        review = ReviewMode.POLICY if by is None else ReviewMode.ALWAYS
        run = run_inline(self.services, RunRequest(sync="places", mode=mode, review=review, origin=Origin()))
        if by is None:
            assert run.status is RunStatus.SUCCEEDED
            return run
        return self._approve(run, by, comment)

    def take_back(self, publication: PublicationId | None, by: str) -> Run:
        """Roll a publication back."""
        request = RunRequest(sync="places", mode=Mode.ROLLBACK, undoes=publication, origin=Origin())
        return self._approve(run_inline(self.services, request), by, "")

    def _approve(self, run: Run, by: str, comment: str) -> Run:
        made = self.services.reviews.latest(run.id)
        assert made is not None
        decision = Decision(choice=Choice.APPROVE, by=by, via="cli", comment=comment, at=self.services.clock.now())
        decide(self.services, made.id, decision)
        return resume_inline(self.services, run.id)

    def why(self, key: str, limit: int = 20) -> Explanation:
        """Explain an object."""
        return explain(self.services, self.spec, ObjectKey(key), limit)

    def reconcile(self, limit: int = 20) -> Reconciliation:
        """Compare table and ledger."""
        return reconcile(self.services, self.spec, limit, lambda _: None)

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the database, or change it by hand."""
        with psycopg.connect(conninfo(self.target), autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []


@contextmanager
def open_places(
    folder: Path, database: ConnectionInfo, artifacts: ConnectionInfo, changes: Mapping[str, Any] | None = None
) -> Iterator[Places]:
    """Yield the places of a project of their own; `changes` replace keys of the spec."""
    include = folder / "include"
    (include / "syncs").mkdir(parents=True)
    (include / "stages.yaml").write_text(yaml.safe_dump({"defaults": {}, "stages": {"hotel-content": {}}}), encoding="utf-8")
    with scripted() as supplier:

        class Known:
            def get(self, conn_id: str) -> ConnectionInfo:
                return {"sluice_artifacts": artifacts, "shop": supplier.connection()}.get(conn_id, database)

        with open_services(Settings(include=include, cache=folder / "cache"), Known(), LoggedMetrics()) as services:
            places = Places(services, supplier, database, include)
            places.declare(**(changes or {}))
            yield places
