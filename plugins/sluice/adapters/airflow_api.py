"""What a person wants of Airflow in; calls to its REST API, and its answers or named errors, out."""

import logging
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx2

from sluice.errors import AirflowUnavailable, ConnectionInvalid, IllegalTransition, NotFound, SluiceError, UsageInvalid
from sluice.model.airflow_names import ANSWERS, COMMENT, DELETES_AT_MOST, GATE_TASK, PUBLISH_TASK, REVIEW
from sluice.model.base import ReviewId
from sluice.model.review import Choice
from sluice.model.run import Origin
from sluice.ports import ConnectionInfo, Triggered

logging.getLogger("httpx2").setLevel(logging.WARNING)  # at info it tells of every request

_SECONDS: Final = 30.0
_MOST_POOLS: Final = 1000
_OVER: Final = frozenset({"failed", "upstream_failed", "skipped", "removed"})
_NOT_FOUND, _CONFLICT, _UNAUTHORIZED, _FORBIDDEN, _BROKEN = 404, 409, 401, 403, 500


class AirflowApi:
    """Airflow's REST API, as the user of the connection, logged in before the first call. Opened as a context."""

    def __init__(self, info: ConnectionInfo) -> None:
        self._info = info
        self.base = base_url(info)
        try:
            self._client = httpx2.Client(
                base_url=self.base,
                timeout=_SECONDS,
                headers={"Accept": "application/json"},
                mounts={"all://127.0.0.1": None},  # a proxy would look for it on its own machine
            )
        except httpx2.InvalidURL as error:
            raise ConnectionInvalid(f"connection {info.conn_id} has no host that can be asked: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()

    def answer_gate(
        self, origin: Origin, review: ReviewId, choice: Choice, comment: str, deletes_at_most: int | None = None
    ) -> None:
        """Answer what the gate of a DagRun asks about a review, or its publication; the same answer again changes nothing.

        The answer names the review: whoever asks about another one by then takes it for none.
        Raises `NotFound` if nothing is asked, and `IllegalTransition` if it was answered otherwise, or if the task that asked
        has ended: Airflow would take that answer down, and nobody would ever read it.
        """
        asked = self._asked(origin)
        params = {COMMENT: comment, REVIEW: review} | ({} if deletes_at_most is None else {DELETES_AT_MOST: deletes_at_most})
        task = asked["task_instance"]
        if asked.get("response_received"):
            if _review_of(asked) not in (None, review):
                raise self._unasked(origin)
            if not _is_same(asked, choice, deletes_at_most):
                raise IllegalTransition(_answered(asked))
            return
        run = dag_run_path(str(origin.dag_id), str(origin.dag_run_id))
        path = f"{run}/taskInstances/{quote(task['task_id'], safe='')}/-1/hitlDetails"
        answer = {"chosen_options": [ANSWERS[choice]], "params_input": params}
        missing = self._unasked(origin)
        self.call("PATCH", path, answer, missing=missing, conflict="somebody else has answered in the meantime")

    def require_unanswered(self, origin: Origin) -> None:
        """Raise `NotFound` if the gate of a DagRun asks for no answer, and `IllegalTransition` if it has one or has ended."""
        asked = self._asked(origin)
        if asked.get("response_received"):
            raise IllegalTransition(_answered(asked))

    def _asked(self, origin: Origin) -> dict[str, Any]:
        """Return what a DagRun asks, or has asked last, and would still hear the answer to."""
        missing = self._unasked(origin)
        path = f"{dag_run_path(str(origin.dag_id), str(origin.dag_run_id))}/hitlDetails"
        asked = _newest(self.call("GET", path, missing=missing).get("hitl_details", []))
        if asked is None:
            raise missing
        task = asked["task_instance"]
        if task["state"] in _OVER:
            raise IllegalTransition(f"the task {task['task_id']} is {task['state']}: an answer changes nothing any more")
        return asked

    def _unasked(self, origin: Origin) -> NotFound:
        dag_id, dag_run_id = str(origin.dag_id), str(origin.dag_run_id)
        return NotFound(f"the gate of {dag_id} {dag_run_id} asks for no answer now: see {self.url(dag_id, dag_run_id)}")

    def trigger(self, dag_id: str, conf: dict[str, Any]) -> Triggered:
        """Ask for a DagRun with that form filled in."""
        missing = NotFound(
            f"Airflow knows no DAG {dag_id}: is there a file for it in dags/, and does it load? See {self.base}/dags"
        )
        paused = self.call("GET", dag_path(dag_id), missing=missing).get("is_paused", False)
        run = self.call("POST", f"{dag_path(dag_id)}/dagRuns", {"logical_date": None, "conf": conf}, missing=missing)
        return Triggered(run["dag_run_id"], self.url(dag_id, run["dag_run_id"]), bool(paused))

    def dag_run(self, dag_id: str, dag_run_id: str) -> dict[str, Any]:
        """Return the DagRun as Airflow tells it; `state` is `failed` once Airflow has given it up."""
        missing = NotFound(f"Airflow knows no run {dag_run_id} of {dag_id}")
        return self.call("GET", dag_run_path(dag_id, dag_run_id), missing=missing)

    def pools(self) -> list[str]:
        """Return the names of the pools."""
        return [pool["name"] for pool in self.call("GET", f"/api/v2/pools?limit={_MOST_POOLS}").get("pools", [])]

    def url(self, dag_id: str, dag_run_id: str) -> str:
        """Return the page of a DagRun."""
        return f"{self.base}/dags/{quote(dag_id, safe='')}/runs/{quote(dag_run_id, safe='')}"

    def _token(self) -> str:
        if self._info.login is None:
            return str(self._ask("GET", "/auth/token", missing=self._no_airflow()).get("access_token"))
        login = {"username": self._info.login, "password": self._info.password or ""}
        return str(self._ask("POST", "/auth/token", login, missing=self._no_airflow()).get("access_token"))

    def _no_airflow(self) -> ConnectionInvalid:
        return ConnectionInvalid(f"{self.base} is no Airflow 3: look at the connection {self._info.conn_id}")

    def call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        missing: SluiceError | None = None,
        conflict: str = "it is there already",
    ) -> dict[str, Any]:
        """Ask for something, logged in, and return the answer; raise what its status means, `missing` for 404."""
        if "Authorization" not in self._client.headers:
            self._client.headers["Authorization"] = f"Bearer {self._token()}"
        missing = missing or NotFound(f"Airflow at {self.base} has nothing at {path}")
        return self._ask(method, path, body, missing=missing, conflict=conflict)

    def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, missing: SluiceError, conflict: str = ""
    ) -> dict[str, Any]:
        response = self._send(method, path, body)
        if response.status_code >= _BROKEN:
            raise AirflowUnavailable(f"Airflow at {self.base} answers {response.status_code} to {method} {path}")
        if response.is_error:
            raise self._refused(response, missing, conflict)
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._no_airflow()
        return answer

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> httpx2.Response:
        try:
            return self._client.request(method, path, json=body)
        except httpx2.HTTPError as error:
            raise AirflowUnavailable(f"Airflow at {self.base} cannot be reached: {error or type(error).__name__}") from error

    def _refused(self, response: httpx2.Response, missing: SluiceError, conflict: str) -> SluiceError:
        user = self._info.login or "an anonymous user"
        if response.status_code == _UNAUTHORIZED:
            return ConnectionInvalid(
                f"Airflow at {self.base} refuses the login of {user}: look at the connection {self._info.conn_id}"
            )
        if response.status_code == _FORBIDDEN:
            return ConnectionInvalid(
                f"Airflow does not allow {user} (connection {self._info.conn_id}) to do this: {_detail(response)}"
            )
        if response.status_code == _NOT_FOUND:
            return missing
        if response.status_code == _CONFLICT:
            return IllegalTransition(f"{conflict} ({_detail(response)})")
        return UsageInvalid(f"Airflow refuses this: {_detail(response)}")


