"""A closer look at a comparison: rows that come in are laid beside those of the table; changed fields and samples go out."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.targets.arrow_copy import copy_in, read_parquet
from sluice.adapters.targets.names import type_sql
from sluice.adapters.targets.profiling import Profiling, Sampling
from sluice.adapters.targets.standing import Standing
from sluice.adapters.targets.table import TargetTable
from sluice.model import rows
from sluice.model.base import ObjectKey, ShardKey
from sluice.model.evidence import LONGEST_VALUE, FieldChange, ObjectSample, Profile, ValueChange, cut
from sluice.model.ledger import Outcome
from sluice.ports import DiffCounts

_SQL: Final = Queries(__package__, "inspecting.sql")

SAMPLES_OF_FIELD: Final = 5

_WHOLE: Final = frozenset({Outcome.CREATED, Outcome.DELETED})
"""Outcomes of which all fields are shown."""
_KEPT: Final = frozenset({Outcome.REJECTED, Outcome.REFRESHED})
"""Outcomes that leave the row as it is."""


class PostgresInspecting:
    """The rows of one comparison, in the session that made it."""

    def __init__(self, cursor: psycopg.Cursor[DictRow], table: TargetTable, counts: DiffCounts, samples: int) -> None:
        self._cursor = cursor
        self._fields = table.fields
        self._standing = Standing(cursor, table)
        table.spell_alike(cursor)
        cursor.execute(_SQL["analyze_comparison"])
        self._sampling = Sampling.of(_rows_after(counts))
        cursor.execute(_SQL["show"], {"samples": samples, "outcomes": [str(outcome) for outcome in counts.outcomes]})
        cursor.execute(_SQL["need"], self._sampling.facts)
        cursor.execute(_SQL["index_needed"])
        columns = [sql.SQL("{} {}").format(sql.Identifier(field.name), type_sql(field.type.sql)) for field in self._fields]
        cursor.execute(sql.SQL(_SQL["create_arriving"]).format(sql.SQL(", ").join(columns)))
        self._profiling = Profiling(cursor, self._standing, self._sampling)

    def needed(self) -> list[tuple[ShardKey, int]]:
        """Return (shard, seq) of the rows artifacts that hold rows to look at."""
        found = self._cursor.execute(_SQL["needed"], {"is_sample": self._sampling.is_sample})
        return [(ShardKey(row["shard"]), row["seq"]) for row in found]

    def load_rows(self, shard: ShardKey, seq: int, data: bytes) -> None:
        """Copy the rows of one rows artifact that are looked at; of all that come in note what a sample would not tell."""
        places = self._cursor.execute(_SQL["places"], {"shard": shard, "seq": seq}).fetchone()
        if places is None:
            return
        table = read_parquet(data, [rows.KEY, *(field.name for field in self._fields)])
        if self._sampling.is_sample:
            self._profiling.note_all(table, pa.array(places["coming_in"], pa.int32()))
        looked_at = table.take(pa.array(places["looked_at"], pa.int32()))
        columns = {rows.KEY: looked_at[rows.KEY], **{field.name: looked_at[field.name] for field in self._fields}}
        copy_in(self._cursor, sql.Identifier("arriving"), pa.table(columns))

    def differences(self) -> tuple[tuple[FieldChange, ...], tuple[ObjectSample, ...]]:
        """Return how often each field would change, and some objects of each outcome."""
        self._cursor.execute(_SQL["index_arriving"])
        self._cursor.execute(_SQL["create_differing"])
        if self._standing.is_there:
            self._cursor.execute(self._compose("compare_fields"))
        changes = self._cursor.execute(_SQL["field_changes"], {"samples": SAMPLES_OF_FIELD}).fetchall()
        shown = self._cursor.execute(_SQL["shown"]).fetchall()
        keys = {row["key"] for row in shown}.union(*(change["keys"] for change in changes))
        pairs = {
            row["key"]: row for row in self._cursor.execute(self._compose("side_by_side"), {"keys": sorted(keys)}).fetchall()
        }
        order = list(Outcome)
        samples = [self._sample(row, pairs[row["key"]]) for row in shown]
        return (
            tuple(self._change(change, pairs) for change in changes),
            tuple(sorted(samples, key=lambda sample: (order.index(sample.outcome), sample.key))),
        )

    def profile(self, baseline: Profile | None, counted: Collection[str] = ()) -> Profile:
        """Sum up what the table would hold, so that it can be compared with the baseline."""
        return self._profiling.profile(baseline, counted)

    def _change(self, row: DictRow, pairs: Mapping[str, DictRow]) -> FieldChange:
        place = row["field"]
        return FieldChange(
            field=self._fields[place].name,
            objects=row["objects"],
            samples=tuple(
                (ObjectKey(key), cut(pairs[key][f"old_{place}"]), cut(pairs[key][f"new_{place}"])) for key in row["keys"]
            ),
        )

    def _sample(self, row: DictRow, pair: DictRow) -> ObjectSample:
        outcome = Outcome(row["outcome"])
        places: list[int] = list(range(len(self._fields))) if outcome in _WHOLE else pair["fields"]
        if outcome in _KEPT or (outcome is Outcome.STALE and not pair["comes_in"]):
            places = []
        return ObjectSample(
            key=ObjectKey(row["key"]),
            outcome=outcome,
            shard=row["shard"],
            old_shard=row["old_shard"] if row["old_shard"] != row["shard"] else None,
            old_version=row["old_version"],
            version=row["version"],
            values=tuple(
                ValueChange(field=self._fields[place].name, old=cut(pair[f"old_{place}"]), new=cut(pair[f"new_{place}"]))
                for place in places
            ),
        )

    def _compose(self, query: str) -> sql.Composed:
        """Fill a query in with the columns: `old_3` and `new_3` are the fourth field of the spec before and after."""
        old = [self._standing.value(field) for field in self._fields]
        new = [sql.SQL("a.{}").format(sql.Identifier(field.name)) for field in self._fields]
        differing = [
            sql.SQL("case when {} is distinct from {} then {} end").format(before, after, sql.Literal(place))
            for place, (before, after) in enumerate(zip(old, new, strict=True))
        ]
        return sql.SQL(_SQL[query]).format(
            differing=sql.SQL("array_remove(array[{}]::smallint[], null)").format(sql.SQL(", ").join(differing)),
            beside=self._standing.beside(sql.SQL("k.key")),
            old=_named("old", old),
            new=_named("new", new),
        )


def _rows_after(counts: DiffCounts) -> int:
    """Return how many rows the table would hold, by the ledger."""
    come, go = (Outcome.CREATED, Outcome.REAPPEARED), Outcome.DELETED
    return counts.live_before + sum(counts.outcomes.get(outcome, 0) for outcome in come) - counts.outcomes.get(go, 0)


def _named(prefix: str, values: list[Any]) -> sql.Composed:
    """Return values as text, each under a name of its own."""
    texts = [
        sql.SQL("left({}::text, {}) as {}").format(value, LONGEST_VALUE + 1, sql.Identifier(f"{prefix}_{place}"))
        for place, value in enumerate(values)
    ]
    return sql.SQL(", ").join(texts)
