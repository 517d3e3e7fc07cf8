"""Log events in; lines on stderr, as many as were asked for, out."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger


def configure_logs(*, verbose: bool, listener: Processor | None = None) -> None:
    """Show warnings, and with `verbose` every event; `listener` sees all of them, shown or not."""
    shown = {"warning", "error", "critical", *(["info"] if verbose else [])}

    def drop_quiet(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        if event["level"] not in shown:
            raise structlog.DropEvent
        return event

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            *([listener] if listener else []),
            drop_quiet,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        # The listener counts pages, which are of level debug.
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if listener else logging.INFO),
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