def base_url(info: ConnectionInfo) -> str:
    """Return where an http connection leads; its host may carry the scheme."""
    if not info.host:
        raise ConnectionInvalid(f"connection {info.conn_id} has no host")
    host = info.host.rstrip("/") if "://" in info.host else f"{info.schema or 'http'}://{info.host}"
    return f"{host}:{info.port}" if info.port else host


def dag_path(dag_id: str) -> str:
    """Return where the API has a DAG."""
    return f"/api/v2/dags/{quote(dag_id, safe='')}"


def dag_run_path(dag_id: str, dag_run_id: str) -> str:
    """Return where the API has a DagRun."""
    return f"{dag_path(dag_id)}/dagRuns/{quote(dag_run_id, safe='')}"


def _newest(asked: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return what was asked last: publishing asks after the gate has."""
    ours = [one for one in asked if one["task_instance"]["task_id"] in {GATE_TASK, PUBLISH_TASK}]
    return max(ours, key=lambda one: str(one["created_at"]), default=None)


def _review_of(asked: dict[str, Any]) -> Any:
    """Return the review that was asked about; None where the form does not say."""
    named = (asked.get("params") or {}).get(REVIEW)
    return named.get("value") if isinstance(named, dict) else None


def _is_same(asked: dict[str, Any], choice: Choice, deletes_at_most: int | None) -> bool:
    given = (asked.get("params_input") or {}).get(DELETES_AT_MOST)
    return asked.get("chosen_options") == [ANSWERS[choice]] and given == deletes_at_most


def _answered(asked: dict[str, Any]) -> str:
    user = asked.get("responded_by_user") or {}
    chosen = ", ".join(asked.get("chosen_options") or []) or "nothing"
    return f"{user.get('name') or 'somebody'} has answered {chosen!r} already, at {asked.get('responded_at')}"


def _detail(response: httpx2.Response) -> str:
    try:
        detail = response.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"
    return detail if isinstance(detail, str) else str(detail)
