"""Work that outlasts a request in; it is done, one after the other, in a thread of this process; its runs tell how it went."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import SluiceError
from sluice.model.base import RunId
from sluice.ports import Services

log: Final = structlog.get_logger()

Errand = Callable[[Services], object]
"""What is to be done; whatever stops it, its run has been told."""


class Errands:
    """One thread, which begins with the first errand. What a process that ends leaves undone is asked for again by a person."""

    def __init__(self, services: Callable[[], AbstractContextManager[Services]]) -> None:
        self._services = services
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sluice-errands")

    def begin(self, run: RunId, errand: Errand) -> None:
        """Let an errand be done for a run, once those before it are."""
        self._thread.submit(self._do, run, errand)

    def _do(self, run: RunId, errand: Errand) -> None:
        try:
            with self._services() as services:
                errand(services)
        except SluiceError as error:
            log.warning(log_events.ERRAND_FAILED, run=run, error=type(error).__name__, message=error.message)
        except Exception:
            log.exception(log_events.ERRAND_FAILED, run=run)
