"""What a supplier is asked in; one log event for each answer out, so that whoever looks on sees every request."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import SluiceError

log: Final = structlog.get_logger()


@dataclass
class Told:
    """What is known of an answer, as it comes in."""

    address: str
    """Fit to be shown: without secrets."""
    status: int | None = None
    bytes: int | None = None
    """None: nobody counts them."""
    is_over: bool = True
    """False: more of it is yet to come, and whoever reads that tells of it."""


@contextmanager
def told(method: str, address: str) -> Iterator[Told]:
    """Log a request once it is over, well or not."""
    answer, began, error = Told(address), monotonic(), None
    try:
        yield answer
    except SluiceError as exc:
        error = type(exc).__name__
        raise
    finally:
        if answer.is_over:
            log.debug(
                log_events.REQUEST_ANSWERED,
                method=method,
                address=answer.address,
                status=answer.status,
                bytes=answer.bytes,
                seconds=round(monotonic() - began, 4),
                error=error,
            )
