"""What the target would hold, summed up in its database: the rows that stay and those that come in; a profile goes out."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.adapters.targets.arrow_copy import copy_in
from sluice.adapters.targets.bins import Edges, edges_over, own_edges
from sluice.adapters.targets.standing import Standing
from sluice.adapters.targets.summing import SHARES, Summand
from sluice.model.evidence import MOST_CATEGORIES, FieldKind, FieldProfile, Profile, cut
from sluice.model.fields import TypeName

_SQL: Final = Queries(__package__, "profiling.sql")

ROWS_LOOKED_AT: Final = 10_000
"""Of more rows a sample of about so many is drawn."""

_MASK: Final = 2**20 - 1
_MOST_DISTINCT: Final = 1_000
_SHOWN: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_DECILES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Sampling:
    """Which share of all rows is looked at."""

    rows: int
    is_sample: bool
    drawn: int
    """How many of the values of a hash are drawn, of `_MASK` and one."""

    @classmethod
    def of(cls, rows: int) -> "Sampling":
        """Return how a table of so many rows is sampled."""
        is_sample = rows > ROWS_LOOKED_AT
        return cls(rows, is_sample, ROWS_LOOKED_AT * (_MASK + 1) // rows if is_sample else _MASK + 1)

    @property
    def facts(self) -> dict[str, int]:
        """What queries have to know."""
        return {"mask": _MASK, "drawn": self.drawn}

    @property
    def percent(self) -> float:
        """The share as TABLESAMPLE takes it."""
        return 100 * self.drawn / (_MASK + 1)


class Profiling:
    """The profile of one comparison, in the session that made it."""

    def __init__(self, cursor: psycopg.Cursor[DictRow], standing: Standing, sampling: Sampling) -> None:
        self._cursor = cursor
        self._standing = standing
        self._sampling = sampling
        self._summands = [Summand(place, field) for place, field in enumerate(standing.fields)]
        self._numbers = [summand for summand in self._summands if summand.is_number]
        self._extremes: dict[int, tuple[Any, Any]] = {}
        self._nulls: Counter[str] = Counter()

    def note_all(self, rows: pa.Table, positions: pa.Array) -> None:
        """Keep lowest and highest values, and the number of nulls, of all rows that come in, whichever of them are drawn."""
        for summand in self._summands:
            self._nulls[summand.name] += pc.sum(pc.is_null(rows[summand.name]).take(positions)).as_py() or 0
        coming_in = rows.select([summand.name for summand in self._numbers]).take(positions)
        for summand in self._numbers:
            if found := _ends(coming_in[summand.name]):
                low, high = self._extremes.get(summand.place, found)
                self._extremes[summand.place] = (min(low, found[0]), max(high, found[1]))

    def profile(self, baseline: Profile | None, counted: Collection[str]) -> Profile:
        """Sum up what the table would hold; of some fields, count the nulls of all rows."""
        before = {field.field: field for field in baseline.fields} if baseline else {}
        self._gather()
        summary = self._summary()
        kinds = {summand.place: _kind(summand, summary, before.get(summand.name)) for summand in self._summands}
        bins = self._bins(summary, before)
        categories = self._categories([each for each in self._summands if kinds[each.place] is FieldKind.CATEGORY], before)
        looked_at = summary["looked_at"]
        in_all = self._nulls_in_all([each for each in self._summands if each.name in counted])
        return Profile(
            rows=self._sampling.rows if self._sampling.is_sample else looked_at,
            looked_at=looked_at,
            fields=tuple(
                FieldProfile(
                    field=summand.name,
                    kind=kinds[summand.place],
                    nulls=looked_at - summary[f"filled_{summand.place}"],
                    nulls_in_all=in_all.get(summand.name),
                    distinct=summary[f"distinct_{summand.place}"],
                    **(_range(summand, summary) if summand.place in bins else {}),
                    **bins.get(summand.place, {}),
                    categories=categories.get(summand.place, {}),
                )
                for summand in self._summands
            ),
        )

    def _nulls_in_all(self, counted: Sequence[Summand]) -> dict[str, int]:
        """Return how many rows have no value of some fields, those that were not drawn included; nothing if all were."""
        if not self._sampling.is_sample or not counted:
            return {}
        found = {each.name: self._nulls[each.name] for each in counted}
        if self._standing.is_there:
            query = sql.SQL(_SQL["count_nulls"]).format(
                nulls=_joined([sql.SQL("count(*) - count({})").format(self._standing.value(each.field)) for each in counted]),
                table=self._standing.identifier,
                live=self._standing.live,
                matches=self._standing.matches(sql.SQL("c.key")),
            )
            row = self._cursor.execute(query).fetchone()
            for each, number in zip(counted, row["nulls"] if row else (), strict=True):
                found[each.name] += number
        return found

    def _gather(self) -> None:
        """Put all rows to sum up into one table, so that no pass over them reads more than it needs."""
        columns = _joined([summand.columns() for summand in self._summands])
        self._cursor.execute(sql.SQL(_SQL["create_profiled"]).format(columns=columns))
        arriving = [each.values(sql.SQL("t.{}").format(sql.Identifier(each.name))) for each in self._summands]
        self._cursor.execute(sql.SQL(_SQL["add_arriving"]).format(values=_joined(arriving)), self._sampling.facts)
        if self._standing.is_there:
            staying = [each.values(self._standing.value(each.field)) for each in self._summands]
            query = sql.SQL(_SQL["add_staying"]).format(
                values=_joined(staying),
                table=self._standing.sampled(self._sampling.percent),
                live=self._standing.live,
                matches=self._standing.matches(sql.SQL("c.key")),
            )
            self._cursor.execute(query)
        if self._extremes:
            ends = {f"v{place}": pa.array([str(end) for end in both], pa.string()) for place, both in self._extremes.items()}
            copy_in(self._cursor, sql.Identifier("extremes"), pa.table(ends))

    def _summary(self) -> DictRow:
        query = sql.SQL(_SQL["summarize"]).format(
            sums=_joined([summand.sums() for summand in self._summands]),
            results=_joined([summand.results() for summand in self._summands]),
        )
        row = self._cursor.execute(query).fetchone()
        assert row is not None  # noqa: S101 - an aggregate without groups has one row
        return row

    def _bins(self, summary: DictRow, before: Mapping[str, FieldProfile]) -> dict[int, dict[str, Any]]:
        """Return histogram and deciles of each number field that has values."""
        edges: dict[int, tuple[Edges, Edges]] = {}
        for summand in self._numbers:
            if summary[f"filled_{summand.place}"]:
                values = dict(zip(SHARES, summary[f"floats_{summand.place}"], strict=True))
                deciles = [values[share] for share in _DECILES]
                low, high = summary[f"ends_{summand.place}"]
                was = before.get(summand.name)
                over = edges_over(was.deciles if was else (), (low, high), deciles)
                edges[summand.place] = (over, own_edges((low, high), deciles))
        return self._filled(edges) if edges else {}

    def _filled(self, edges: Mapping[int, tuple[Edges, Edges]]) -> dict[int, dict[str, Any]]:
        """Count the rows of both kinds of bins, of all fields in one pass."""
        places = list(edges)
        query = sql.SQL(_SQL["fill_bins"]).format(
            numbers=_joined([self._summands[place].number(self._summands[place].v) for place in places]),
            edges=_cases([over for over, _ in edges.values()]),
            own_edges=_cases([own for _, own in edges.values()]),
        )
        rows: dict[int, tuple[list[int], list[int]]] = {
            place: ([0] * (len(over.inner) + 1), [0] * (len(own.inner) + 1)) for place, (over, own) in edges.items()
        }
        for row in self._cursor.execute(query):
            over_rows, own_rows = rows[places[row["place"] - 1]]
            over_rows[row["bin"]] += row["rows"]
            own_rows[row["own_bin"]] += row["rows"]
        return {
            place: {"histogram": over.bins(rows[place][0]), "deciles": own.bins(rows[place][1])}
            for place, (over, own) in edges.items()
        }

    def _categories(self, summands: Sequence[Summand], before: Mapping[str, FieldProfile]) -> dict[int, dict[str, int]]:
        """Return how many rows the most frequent values have, and those that were the most frequent in the baseline."""
        if not summands:
            return {}
        asked = [
            (number, value)
            for number, each in enumerate(summands, start=1)
            if each.name in before
            for value in before[each.name].frequent
        ]
        query = sql.SQL(_SQL["count_categories"]).format(texts=_joined([summand.v for summand in summands]))
        facts = {
            "most": MOST_CATEGORIES,
            "places": [number for number, _ in asked],
            "values": [value for _, value in asked],
        }
        found: dict[int, dict[str, int]] = defaultdict(dict)
        for row in self._cursor.execute(query, facts):
            found[summands[row["place"] - 1].place][row["value"]] = row["rows"]
        return found


def _kind(summand: Summand, summary: DictRow, was: FieldProfile | None) -> FieldKind:
    """Return how a field is summed up. What was a category stays one: to have many values by now would be a drift."""
    if summand.is_number:
        return FieldKind.NUMBER
    distinct, filled = summary[f"distinct_{summand.place}"], summary[f"filled_{summand.place}"]
    repeats = 0 < distinct <= min(_MOST_DISTINCT, filled // 2)
    is_boolean = summand.field.type.name is TypeName.BOOLEAN
    was_category = was is not None and was.kind is FieldKind.CATEGORY
    return FieldKind.CATEGORY if summand.has_text and (is_boolean or repeats or was_category) else FieldKind.OTHER


def _range(summand: Summand, summary: DictRow) -> dict[str, Any]:
    values = dict(zip(SHARES, summary[f"quantiles_{summand.place}"], strict=True))
    return {
        "low": cut(summary[f"low_{summand.place}"]),
        "high": cut(summary[f"high_{summand.place}"]),
        "quantiles": tuple((share, cut(values[share])) for share in _SHOWN),
    }


def _ends(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return the lowest and the highest value; of numbers that are too long for Arrow, which are text there, as well."""
    if pa.types.is_string(column.type):
        values = [Decimal(text) for text in column.drop_null().to_pylist()]
        return (min(values), max(values)) if values else None
    ends = pc.min_max(column).as_py()
    return None if ends["min"] is None else (ends["min"], ends["max"])


def _cases(edges: Sequence[Edges]) -> sql.Composed:
    """Return, as the branches of a CASE over the fields in their order, what the bins of each are divided by."""
    branches = [
        sql.SQL("when {} then {}::double precision[]").format(number, list(each.inner))
        for number, each in enumerate(edges, start=1)
    ]
    return sql.SQL(" ").join(branches)


def _joined(parts: Sequence[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)
