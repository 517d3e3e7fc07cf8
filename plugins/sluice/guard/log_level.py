"""The log level of a stage: events of Sluice in; those that the stage whose step works does not want are dropped."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import structlog
from structlog.typing import EventDict, WrappedLogger

_SEVERITIES: Final = logging.getLevelNamesMapping()
_PREFIX: Final = "sluice."

_least: ContextVar[int] = ContextVar("least_severity", default=logging.INFO)


@contextmanager
def logged_from(level: str) -> Iterator[None]:
    """Let events below `level` be dropped while the block works."""
    before = _least.set(_SEVERITIES[level.upper()])
    try:
        yield
    finally:
        _least.reset(before)


def drop_quiet(_: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Drop events of Sluice below the level of the stage, or outside of its steps below info. A processor of structlog."""
    if is_own(event) and _SEVERITIES.get(method.upper(), logging.ERROR) < _least.get():
        raise structlog.DropEvent
    return event


def is_own(event: EventDict) -> bool:
    """Whether an event is one of Sluice's: what others log is not a stage's to decide."""
    return str(event.get("event")).startswith(_PREFIX)
