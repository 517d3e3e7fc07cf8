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

    status: str | int | None = None
    bytes: int = 0


@contextmanager
def told(method: str, address: str) -> Iterator[Told]:
    """Log a request once it is over, well or not. The address is fit to be shown: without secrets, without values."""
    answer, began, error = Told(), monotonic(), None
    try:
        yield answer
    except SluiceError as exc:
        error = type(exc).__name__
        raise
    finally:
        log.debug(
            log_events.REQUEST_ANSWERED,
            method=method,
            address=address,
            status=answer.status,
            bytes=answer.bytes,
            seconds=round(monotonic() - began, 4),
            error=error,
        )
