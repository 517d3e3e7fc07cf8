"""The audit trail: inside a transaction, an act goes in; it becomes the newest entry. And the port `AuditStore`."""

from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb
from pydantic import JsonValue

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state.columns import storable
from sluice.model.audit import Act, Actor, AuditEntry, act_of_request
from sluice.model.base import RunId
from sluice.model.run import Run

_SQL: Final = Queries(__package__, "audit.sql")

Connection = psycopg.Connection[DictRow]


def note(
    connection: Connection,
    act: Act,
    by: Actor,
    *,
    sync: str | None,
    run: RunId | None = None,
    subject: str | None = None,
    **facts: Any,
) -> None:
    """Note what somebody has done; with the transaction it has happened, or has not."""
    columns = {
        "actor": storable(by.name),
        "via": by.via,
        "act": act,
        "sync": sync,
        "run": run,
        "subject": subject,
        "reason": storable(by.reason),
        "facts": Jsonb({name: fact for name, fact in facts.items() if fact is not None}),
    }
    connection.execute(_SQL["note"], columns)


def note_request(connection: Connection, run: Run, by: Actor) -> None:
    """Note that somebody has begun a run, if that is an act.

    Nothing is noted of one that a person has asked for by name: whoever begins it does so in place of that person.
    """
    asked = act_of_request(run)
    if asked is None or connection.execute(_SQL["of_run"], {"run": run.id}).fetchone() is not None:
        return
    act, subject, facts = asked
    told: dict[str, Any] = dict(facts)
    note(connection, act, by, sync=run.sync, run=run.id, subject=subject, **told)


class PostgresAuditStore:
    """The audit trail in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def note(self, act: Act, by: Actor, sync: str | None, facts: Mapping[str, JsonValue], run: RunId | None = None) -> None:
        """Note an act that no single transaction has done, or that asks for a run."""
        told: dict[str, Any] = dict(facts)
        with self._database.transaction() as connection:
            note(connection, act, by, sync=sync, run=run, **told)

    def of(self, sync: str | None, run: RunId | None, limit: int) -> list[AuditEntry]:
        """Return the newest entries first."""
        with self._database.transaction() as connection:
            return [_entry(row) for row in connection.execute(_SQL["of"], {"sync": sync, "run": run, "limit": limit})]


def _entry(row: DictRow) -> AuditEntry:
    return AuditEntry(
        id=row["id"],
        at=row["at"],
        act=Act(row["act"]) if row["act"] in list(Act) else row["act"],
        by=Actor(name=row["actor"], via=row["via"], reason=row["reason"]),
        sync=row["sync"],
        run=RunId(row["run"]) if row["run"] is not None else None,
        subject=row["subject"],
        facts=row["facts"],
    )
