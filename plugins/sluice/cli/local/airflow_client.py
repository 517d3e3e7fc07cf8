"""What the local stack wants of its own Airflow in; calls to the REST API, and their answers, out."""

import time
from typing import Any, Final
from urllib.parse import quote

import httpx2

from sluice.adapters.airflow_api import AirflowApi, dag_path, dag_run_path
from sluice.errors import AirflowUnavailable, NotFound

_LARGEST_PAGE: Final = 100

_ON_EVERY_LINE: Final = frozenset(
    {"event", "timestamp", "level", "logger", "error_detail", "filename", "lineno", "loc"}
    | {"dag_id", "run_id", "task_id", "map_index", "try_number", "ti_id", "hostname"}
    | {"run", "sync", "stage", "step", "shard", "attempt"}
)
"""What a reader who asked for the log of one task knows, or has no use for."""


class AirflowClient(AirflowApi):
    """The REST API, with what only the owner of an Airflow asks of it."""

    def health(self) -> dict[str, str]:
        """Return the status of each part of Airflow by name, nothing while the API is not up."""
        try:
            answer = self._client.get("/api/v2/monitor/health", timeout=5)
            return {name: part.get("status") or "absent" for name, part in answer.json().items()} if answer.is_success else {}
        except (httpx2.HTTPError, ValueError):
            return {}

    def serves_tasks(self) -> bool:
        """Whether the API of the tasks is there. The first call has it built: longer than a task would wait for it."""
        try:
            return self._client.get("/execution/health", timeout=120).is_success
        except httpx2.HTTPError:
            return False

    def set_pool(self, name: str, slots: int, description: str) -> None:
        """Create the pool, or change it to this."""
        body = {"name": name, "slots": slots, "description": description, "include_deferred": False}
        if self._find("PATCH", f"/api/v2/pools/{quote(name, safe='')}", body) is None:
            self.call("POST", "/api/v2/pools", body)

    def dag(self, dag_id: str) -> dict[str, Any] | None:
        """Return the DAG, None while Airflow does not know it."""
        return self._find("GET", dag_path(dag_id))

    def import_errors(self) -> list[dict[str, Any]]:
        """Return the DAG files that do not load, and why."""
        return list(self.call("GET", "/api/v2/importErrors")["import_errors"])

    def set_paused(self, dag_id: str, *, paused: bool) -> None:
        """Pause the DAG, or let it run."""
        self.call("PATCH", dag_path(dag_id), {"is_paused": paused})

    def unfinished(self, dag_id: str) -> list[str]:
        """Return the ids of the runs that have not ended, the newest first."""
        path = f"{dag_path(dag_id)}/dagRuns?state=queued&state=running&order_by=-id"
        return [str(run["dag_run_id"]) for run in self.call("GET", path)["dag_runs"]]

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Return the task instances of a DagRun, in the order they began; those that have not, last."""
        path = f"{dag_run_path(dag_id, run_id)}/taskInstances?limit={_LARGEST_PAGE}"
        found: list[dict[str, Any]] = []
        while True:
            page = self.call("GET", f"{path}&offset={len(found)}")
            found += page["task_instances"]
            if not page["task_instances"] or len(found) >= page["total_entries"]:
                return sorted(found, key=lambda task: (task["start_date"] or "~", task["map_index"]))

    def log(self, dag_id: str, run_id: str, task: dict[str, Any]) -> list[str]:
        """Return the log of the last attempt of a task, line by line."""
        attempt = max(1, task["try_number"])
        path = f"{dag_run_path(dag_id, run_id)}/taskInstances/{quote(task['task_id'], safe='')}/logs/{attempt}"
        answer = self.call("GET", f"{path}?map_index={task['map_index']}&full_content=true")
        entries = [line for line in answer.get("content") or () if isinstance(line, dict)]
        return [_log_line(entry) for entry in entries if entry.get("level") and not _is_noise(entry)]

    def _find(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        try:
            return self.call(method, path, body)
        except NotFound:
            return None

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> httpx2.Response:
        """Send a request, a second time after a pause where the connection broke."""
        try:
            return super()._send(method, path, body)
        except AirflowUnavailable:
            time.sleep(1)
            return super()._send(method, path, body)


def _is_noise(entry: dict[str, Any]) -> bool:
    return str(entry.get("event")).startswith("::") or entry.get("logger") == "py.warnings"


def _log_line(entry: dict[str, Any]) -> str:
    facts = "".join(f" {key}={value}" for key, value in entry.items() if key not in _ON_EVERY_LINE and value is not None)
    raised = "".join(f"\n    {one.get('exc_type')}: {one.get('exc_value')}" for one in (entry.get("error_detail") or ())[-1:])
    return f"{str(entry.get('timestamp'))[11:19]} {entry['level']:7} {entry.get('event')}{facts}{raised}"
