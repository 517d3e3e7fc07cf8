"""All rows that the table would hold, in the columns that a suite needs; what is found of expectations out, and who offends.

They are in the session that made the comparison, and nowhere else.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.targets.arrow_copy import copy_in, read_parquet
from sluice.adapters.targets.names import listed, type_sql
from sluice.adapters.targets.offending import offends, shown
from sluice.adapters.targets.standing import Standing
from sluice.adapters.targets.table import TargetTable
from sluice.checks.engine import Engine, Library, NotUsable
from sluice.checks.expectations import found, not_checked, told_apart
from sluice.checks.rejecting import REJECTING
from sluice.mapping.arrow import text_scalar
from sluice.model import rows
from sluice.model.base import ObjectKey, ShardKey
from sluice.model.evidence import LONGEST_VALUE, cut
from sluice.model.fields import FieldSpec
from sluice.model.quality import ExpectationResult, Met, Offender, SuiteExpectation
from sluice.ports import Refused

_SQL: Final = Queries(__package__, "expecting.sql")

_SAMPLES: Final = 5
_VIEW: Final = "expected"


class PostgresExpecting:
    """The rows of one comparison as a suite sees them."""

    def __init__(
        self,
        cursor: psycopg.Cursor[DictRow],
        table: TargetTable,
        columns: Collection[str],
        patience: timedelta,
        moved: Callable[[], object],
    ) -> None:
        self._cursor = cursor
        self._standing = Standing(cursor, table)
        self._fields = {field.name: field for field in table.fields}
        self._read = [field for field in table.fields if field.name in columns]
        self._patience = patience
        self._moved = moved
        self._library = Library()
        self._engine: Engine | None = None
        self._rows = 0
        table.spell_alike(cursor)
        columns_sql = sql.SQL("").join(
            sql.SQL(", {} {}").format(sql.Identifier(field.name), type_sql(field.type.sql)) for field in self._read
        )
        self._cursor.execute(sql.SQL(_SQL["create_checked"]).format(columns=columns_sql))
        self._cursor.execute(sql.SQL(_SQL["create_expected"]).format(columns=self._shown()))
        self._cursor.execute(_SQL["analyze_compared"])
        self._arriving = {
            (ShardKey(row["shard"]), row["seq"]): row["positions"] for row in self._cursor.execute(_SQL["arriving"])
        }

    def needed(self) -> list[tuple[ShardKey, int]]:
        """Return (shard, seq) of the rows artifacts that hold rows that come in."""
        return list(self._arriving)

    def load_rows(self, shard: ShardKey, seq: int, data: bytes) -> None:
        """Copy the rows of one rows artifact that come in."""
        names = [rows.KEY, *(field.name for field in self._read)]
        places = pc.split_pattern(text_scalar(self._arriving[shard, seq]), ",").values.cast(pa.int32())
        arriving = read_parquet(data, names).select(names).take(places)
        copy_in(self._cursor, sql.Identifier("checked"), arriving)
        self._rows += arriving.num_rows

    def complete(self) -> int:
        """Add the rows that stay; return how many the table would hold."""
        if self._standing.is_there:
            matches = self._standing.matches(sql.SQL("c.key"))
            self._rows += self._cursor.execute(self._of_the_table("add_staying", matches=matches)).rowcount
        self._cursor.execute(_SQL["analyze_checked"])
        return self._rows

    def check(self, expectations: Sequence[SuiteExpectation]) -> list[ExpectationResult]:
        """Return what is found of some expectations, which are checked together."""
        try:
            engine = self._opened()
        except NotUsable as error:
            return [not_checked(each, str(error)) for each in expectations]
        with self._bounded():
            answers = engine.answers(expectations)
        results = [found(each, answer, self._rows) for each, answer in zip(expectations, answers, strict=True)]
        return [
            self._told_apart(each, result) if result.met is Met.FAILED and each.type in REJECTING else result
            for each, result in zip(expectations, results, strict=True)
        ]

    @property
    def engine(self) -> str | None:
        """What has checked, with its version; None: nothing could."""
        return None if self._engine is None else self._engine.name

    @property
    def import_seconds(self) -> float:
        """How long loading it took."""
        return 0.0 if self._engine is None else self._engine.import_seconds

    def refuse(self, expectation: SuiteExpectation, place: int) -> None:
        """Note the objects that come in and do not meet an expectation, by its place in the suite."""
        self._cursor.execute(self._of_offenders("note_offenders", expectation, place))

    def refused(self) -> Iterator[Refused]:
        """Yield them, one rows artifact after the other."""
        with self._cursor.connection.cursor("offenders") as cursor:
            for row in cursor.execute(_SQL["offenders"]):
                yield Refused(
                    shard=ShardKey(row["shard"]),
                    seq=row["seq"],
                    position=row["position"],
                    key=ObjectKey(row["key"]),
                    expectation=row["expectation"],
                    value=cut(row["value"]),
                )

    def reject(self) -> int:
        """Take them for rejected, which the next comparison shows; the rows in whose place they would have come stay."""
        self._cursor.execute(_SQL["reject_offenders"])
        self._rows -= self._cursor.execute(_SQL["drop_offenders"]).rowcount
        if self._standing.is_there:
            put_back = self._of_the_table("put_back", matches=self._standing.matches(sql.SQL("o.key")))
            self._rows += self._cursor.execute(put_back).rowcount
        self._cursor.execute(_SQL["analyze_checked"])
        return self._rows

    def _opened(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(self._cursor.connection, _VIEW, self._moved, self._library)
        return self._engine

    def _told_apart(self, expectation: SuiteExpectation, result: ExpectationResult) -> ExpectationResult:
        """Tell the rows that come in from those that stay, and name some, by a query of our own."""
        try:
            with self._bounded(), self._cursor.connection.transaction():
                count = self._cursor.execute(self._of_offenders("count_offenders", expectation)).fetchone()
                sample = self._cursor.execute(self._of_offenders("sample_offenders", expectation)).fetchall()
        except (psycopg.DataError, psycopg.ProgrammingError, psycopg.errors.QueryCanceled) as error:
            return not_checked(expectation, f"who does not meet it cannot be found: {error.diag.message_primary}")
        samples = tuple(Offender(key=row["key"], value=cut(row["value"])) for row in sample)
        rows_in_all, arriving = (count["rows"], count["arriving"]) if count else (0, 0)
        return told_apart(expectation, result, offenders=rows_in_all, arriving=arriving, samples=samples)

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """Let no statement go on for longer than patience lasts."""
        limit = f"{max(1, round(self._patience.total_seconds() * 1000))}ms"
        row = self._cursor.execute(_SQL["bound_statements"], {"limit": limit}).fetchone()
        try:
            yield
        finally:
            self._cursor.execute(_SQL["bound_statements"], {"limit": row["before"] if row else "0"})

    def _shown(self) -> sql.Composed:
        """Return the columns of the table, of which those that no check reads are null."""
        read = {field.name for field in self._read}
        return sql.SQL(", ").join(
            sql.Identifier(name) if name in read else sql.SQL("null::{} as {}").format(_type(field), sql.Identifier(name))
            for name, field in self._fields.items()
        )

    def _of_the_table(self, query: str, *, matches: sql.Composable) -> sql.Composed:
        """Fill a query in that takes rows of the table as they stand. One without columns still has rows."""
        return sql.SQL(_SQL[query]).format(
            names=listed([rows.KEY, *(field.name for field in self._read)]),
            values=sql.SQL(", ").join([sql.SQL("null"), *(self._standing.value(field) for field in self._read)]),
            table=self._standing.identifier,
            live=self._standing.live,
            matches=matches,
        )

    def _of_offenders(self, query: str, expectation: SuiteExpectation, place: int = 0) -> sql.Composed:
        """Fill a query in that takes the rows that do not meet an expectation; parameters would mistake a `%` in its texts."""
        return sql.SQL(_SQL[query]).format(
            offends=offends(expectation, self._fields),
            shown=shown(expectation),
            samples=_SAMPLES,
            longest=LONGEST_VALUE + 1,
            expectation=place,
        )


def _type(field: FieldSpec) -> sql.SQL:
    return type_sql(field.type.sql)
