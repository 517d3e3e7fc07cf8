"""The state database as the stores of one class see it: a database goes in, the same transactions come out, counted."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.state.versions import rows_counted
from sluice.errors import CommitUnconfirmed, NotFound, SchemaOutdated, StateUnavailable
from sluice.model import metric
from sluice.model.state_class import StateClass
from sluice.ports import Metrics


class StateDatabase:
    """Counts by class what could not be reached (`state_failed`), what is not there (`state_missing`), and rows read."""

    def __init__(self, database: Transactions, state_class: StateClass, metrics: Metrics) -> None:
        self._database = database
        self._class = state_class
        self._metrics = metrics

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[DictRow]]:
        """Open a transaction, see `postgres.Database`; whatever it raises passes."""
        try:
            with rows_counted(self._metrics), self._database.transaction() as connection:
                yield connection
        except (StateUnavailable, CommitUnconfirmed, SchemaOutdated) as error:
            self._metrics.count(metric.STATE_FAILED, state_class=self._class.value, error=type(error).__name__)
            raise
        except NotFound:
            self._metrics.count(metric.STATE_MISSING, state_class=self._class.value)
            raise
