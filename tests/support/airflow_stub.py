"""A server that answers as Airflow's REST API does: as it is told to, remembering what it was asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from sluice.cli.connections import parse_connection
from sluice.ports import ConnectionInfo


def asking(task_id: str = "gate", state: str = "awaiting_input", **changes: Any) -> dict[str, Any]:
    """Return what Airflow tells of a task that asks."""
    asked = {"response_received": False, "created_at": "2026-01-01T00:00:00Z", "params_input": {}}
    return asked | {"task_instance": {"task_id": task_id, "state": state}} | changes


class AirflowStub:
    """Listens while its context is open. `answers` are by method and path; whatever else is asked is not found."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {("POST", "/auth/token"): (201, {"access_token": "t0k3n"})}
        self.asked: list[tuple[str, str, Any, str | None]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                stub.asked.append((self.command, self.path, body, self.headers.get("Authorization")))
                status, answer = stub.answers.get((self.command, self.path), (404, {"detail": "Not Found"}))
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = answer

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.port = self._server.server_port

    @property
    def info(self) -> ConnectionInfo:
        """Return a connection to it, with a login."""
        return parse_connection("sluice_airflow", f"http://admin:pw@127.0.0.1:{self.port}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Listen no more."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
