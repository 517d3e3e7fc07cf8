"""Great Expectations, lent a connection: expectations in; what it says of a table that this connection sees, out.

It is imported here alone, and within a function: that takes seconds. It works in the transaction it is lent, and neither
commits nor ends anything of it; a statement of its that fails takes nothing else with it. It has no context, hence no file, no
network and no telemetry; its progress bars, warnings and logs are off.
"""

import importlib
import importlib.util
import logging
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.rows import tuple_row

from sluice.checks.expectations import Answer
from sluice.model.evidence import cut
from sluice.model.quality import SuiteExpectation

_FEW: Final = {"result_format": "SUMMARY", "partial_unexpected_count": 0}
"""Counts alone: to look for rows that offend where there are none costs another pass over all."""
_OF_POSTGRES: Final = re.compile(r"\(psycopg\.errors\.\w+\)")
_RARELY_USED: Final = "scipy.stats"
"""A third of all that is loaded, for a few kinds of expectations."""
_LOGGERS: Final = ("great_expectations", "py.warnings")


class NotUsable(Exception):
    """Great Expectations is not installed here, or is not as it is known."""


class Library:
    """The library as it is loaded, beside whatever else is done meanwhile: most of that is for the database to do."""

    def __init__(self) -> None:
        """Begin to load it."""
        os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
        self._seconds = 0.0
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._load, name="sluice-great-expectations", daemon=True)
        self._thread.start()

    def loaded(self) -> float:
        """Wait for its end, and return how long it took; raise `NotUsable` if that failed."""
        self._thread.join()
        if self._error is not None:
            raise _not_usable(self._error) from self._error
        return self._seconds

    def _load(self) -> None:
        began = time.monotonic()
        try:
            _put_off(_RARELY_USED)
            importlib.import_module("great_expectations")
        except Exception as error:  # noqa: BLE001 - of all that it loads, anything may be wrong
            self._error = error
        self._seconds = time.monotonic() - began


class Engine:
    """The library, looking at one table of one connection."""

    def __init__(
        self, connection: psycopg.Connection[Any], table: str, moved: Callable[[], object], library: "Library"
    ) -> None:
        """Look at a table. After each statement of the library's, `moved` is called; raises `NotUsable` if it cannot be had."""
        self.import_seconds = library.loaded()
        try:
            with _silence():
                self._open(_Guest(connection, moved), table)
        except Exception as error:
            raise _not_usable(error) from error

    def _open(self, guest: "_Guest", table: str) -> None:
        import great_expectations
        import sqlalchemy
        from great_expectations.core.batch import Batch
        from great_expectations.execution_engine import SqlAlchemyExecutionEngine
        from great_expectations.execution_engine.sqlalchemy_batch_data import SqlAlchemyBatchData
        from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
        from great_expectations.validator.validator import Validator

        class Quiet(Validator):  # type: ignore[misc]  # what is used of the library is not what it types
            def _determine_progress_bars(self) -> bool:
                return False

        engine = sqlalchemy.create_engine(
            "postgresql+psycopg://",
            creator=lambda: guest,
            poolclass=sqlalchemy.pool.StaticPool,
            use_native_hstore=False,
        )
        execution = SqlAlchemyExecutionEngine(engine=engine)
        data = SqlAlchemyBatchData(execution_engine=execution, table_name=table)
        self._validator = Quiet(execution_engine=execution, batches=[Batch(data=data)])
        self._configuration = ExpectationConfiguration
        self.name = f"Great Expectations {great_expectations.__version__}"

    def answers(self, expectations: Sequence[SuiteExpectation]) -> list[Answer]:
        """Return what the library says of some expectations, checked together: what cannot be may take others with it."""
        asked = [
            self._configuration(type=each.type, kwargs=dict(each.kwargs), id=str(place))
            for place, each in enumerate(expectations)
        ]
        wanted = {"result_format": _FEW, "catch_exceptions": True}
        try:
            with _silence():
                results = self._validator.graph_validate(asked, runtime_configuration=wanted)
        except Exception as error:  # noqa: BLE001 - whatever it raises for what it does not know, or cannot take
            return [Answer(success=False, figures={}, trouble=_line(str(error))) for _ in asked]
        # It answers in an order of its own.
        found = {result.expectation_config.id: _answer(result) for result in results}
        return [found.get(each.id, Answer(success=False, figures={}, trouble="there is no answer")) for each in asked]


def _put_off(name: str) -> None:
    """Let a module be loaded when something of it is first used, and not when it is imported."""
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules[name] = importlib.util.module_from_spec(spec)
    parent, _, child = name.rpartition(".")
    setattr(sys.modules[parent], child, sys.modules[name])
    spec.loader.exec_module(sys.modules[name])


def _not_usable(error: Exception) -> NotUsable:
    return NotUsable(f"Great Expectations cannot be used here: {type(error).__name__}: {_line(str(error))}")


def _answer(result: Any) -> Answer:
    trouble = _raised(result.exception_info or {})
    return Answer(success=bool(result.success), figures=dict(result.result or {}), trouble=trouble)


def _raised(info: Mapping[str, Any]) -> str | None:
    """Return why it raised, be it told of the whole or by metric; None: it did not."""
    told = [info, *(each for each in info.values() if isinstance(each, Mapping))]
    messages = [str(each["exception_message"]) for each in told if each.get("raised_exception")]
    return _line(messages[0]) if messages else None


def _line(message: str) -> str:
    """Return a message in one short line, of Postgres's errors without what SQLAlchemy and the library put around them."""
    said = _OF_POSTGRES.split(message, maxsplit=1)[-1].partition("[SQL:")[0]
    return cut(" ".join(said.split())) or "it gives no reason"


class _Guest:
    """A connection as a guest sees it, who may ask, and may end nothing."""

    def __init__(self, connection: psycopg.Connection[Any], moved: Callable[[], object]) -> None:
        self._connection = connection
        self._moved = moved

    def cursor(self, *_: Any, **__: Any) -> "_Guarded":
        return _Guarded(self._connection, self._moved)

    def commit(self) -> None:
        """Leave that to the host."""

    rollback = close = commit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class _Guarded(psycopg.Cursor[Any]):
    """A cursor each of whose statements can fail alone."""

    def __init__(self, connection: psycopg.Connection[Any], moved: Callable[[], object]) -> None:
        super().__init__(connection, row_factory=tuple_row)
        self._moved = moved

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        with self.connection.transaction():
            result = super().execute(*args, **kwargs)
        self._moved()
        return result


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what the library logs and warns of from logs that it does not belong in."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
