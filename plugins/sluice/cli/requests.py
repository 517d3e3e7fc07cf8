"""Log events of sources in; what was asked of the supplier, request by request, out."""

import threading
from typing import Any

from structlog.typing import EventDict, WrappedLogger

from sluice import log_events


class RequestsSeen:
    """A structlog processor that keeps what was asked of a supplier, and passes every event on."""

    def __init__(self) -> None:
        self._requests: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        """Take note of one event; several threads may bring some at a time."""
        if event.get("event") == log_events.REQUEST_ANSWERED:
            seconds = event["seconds"]
            request = {name: event[name] for name in ("method", "address", "status", "bytes", "error")}
            with self._lock:
                self._requests.append({**request, "milliseconds": round(seconds * 1000)})
        return event

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What was asked, in the order of the answers."""
        with self._lock:
            return list(self._requests)
