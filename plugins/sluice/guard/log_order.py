"""The order of a log line's fields: an event as it came together in, what happened first and whose it is last out."""

from typing import Final

from structlog.typing import EventDict, WrappedLogger

from sluice.guard.log_level import is_own

WHOSE: Final = ("sync", "stage", "run", "shard", "step", "attempt")
"""What all lines of a task have in common, which a person reads once."""


def in_order(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Put whose an event of Sluice is behind what it says; what is bound for a task comes in any order. A processor."""
    if is_own(event):
        for name in WHOSE:
            if name in event:
                event[name] = event.pop(name)
    return event
