"""Calls with side effects: `sluice_state.call` behind the port `CallStore`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import journal
from sluice.adapters.state.columns import storable
from sluice.errors import Fenced, NotFound
from sluice.model.base import RunId
from sluice.model.call import Call, CallResult
from sluice.model.lifecycle import FINAL_RUN_STATUSES
from sluice.model.run import Run

_SQL: Final = Queries(__package__, "call.sql")

Connection = psycopg.Connection[DictRow]


class PostgresCallStore:
    """Calls in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def prepare(self, calls: Sequence[Call], run: Run, ttl: timedelta) -> None:
        """Note calls that are due once something else has happened; what is known of one of them stays."""
        with self._database.transaction() as connection:
            _require_token(connection, run)
            for call in sorted(calls, key=lambda call: call.key):
                note_call(connection, call, ttl, begun=0)

    def begin(self, call: Call, run: Run, ttl: timedelta) -> Call:
        """Commit the intent to make the call; one that has a result is returned as it is."""
        with self._database.transaction() as connection:
            _require_token(connection, run)
            return note_call(connection, call, ttl, begun=1)

    def answer(self, call: Call, run: Run, result: CallResult) -> None:
        """Keep the result of a call that was begun; the first one stands."""
        self._come_to_an_end("answer", call, run, accepted=result.accepted, answer=storable(result.answer))

    def leave(self, call: Call, run: Run, trouble: str) -> None:
        """Note why a try brought no result."""
        self._come_to_an_end("leave", call, run, trouble=storable(trouble))

    def of(self, run: RunId) -> list[Call]:
        """Return the calls of a run, oldest first."""
        with self._database.transaction() as connection:
            return [_call_from_row(row) for row in connection.execute(_SQL["of_run"], {"run": run})]

    def left(self, sync: str) -> list[Call]:
        """Return the calls without a result that runs of the sync have left behind which are over, oldest first."""
        with self._database.transaction() as connection:
            facts = {"sync": sync, "final": sorted(FINAL_RUN_STATUSES)}
            return [_call_from_row(row) for row in connection.execute(_SQL["left"], facts)]

    def _come_to_an_end(self, how: str, call: Call, run: Run, **columns: Any) -> None:
        with self._database.transaction() as connection:
            _require_token(connection, run, call.run)
            row = connection.execute(_SQL[how], {"key": call.key, **columns}).fetchone()
            if row is not None:
                journal.note_call(connection, call.run, call.name, how, _call_from_row(row).standing, key=call.key, **columns)


def _require_token(connection: Connection, run: Run, *tellers: RunId) -> None:
    """Hold the run's token until the transaction ends, and the runs whose journals will tell of it.

    Unlike other writes this is no sign of life: a run may be over.
    """
    rows = connection.execute(_SQL["lock_runs"], {"runs": [run.id, *tellers]})
    tokens = {row["id"]: row["token"] for row in rows}
    if run.id not in tokens:
        raise NotFound(f"there is no run {run.id}", run=run.id)
    if (token := tokens[run.id]) != run.token:
        raise Fenced(f"run {run.id} was taken over: it holds token {token}, not {run.token}", token=token)


def note_call(connection: Connection, call: Call, ttl: timedelta, *, begun: int) -> Call:
    """Note a call, in the transaction of what it is to tell of; one that has a result is returned as it is."""
    connection.execute(_SQL["forget_expired"], {"key": call.key})
    facts = {
        "key": call.key,
        "sync": call.sync,
        "run": call.run,
        "subject": call.subject,
        "name": call.name,
        "begun": begun,
        "ttl": ttl,
    }
    row = connection.execute(_SQL["note"], facts).fetchone()
    if row is None:
        row = connection.execute(_SQL["get"], {"key": call.key}).fetchone()
    if row is None:
        raise NotFound(f"the call {call.key} was removed while it was being noted", key=call.key)
    return _call_from_row(row)


def _call_from_row(row: DictRow) -> Call:
    return Call(
        key=row["key"],
        sync=row["sync"],
        run=RunId(row["run"]),
        subject=row["subject"],
        name=row["name"],
        begun=row["begun"],
        trouble=row["trouble"],
        result=CallResult(accepted=row["accepted"], answer=row["answer"]) if row["accepted"] is not None else None,
    )
