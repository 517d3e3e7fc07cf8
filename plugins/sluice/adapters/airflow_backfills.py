"""What a backfill wants of Airflow in; calls to its REST API, and backfills and DagRuns as it has them, out."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from os.path import commonprefix
from typing import Any, Final
from urllib.parse import quote, urlencode

from sluice.adapters.airflow_api import AirflowApi, dag_path, dag_run_path
from sluice.errors import IllegalTransition, NotFound
from sluice.model.backfill import AirflowBackfill, DagRunSeen, Reprocess
from sluice.model.base import ShardKey
from sluice.model.run import Window
from sluice.model.scalars import spell_instant

ASKED: Final = "sluice_backfill__"
"""How the ids of DagRuns begin that are triggered for a span; Airflow keeps its own `backfill__` to itself."""
_PAGE: Final = 100
_MOST_PAGES: Final = 50


class AirflowBackfills:
    """The backfills of one DAG, and the DagRuns of its spans."""

    def __init__(self, api: AirflowApi, dag_id: str) -> None:
        self._api = api
        self._dag_id = dag_id
        self.url: Final = f"{api.base}/dags/{quote(dag_id, safe='')}"
        """Where people see the DAG."""

    def is_paused(self) -> bool:
        """Whether the DAG is paused, so that no run of it begins; raise `NotFound` if Airflow has no such DAG."""
        missing = NotFound(
            f"Airflow knows no DAG {self._dag_id}: is there a file for it in dags/, and does it load? See {self._api.base}/dags"
        )
        return bool(self._api.call("GET", dag_path(self._dag_id), missing=missing).get("is_paused"))

    def newest(self) -> AirflowBackfill | None:
        """Return the backfill that was asked for last; None if there was none."""
        query = urlencode({"dag_id": self._dag_id, "order_by": "-id", "limit": 1})
        found = self._api.call("GET", f"/api/v2/backfills?{query}").get("backfills", [])
        return _backfill(found[0]) if found else None

    def startable(self, first: datetime, last: datetime, conf: dict[str, Any]) -> set[datetime]:
        """Return the logical dates, of those from the first to the last, that a backfill would begin a new run for."""
        body = self._body(first, last, conf)
        planned = self._api.call("POST", "/api/v2/backfills/dry_run", body).get("backfills", [])
        return {moment for one in planned if (moment := _moment(one.get("logical_date"))) is not None}

    def create(
        self, first: datetime, last: datetime, conf: dict[str, Any], reprocess: Reprocess, max_active: int
    ) -> AirflowBackfill:
        """Begin a backfill; raise `IllegalTransition` if another one of the DAG is not over."""
        body = self._body(first, last, conf) | {"reprocess_behavior": reprocess.value, "max_active_runs": max_active}
        return _backfill(self._api.call("POST", "/api/v2/backfills", body, conflict="another backfill of the DAG is at work"))

    def cancel(self, backfill: int) -> None:
        """End a backfill: those of its runs that have not begun fail, the others go on."""
        self._api.call("PUT", f"/api/v2/backfills/{backfill}/cancel", conflict="it is over already")

    def dag_runs(self, within: Window) -> list[DagRunSeen]:
        """Return the DagRuns whose logical date lies in a span of time, and those triggered for spans that may lie in it."""
        start, end = spell_instant(within.start), spell_instant(within.end)
        prefix = ASKED + commonprefix([start, end])  # noqa: RUF071  they are no paths
        dated = self._pages({"logical_date_gte": start, "logical_date_lt": end})
        return [*dated, *self._pages({"run_id_prefix_pattern": prefix})]

    def queued(self) -> list[DagRunSeen]:
        """Return the DagRuns triggered for spans that have not begun."""
        return list(self._pages({"run_id_prefix_pattern": ASKED, "state": "queued"}))

    def trigger(self, dag_run_id: str, conf: dict[str, Any]) -> None:
        """Ask for a DagRun of that id, unless that has been done already."""
        body = {"dag_run_id": dag_run_id, "logical_date": None, "conf": conf}
        try:
            self._api.call("POST", f"{dag_path(self._dag_id)}/dagRuns", body)
        except IllegalTransition:
            return

    def clear(self, dag_run_id: str) -> None:
        """Let a DagRun begin again; what its run has come to in our state stands."""
        self._api.call("POST", f"{dag_run_path(self._dag_id, dag_run_id)}/clear", {"dry_run": False})

    def give_up(self, dag_run_id: str) -> None:
        """Let a DagRun fail that has not begun."""
        self._api.call("PATCH", dag_run_path(self._dag_id, dag_run_id), {"state": "failed"})

    def _body(self, first: datetime, last: datetime, conf: dict[str, Any]) -> dict[str, Any]:
        span = {"from_date": spell_instant(first), "to_date": spell_instant(last)}
        return {"dag_id": self._dag_id, **span, "dag_run_conf": conf}

    def _pages(self, wanted: dict[str, Any]) -> Iterator[DagRunSeen]:
        for page in range(_MOST_PAGES):
            query = urlencode({**wanted, "order_by": "-id", "limit": _PAGE, "offset": page * _PAGE})
            found = self._api.call("GET", f"{dag_path(self._dag_id)}/dagRuns?{query}").get("dag_runs", [])
            yield from map(_seen, found)
            if len(found) < _PAGE:
                return


def asked_for(window: Window) -> str:
    """Return how the ids of the DagRuns begin that are triggered for a span."""
    return f"{ASKED}{spell_instant(window.start)}__{spell_instant(window.end)}__"


def _seen(told: Mapping[str, Any]) -> DagRunSeen:
    shards = (told.get("conf") or {}).get("shards") or []
    return DagRunSeen(
        id=str(told["dag_run_id"]),
        kind=str(told.get("run_type")),
        state=str(told.get("state")),
        logical_date=_moment(told.get("logical_date")),
        shards=frozenset(ShardKey(str(key)) for key in shards),
    )


def _backfill(told: Mapping[str, Any]) -> AirflowBackfill:
    return AirflowBackfill(
        id=int(told["id"]),
        first=_required(told["from_date"]),
        last=_required(told["to_date"]),
        conf=told.get("dag_run_conf") or {},
        max_active=int(told["max_active_runs"]),
        is_over=told.get("completed_at") is not None,
    )


def _moment(written: str | None) -> datetime | None:
    return None if written is None else _required(written)


def _required(written: str) -> datetime:
    return datetime.fromisoformat(written).astimezone(UTC)
