"""A table or a query of a Postgres database as a source: which rows are wanted in, pages of them out, in the order of a key."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from sluice.adapters.sources.sql.fragments import Fragment, in_order
from sluice.adapters.sources.sql.refusals import address_of
from sluice.adapters.sources.sql.snapshot import Row, Snapshot
from sluice.adapters.sources.sql.tables import find_table
from sluice.adapters.sources.sql.templates import QueryTemplate
from sluice.adapters.sources.sql.wanted import wanted
from sluice.adapters.sources.telling import told
from sluice.errors import AnswerTooLarge, AnswerUnusable, SpecInvalid, SupplierUnavailable
from sluice.guard.restraint import Restraint
from sluice.guard.retries import patiently
from sluice.model import source as declared
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo, Page, PageRequest

T = TypeVar("T")

_LONGEST_KEY: Final = 4096
"""Bytes; a key stands in the shard's row."""
_LONGEST_SHOWN: Final = 60
_ROWS_AT_ONCE: Final = 500
"""Of a page with more rows, what is too large is seen before all of it is here."""

Key = tuple[str, ...]


class SqlSource:
    """Reads rows in one snapshot for each try, and for each time that a connection is lost."""

    def __init__(
        self,
        source: declared.SqlSource,
        info: ConnectionInfo,
        policy: StagePolicy,
        restraint_of: Callable[[str], Restraint],
        sync: SyncSpec | None,
    ) -> None:
        """Check the query, and look up what holds requests back; nothing is connected to yet. `sync` has what rows are for."""
        self._source = source
        self._info = info
        self._policy = policy
        self._restraint = restraint_of(address_of(info))
        self._sync = sync
        self._query = None if source.query is None else QueryTemplate(source.query)

    def now(self) -> datetime:
        """Return the instant by the server's clock."""
        return self._ask(self._looked_at_the_clock)

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages behind `request.cursor`, in order, until nothing follows."""
        after = self._given(request)
        with closing(_Reading(self._source, self._policy, lambda after: self._opened(request, after))) as reading:
            while True:
                page, after = self._ask(partial(reading.page, after))
                yield page
                if after is None:
                    return

    def _ask(self, call: Callable[[], T]) -> T:
        """Return what a call to the server returns, repeating it as the policy allows while there is no server."""
        within = min(self._policy.timeouts.step, self._policy.no_progress_timeout)
        return patiently(lambda: self._restraint.ask(call), self._policy.retry, within)

    def _looked_at_the_clock(self) -> datetime:
        with Snapshot(self._info, self._policy) as snapshot:
            return snapshot.begun_at

    def _opened(self, request: PageRequest, after: Key | None) -> Snapshot:
        """Return a new snapshot, ready to yield the rows behind a key."""
        snapshot = Snapshot(self._info, self._policy)
        try:
            if self._query is not None:
                query = self._query.rendered(request)
                relation = Fragment(f"(\n{query.text}\n)", query.values)
                _require_distinct(snapshot.columns(relation, query.as_sent))
                snapshot.declare(in_order(relation, self._source.key, [], after, self._source.key), query.as_sent)
            else:
                table = find_table(snapshot, self._source.table or "", self._source.key)
                conditions = list(wanted(table, self._source, self._sync, request)) if self._sync else []
                nullable = [name for name in self._source.key if table.columns[name].may_be_null]
                snapshot.declare(in_order(table.relation, self._source.key, conditions, after, nullable))
        except BaseException:
            snapshot.close()
            raise
        return snapshot

    def _given(self, request: PageRequest) -> Key | None:
        cursor = request.cursor
        if cursor is None:
            return None
        if isinstance(cursor, list) and len(cursor) == len(self._source.key) and all(isinstance(part, str) for part in cursor):
            return tuple(str(part) for part in cursor)
        raise AnswerUnusable("the shard's stored cursor is no key of this source: it was written for another one")


@dataclass
class _Reading:
    """The rows of one request. Where it stands is told with each call, so that a lost connection costs no row."""

    source: declared.SqlSource
    policy: StagePolicy
    open: Callable[[Key | None], Snapshot]
    _snapshot: Snapshot | None = None
    _rows: list[Row] = field(default_factory=list)
    """What has been fetched beyond the last page."""

    def page(self, after: Key | None) -> tuple[Page, Key | None]:
        """Return the page behind a key, and its last row's; None if no row follows."""
        size = self.source.size
        try:
            if self._snapshot is None:
                self._snapshot = self.open(after)
            with told("FETCH", f"{size} rows of {self.source}") as answer:
                rows = self._fetched(self._snapshot)
                answer.bytes = sum(len(row[0]) for row in rows)
        except SupplierUnavailable:
            self.close()
            raise
        page, self._rows = rows[:size], rows[size:]
        last = self._last_key(rows, after)
        body = b"[" + b",".join(row[0] for row in page) + b"]"
        self._require_bounded(len(page), len(body))
        following = last if self._rows else None
        return Page(body, len(page), list(following) if following else None, self._snapshot.begun_at), following

    def _fetched(self, snapshot: Snapshot) -> list[Row]:
        """Return the rows of a page and, if there is one, another: it tells that a page follows."""
        rows, number = list(self._rows), self.source.size + 1
        size = sum(len(row[0]) for row in rows)
        while len(rows) < number:
            asked = min(number - len(rows), _ROWS_AT_ONCE)
            some = snapshot.fetch(asked)
            rows += some
            if len(some) < asked:
                break
            if len(rows) < number:
                size += sum(len(row[0]) for row in some)
                self._require_bounded(len(rows), size)
        return rows

    def _require_bounded(self, rows: int, size: int) -> None:
        if size > self.policy.max_body:
            raise AnswerTooLarge(
                f"{self.source}: {rows} rows have {size} bytes, and max_body of the stage is {self.policy.max_body}: "
                "lower source.size"
            )

    def close(self) -> None:
        """Let go what is open."""
        self._rows = []
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None

    def _last_key(self, rows: list[Row], before: Key | None) -> Key | None:
        """Return the key of a page's last row, having seen that keys tell all rows apart."""
        last, size = before, self.source.size
        for place, row in enumerate(rows):
            key = tuple(part for part in row[1:] if part is not None)
            if len(key) < len(row) - 1:
                column = self.source.key[row[1:].index(None)]
                raise AnswerUnusable(f"{self.source}: column {column} of source.key is null in the row {_shown(row)}")
            if key == before:
                raise AnswerUnusable(
                    f"{self.source}: two rows have the same key {_shown_key(key)}, so that rows could be lost between two "
                    "pages: add columns to source.key"
                )
            before = key
            last = key if place < size else last
        if last is not None and sum(len(part.encode()) for part in last) > _LONGEST_KEY:
            raise AnswerUnusable(f"{self.source}: a key has more than {_LONGEST_KEY} bytes: {_shown_key(last)}")
        return last


def _require_distinct(columns: list[str]) -> None:
    """Raise `SpecInvalid` where columns share a name, since a record has but one value under each."""
    if shared := sorted(name for name, count in Counter(columns).items() if count > 1):
        named = ", ".join(repr(name) for name in shared)
        raise SpecInvalid([f"source.query: several columns are called {named}: name each of them by `as`, or leave it out"])


def _shown(row: Row) -> str:
    return row[0].decode("utf-8", "replace")[:_LONGEST_SHOWN]


def _shown_key(key: Key) -> str:
    return ", ".join(key)[:_LONGEST_SHOWN]
