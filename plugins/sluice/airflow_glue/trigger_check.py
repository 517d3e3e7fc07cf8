"""A request to run a sync's DAG in; what is wrong with its form out, as an answer, before there is a run.

Airflow holds each param against its own schema. What params say together it does not look at, nor whether there is such a
param: that is done here, for whoever asks over Airflow's API, its UI included. Admission refuses the same, however a run began.
"""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sluice.airflow_glue.params import check_form
from sluice.errors import UsageInvalid
from sluice.model.airflow_names import sync_of

_TRIGGER: Final = re.compile(r"/api/v2/dags/(?P<dag>[^/]+)/dagRuns/?$|/execution/dag-runs/(?P<triggered>[^/]+)/[^/]+$")
_BACKFILL: Final = re.compile(r"/api/v2/backfills(/dry_run)?/?$")
_STRANGERS: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
"""What Airflow answers who is not logged in, or may not see the DAG."""
_MOST_BYTES: Final = 1_000_000
"""No form is larger: what is, is for Airflow to judge."""


class TriggerCheck:
    """A middleware of Airflow's API server that refuses forms that make no sense, with status 400 and the reason."""

    def __init__(self, app: ASGIApp, is_sync: Callable[[str], bool]) -> None:
        self._app = app
        self._is_sync = is_sync

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or pass it on as it came."""
        path = str(scope.get("path", ""))
        trigger, is_backfill = _TRIGGER.search(path), _BACKFILL.search(path) is not None
        if scope["type"] != "http" or scope["method"] != "POST" or not (trigger or is_backfill):
            await self._app(scope, receive, send)
            return
        messages, body = await _read(receive)
        dag_id, form = _asked(trigger, body)
        refusal = await run_in_threadpool(self._refusal, dag_id, form) if form and dag_id is not None else None
        # Airflow has not asked yet who it is. Strangers hear of it what they hear of any DAG, there or not.
        if refusal is not None and await self._answer_to(scope, _look_at(path, str(dag_id))) not in _STRANGERS:
            await _refused(refusal)(scope, receive, send)
            return

        async def again() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, again, send)

    async def _answer_to(self, scope: Scope, path: str) -> int:
        """Return the status with which Airflow answers whoever sent a request when they look at something."""
        statuses: list[int] = []
        headers = [(name, value) for name, value in scope["headers"] if not name.startswith(b"content-")]
        looking = {"method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers}

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def heard(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        await self._app({**scope, **looking}, nothing, heard)
        return statuses[0] if statuses else HTTPStatus.UNAUTHORIZED

    def _refusal(self, dag_id: str, form: dict[str, Any]) -> str | None:
        if not self._is_sync(dag_id):
            return None
        try:
            check_form(sync_of(dag_id), form)
        except UsageInvalid as error:
            return error.message
        return None


def _look_at(path: str, dag_id: str) -> str:
    """Return where the one who sends a form may look at its DAG: a person, or a task that triggers another DAG."""
    mount, execution, _ = path.partition("/execution/dag-runs/")
    if execution:
        return f"{mount}{execution}{quote(dag_id, safe='')}/none/state"
    return f"{path.partition('/api/v2/')[0]}/api/v2/dags/{quote(dag_id, safe='')}"


async def _read(receive: Receive) -> tuple[list[Message], bytes]:
    """Return the messages of a request and the body they make, as far as that is looked at."""
    messages: list[Message] = []
    size, more = 0, True
    while more and size <= _MOST_BYTES:
        messages.append(await receive())
        size += len(messages[-1].get("body", b""))
        more = messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False)
    return messages, b"" if more else b"".join(message.get("body", b"") for message in messages)


def _refused(refusal: str) -> Response:
    """Return the answer, in ASCII: what was sent may hold halves of characters, which UTF-8 has no bytes for."""
    return Response(json.dumps({"detail": refusal}), status_code=400, media_type="application/json")


def _asked(trigger: re.Match[str] | None, body: bytes) -> tuple[str | None, dict[str, Any] | None]:
    """Return the DAG that is to run, and what its form is filled in with; nothing of what Airflow will not take anyway."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(asked, dict):
        return None, None
    dag_id = asked.get("dag_id") if trigger is None else trigger["dag"] or trigger["triggered"]
    form = asked.get("dag_run_conf" if trigger is None else "conf")
    return (dag_id, form) if isinstance(dag_id, str) and isinstance(form, dict) else (None, None)
