"""Log events in; lines on stderr, as many as were asked for, out."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from sluice.guard.log_level import drop_quiet, is_own


def configure_logs(*, verbose: bool, listener: Processor | None = None) -> None:
    """Show warnings, and with `verbose` all that the stages at work log; `listener` sees every event, shown or not."""

    def drop_unasked(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        is_asked_for = {"debug": verbose and is_own(event), "info": verbose}
        if not is_asked_for.get(event["level"], True):
            raise structlog.DropEvent
        return event

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            *([listener] if listener else []),
            drop_quiet,
            drop_unasked,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        # Which level is low enough is the stage's to say; and the listener counts pages, which are of level debug.
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        # Asked for at each event: while a progress display is up, sys.stderr is another.
        logger_factory=_stderr_logger,
        cache_logger_on_first_use=False,
    )
    logging.getLogger().setLevel(logging.INFO if verbose else logging.WARNING)
    # Of a database that cannot be reached, our own error tells; the pool tells each of its attempts beside it.
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)


@contextmanager
def logs_kept() -> Iterator[None]:
    """Configure logs again in the end as they were before: Airflow, once imported, has its own way with them."""
    ours, root = structlog.get_config(), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        structlog.configure(**ours)
        root.handlers[:] = handlers
        root.setLevel(level)


def _stderr_logger(*_: Any) -> structlog.PrintLogger:
    return structlog.PrintLogger(sys.stderr)
