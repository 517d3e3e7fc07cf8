"""Dead letters as people deal with them: looked at by cause or one by one, and given up; the port `LetterDesk` on Postgres."""

from typing import Final

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.adapters.state import audit
from sluice.adapters.state.columns import storable
from sluice.adapters.state.letter_rows import dead_letter_from_row, selection
from sluice.errors import NotFound
from sluice.model.audit import Act, Actor
from sluice.model.base import ObjectKey
from sluice.model.reject import Cause, DeadLetter, DeadLetterGroup
from sluice.model.run import Redrive

_SQL: Final = Queries(__package__, "letter_desk.sql")


class PostgresLetterDesk:
    """Dead letters in Postgres."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def groups(self, sync: str | None) -> list[DeadLetterGroup]:
        """Return the open letters of a sync, or of all, summed up by cause; by sync, those first that have most objects."""
        with self._database.transaction() as connection:
            return [
                DeadLetterGroup(
                    sync=row["sync"],
                    cause=Cause(error=row["error"], field=row["field"]),
                    objects=row["objects"],
                    letters=row["letters"],
                    attempts=row["attempts"],
                    first_seen=row["first_seen"],
                    last_seen=row["last_seen"],
                    sample=row["sample"],
                )
                for row in connection.execute(_SQL["groups"], {"sync": sync})
            ]

    def get(self, letter: int) -> DeadLetter:
        """Return one letter, whatever has become of it; raise `NotFound` naming it."""
        with self._database.transaction() as connection:
            row = connection.execute(_SQL["get"], {"id": letter}).fetchone()
            if row is None:
                raise NotFound(f"there is no dead letter {letter}: `sluice dlq list` shows those that are open", letter=letter)
            return dead_letter_from_row(row)

    def of_object(self, sync: str, key: ObjectKey, limit: int) -> list[DeadLetter]:
        """Return the letters of an object, the newest first."""
        with self._database.transaction() as connection:
            rows = connection.execute(_SQL["of_object"], {"sync": sync, "key": storable(key), "limit": limit})
            return [dead_letter_from_row(row) for row in rows]

    def selected(self, sync: str, redrive: Redrive, limit: int, before: int | None = None) -> list[DeadLetter]:
        """Return open letters by number, by cause or all of them, the newest first; only those before a number, if given."""
        facts = {**selection(sync, redrive), "limit": limit, "before": before}
        with self._database.transaction() as connection:
            rows = connection.execute(_SQL["selected"], facts)
            return [dead_letter_from_row(row) for row in rows]

    def discard(self, sync: str, redrive: Redrive, by: Actor) -> int:
        """Give up what is selected and open; return how many objects that are."""
        facts = {**selection(sync, redrive), "by": storable(by.name), "reason": storable(by.reason)}
        with self._database.transaction() as connection:
            letters = connection.execute(_SQL["discard"], facts).rowcount
            rest = connection.execute(_SQL["discard_lines"], facts).fetchone()
            objects = letters + (rest["objects"] if rest is not None else 0)
            if objects:
                audit.note(connection, Act.DISCARD, by, sync=sync, objects=objects, **redrive.model_dump(mode="json"))
            return objects
