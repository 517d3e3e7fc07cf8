"""Rows of any release in, nouns of this one out: each row is continued, migrated, refused or given up for rebuilding.

*Continue*: the row is of this release's version. *Migrate*: it is older; a chain of small functions brings it up, one version
each, on the way in. It is stored anew by whoever takes it under a new token. *Refuse* (`StateTooNew`): a newer release wrote
it, and knows what it means. *Rebuild* (`StateUnreadable`): whatever its version says, it makes no sense; what it stands for has
to be made again. A store never guesses.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import structlog
from pydantic import ValidationError

from sluice import log_events
from sluice.errors import StateTooNew, StateUnreadable
from sluice.model import metric
from sluice.model.state_class import Branch
from sluice.ports import Metrics

_log: Final = structlog.get_logger()

Row = Mapping[str, Any]
Noun = TypeVar("Noun")


@dataclass(frozen=True)
class Versioned(Generic[Noun]):
    """A table whose rows carry `state_version`, and how a row of each version becomes a noun."""

    table: str
    known: int
    """The version this release writes."""
    identity: Mapping[str, str]
    """What names a row: facts by name, and the columns that hold them."""
    migrations: Mapping[int, Callable[[Row], Row]]
    """By version, what turns a row into one of the next."""
    build: Callable[[Row], Noun]
    """Makes the noun of a row of the known version."""

    def read(self, row: Row) -> Noun:
        """Return the noun a row stands for; raise `StateTooNew` or `StateUnreadable`, naming table and row."""
        facts = {"table": self.table, **{fact: row[column] for fact, column in self.identity.items()}}
        version = row["state_version"]
        if version > self.known:
            self._note(Branch.REFUSE, facts, version)
            raise StateTooNew(
                f"{self._spelled(row)} has state version {version}; this Sluice knows up to {self.known}: a newer worker will "
                "take it",
                **facts,
                state_version=version,
            )
        try:
            noun = self.build(self._migrated(row))
        except (ValueError, KeyError, TypeError) as error:
            self._note(Branch.REBUILD, facts, version)
            raise StateUnreadable(
                f"{self._spelled(row)} (state version {version}) cannot be read: {_reason(error)}",
                **facts,
                state_version=version,
            ) from error
        self._note(Branch.CONTINUE if version == self.known else Branch.MIGRATE, facts, version)
        return noun

    def _migrated(self, row: Row) -> Row:
        """Return the row as this release would have written it."""
        for version in range(row["state_version"], self.known):
            if version not in self.migrations:
                raise ValueError(f"no release has written version {version}")
            row = {**self.migrations[version](row), "state_version": version + 1}
        return row

    def _spelled(self, row: Row) -> str:
        return " of ".join(f"{fact} {row[column]}" for fact, column in self.identity.items())

    def _note(self, branch: Branch, facts: Mapping[str, Any], version: int) -> None:
        tally = _tally.get()
        if tally is not None:
            tally[self.table, branch] += 1
        if branch is Branch.MIGRATE:
            _log.debug(log_events.STATE_ROW_MIGRATED, **facts, state_version=version)
        elif branch is Branch.REFUSE:
            _log.warning(log_events.STATE_ROW_REFUSED, **facts, state_version=version, known=self.known)
        elif branch is Branch.REBUILD:
            _log.warning(log_events.STATE_ROW_UNREADABLE, **facts, state_version=version)


_tally: ContextVar["Counter[tuple[str, Branch]] | None"] = ContextVar("sluice_rows_read", default=None)


@contextmanager
def rows_counted(metrics: Metrics) -> Iterator[None]:
    """Count, when the block ends, which branch each row took that was read in it: `state_read` by table and branch."""
    tally: Counter[tuple[str, Branch]] = Counter()
    before = _tally.set(tally)
    try:
        yield
    finally:
        _tally.reset(before)
        for (table, branch), number in tally.items():
            metrics.count(metric.STATE_READ, number, table=table, branch=str(branch))


def readable(rows: Iterable[Any], read: Callable[[Any], Noun]) -> list[Noun]:
    """Return the nouns of a list for people, without those that cannot be read: the log has named them, table and row."""
    nouns: list[Noun] = []
    for row in rows:
        with suppress(StateTooNew, StateUnreadable):
            nouns.append(read(row))
    return nouns


def _reason(error: Exception) -> str:
    """Say what is wrong without repeating a value that is not known to be free of secrets."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    if isinstance(error, ValidationError):
        return "; ".join(
            f"{'.'.join(str(part) for part in problem['loc']) or 'the row'}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        )
    return str(error)
