"""The published table of one sync in Postgres: checks, diffs and publications, each in a transaction of its own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import BinaryIO

from sluice.adapters.postgres import Database, end_if_idle
from sluice.adapters.targets.diffing import PostgresDiffing
from sluice.adapters.targets.holding import held
from sluice.adapters.targets.publishing import PostgresPublishing
from sluice.adapters.targets.reconciling import missing
from sluice.adapters.targets.rolling_back import PostgresRollingBack
from sluice.adapters.targets.table import TargetTable
from sluice.errors import TargetMismatch
from sluice.model.base import ObjectKey, PublicationId, Token
from sluice.model.spec import SyncSpec
from sluice.ports import Held, Undo


class PostgresTarget:
    """The table of one sync, and the ledger beside it."""

    def __init__(self, database: Database, spec: SyncSpec) -> None:
        self._database = database
        self._spec = spec
        self._sync = spec.sync
        self._table = TargetTable(spec)

    def check(self) -> tuple[str, ...]:
        """Return what the next publication will do to the table; raise `TargetMismatch` if it may not do all that is needed."""
        with self._database.transaction() as connection:
            return self._table.check(connection.cursor())

    @contextmanager
    def held(self, keys: Sequence[ObjectKey] | None = None) -> Iterator[Iterator[Held]]:
        """Open the rows the table holds, of these objects or of all; a table that is not there holds none."""
        with self._database.transaction() as connection:
            is_readable = self._table.is_readable(connection.cursor())
            yield held(connection, self._spec, self._table, keys) if is_readable else iter(())

    @contextmanager
    def missing(self) -> Iterator[Iterator[ObjectKey]]:
        """Open the objects that the ledger says are live, and of which the table has no row."""
        with self._database.transaction() as connection:
            if not self._table.exists(connection.cursor()):
                raise TargetMismatch(f"table {self._table.schema}.{self._table.name} of sync {self._sync} is not there")
            yield missing(connection, self._sync, self._table)

    @contextmanager
    def diffing(self) -> Iterator[PostgresDiffing]:
        """Open a staging area with one unchanging view of the ledger."""
        with self._database.transaction() as connection:
            connection.execute("set transaction isolation level repeatable read")
            self._table.spell_alike(connection.cursor())
            self._table.work_in_bulk(connection.cursor())
            yield PostgresDiffing(connection, self._sync, self._table)

    def undo_of(self, publication: PublicationId, images: BinaryIO, diff: BinaryIO) -> Undo:
        """Hold the before-images of a publication against one unchanging view of table and ledger, and write the diff."""
        with self._database.transaction() as connection:
            connection.execute("set transaction isolation level repeatable read")
            self._table.spell_alike(connection.cursor())
            return PostgresRollingBack(connection, self._spec, self._table).compare(publication, images, diff)

    @contextmanager
    def publishing(self, token: Token, patience: timedelta) -> Iterator[PostgresPublishing]:
        """Open the transaction of a publication, with the target locked and the fence raised to `token`."""
        with self._database.transaction() as connection:
            end_if_idle(connection, patience)
            self._table.spell_alike(connection.cursor())
            self._table.work_in_bulk(connection.cursor())
            rolling_back = PostgresRollingBack(connection, self._spec, self._table)
            publishing = PostgresPublishing(connection, self._sync, self._table, rolling_back)
            publishing.take_lock(token)
            yield publishing
