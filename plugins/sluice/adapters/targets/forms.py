"""How a table keeps its objects: the columns it needs for that, and the statements that write and delete.

There are two forms. *Upsert* has one row for each object, which a change overwrites. *History* (a slowly changing dimension of
type 2) has one for each version of an object, with the time from when and until when it was the one: nothing is ever removed.
Times are those of publications, which grow strictly within a sync; so spans are neither empty nor overlap.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from psycopg import sql

from sluice.adapters.targets.names import TableNames, listed
from sluice.model.rows import DELETED_AT, VALID_FROM, VALID_TO
from sluice.model.spec import SyncSpec

_AT: Final = sql.Placeholder("at")
"""When the publication was applied."""
_PRIVILEGES: Final = frozenset({"select", "insert", "update"})


@dataclass(frozen=True)
class OwnColumn:
    """A point in time that Sluice needs to know of a row."""

    name: str
    comment: str
    is_required: bool = False


class Form(Protocol):
    """What sets the forms apart. Statements take the parameter `at`."""

    own: tuple[OwnColumn, ...]
    key: tuple[str, ...]
    """The columns of the primary key."""
    key_of_live: tuple[str, ...]
    """The columns that are unique among the live rows alone; none: the primary key says it all."""
    checks: tuple[sql.Composed, ...]
    """What holds for each row."""
    privileges: frozenset[str]
    """What has to be granted on the table."""
    is_dated: bool
    """Whether each row says when it was published."""

    def live(self, row: str) -> sql.Composable:
        """Return the condition that the table's row aliased `row` is what an object is now."""

    def overwritten(self, row: str) -> sql.Composable:
        """Return the condition that a write of its object touches the table's row aliased `row`."""

    def writes(self, incoming: str) -> tuple[sql.Composed, ...]:
        """Return the statements that write the rows of the temporary table `incoming`, whose columns are text."""

    def deletes(self, approved: str) -> sql.Composed:
        """Return the statement that takes out the objects that the temporary table `approved` calls deleted."""


class UpsertForm:
    """One row for each object; a deletion marks it or removes it."""

    key_of_live: tuple[str, ...] = ()
    checks: tuple[sql.Composed, ...] = ()
    is_dated = False

    def __init__(self, names: TableNames, deletes: str) -> None:
        self._names = names
        self._soft_deletes = deletes == "soft"
        self.privileges = _PRIVILEGES | {"delete"} if deletes == "hard" else _PRIVILEGES
        mark = OwnColumn(DELETED_AT, "When its deletion was published; null while the supplier has it.")
        self.own: tuple[OwnColumn, ...] = (mark,) if self._soft_deletes else ()
        self.key = names.key

    def live(self, row: str) -> sql.Composable:
        """Whoever is not marked as deleted lives."""
        if not self._soft_deletes:
            return sql.SQL("true")
        return sql.SQL("{}.{} is null").format(sql.Identifier(row), sql.Identifier(DELETED_AT))

    def overwritten(self, row: str) -> sql.Composable:  # noqa: ARG002 - the other form asks the row
        """The one row of an object is overwritten, marked or not."""
        return sql.SQL("true")

    def writes(self, incoming: str) -> tuple[sql.Composed, ...]:
        """Insert, or overwrite what has the key; who was marked as deleted is alive again."""
        own = [column.name for column in self.own]
        columns = [*(field.name for field in self._names.fields), *own]
        changes = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in columns if name not in self.key]
        action = sql.SQL("do update set {}").format(sql.SQL(", ").join(changes)) if changes else sql.SQL("do nothing")
        statement = sql.SQL("insert into {} ({}) select {} from {} order by _key on conflict ({}) {}").format(
            self._names.identifier,
            listed(columns),
            sql.SQL(", ").join([*self._names.values(), *(sql.SQL("null") for _ in own)]),
            sql.Identifier(incoming),
            listed(self.key),
            action,
        )
        return (statement,)

    def deletes(self, approved: str) -> sql.Composed:
        """Mark the row, or remove it."""
        facts = {
            "table": self._names.identifier,
            "approved": sql.Identifier(approved),
            "mark": sql.Identifier(DELETED_AT),
            "at": _AT,
            "matches": self._names.key_matches("t", sql.SQL("a.key")),
        }
        if self._soft_deletes:
            statement = "update {table} t set {mark} = {at} from {approved} a where a.outcome = 'deleted' and {matches}"
        else:
            statement = "delete from {table} t using {approved} a where a.outcome = 'deleted' and {matches}"
        return sql.SQL(statement).format(**facts)


class HistoryForm:
    """One row for each version of an object; the one that is valid has no end."""

    own: tuple[OwnColumn, ...] = (
        OwnColumn(VALID_FROM, "When this version was published.", is_required=True),
        OwnColumn(VALID_TO, "When a later version, or the object's deletion, was published; null while this one is valid."),
    )
    checks: tuple[sql.Composed, ...] = (
        sql.SQL("check ({} < {})").format(sql.Identifier(VALID_FROM), sql.Identifier(VALID_TO)),
    )
    privileges = _PRIVILEGES
    is_dated = True

    def __init__(self, names: TableNames) -> None:
        self._names = names
        self.key: tuple[str, ...] = (*names.key, VALID_FROM)
        self.key_of_live = names.key

    def live(self, row: str) -> sql.Composable:
        """Whatever has no end is valid."""
        return sql.SQL("{}.{} is null").format(sql.Identifier(row), sql.Identifier(VALID_TO))

    def overwritten(self, row: str) -> sql.Composable:
        """A new version ends the valid one; those before it stay as they are."""
        return self.live(row)

    def writes(self, incoming: str) -> tuple[sql.Composed, ...]:
        """End the versions that are valid, and insert those that are from now on."""
        end = self._end(sql.SQL("{} i where true").format(sql.Identifier(incoming)), sql.SQL("i._key"))
        begin = sql.SQL("insert into {} ({}) select {}, {}::timestamptz from {} order by _key").format(
            self._names.identifier,
            listed([*(field.name for field in self._names.fields), VALID_FROM]),
            sql.SQL(", ").join(self._names.values()),
            _AT,
            sql.Identifier(incoming),
        )
        return (end, begin)

    def deletes(self, approved: str) -> sql.Composed:
        """End the version that is valid."""
        return self._end(sql.SQL("{} a where a.outcome = 'deleted'").format(sql.Identifier(approved)), sql.SQL("a.key"))

    def _end(self, ended: sql.Composed, key: sql.Composable) -> sql.Composed:
        return sql.SQL("update {} t set {} = {} from {} and {} and {}").format(
            self._names.identifier, sql.Identifier(VALID_TO), _AT, ended, self._names.key_matches("t", key), self.live("t")
        )


def form_of(spec: SyncSpec, names: TableNames) -> Form:
    """Return the form that a spec declares for its table."""
    if spec.target.form == "history":
        return HistoryForm(names)
    return UpsertForm(names, spec.target.deletes)
