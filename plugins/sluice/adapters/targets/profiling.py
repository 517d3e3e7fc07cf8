"""What the target would hold, summed up in its database: the rows that stay and those that come in; a profile goes out."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
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
from sluice.adapters.targets.names import type_sql
from sluice.adapters.targets.standing import Standing
from sluice.model.evidence import LONGEST_VALUE, MOST_CATEGORIES, FieldKind, FieldProfile, Profile
from sluice.model.fields import FieldSpec, TypeName

_SQL: Final = Queries(__package__, "profiling.sql")

ROWS_LOOKED_AT: Final = 100_000
"""Of more rows a sample of about so many is drawn."""

_MASK: Final = 2**20 - 1
_MOST_DISTINCT: Final = 1_000
_SHARES: Final = (0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95)
_SHOWN: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_DECILES: Final = tuple(place for place, share in enumerate(_SHARES) if share not in (0.05, 0.25, 0.75, 0.95))
_TIMES: Final = frozenset({TypeName.DATE, TypeName.TIMESTAMPTZ})
_NUMBERS: Final = _TIMES | {TypeName.INTEGER, TypeName.BIGINT, TypeName.NUMERIC, TypeName.DOUBLE}


@dataclass(frozen=True)
class Sampling:
    """Which share of all rows is looked at."""

    is_sample: bool
    drawn: int
    """How many of the values of a hash are drawn, of `_MASK` and one."""
    rows: int

    @classmethod
    def of(cls, rows: int) -> "Sampling":
        """Return how a table of so many rows is sampled."""
        if rows <= ROWS_LOOKED_AT:
            return cls(is_sample=False, drawn=_MASK + 1, rows=rows)
        return cls(is_sample=True, drawn=ROWS_LOOKED_AT * (_MASK + 1) // rows, rows=rows)

    @property
    def facts(self) -> dict[str, int]:
        """What queries have to know."""
        return {"mask": _MASK, "drawn": self.drawn}

    @property
    def percent(self) -> sql.Literal:
        """The share as TABLESAMPLE takes it."""
        return sql.Literal(100 * self.drawn / (_MASK + 1))


class Profiling:
    """The profile of one comparison, in the session that made it."""

    def __init__(self, cursor: psycopg.Cursor[DictRow], standing: Standing, sampling: Sampling) -> None:
        self._cursor = cursor
        self._standing = standing
        self._fields = standing.fields
        self._sampling = sampling
        self._numbers = [place for place, field in enumerate(self._fields) if field.type.name in _NUMBERS]
        self._extremes: dict[int, tuple[Any, Any]] = {}

    def note_extremes(self, rows: pa.Table, positions: pa.Array) -> None:
        """Keep the lowest and highest values of all rows that come in, whichever of them are drawn."""
        coming_in = rows.select([self._fields[place].name for place in self._numbers]).take(positions)
        for place in self._numbers:
            column = coming_in[self._fields[place].name]
            if pa.types.is_string(column.type):
                values: list[Any] = [Decimal(text) for text in column.drop_null().to_pylist()]
                found = (min(values), max(values)) if values else None
            else:
                ends = pc.min_max(column).as_py()
                found = None if ends["min"] is None else (ends["min"], ends["max"])
            if found:
                low, high = self._extremes.get(place, found)
                self._extremes[place] = (min(low, found[0]), max(high, found[1]))

    def profile(self, baseline: Profile | None) -> Profile:
        """Sum up what the table would hold."""
        before = {field.field: field for field in baseline.fields} if baseline else {}
        self._gather()
        summary = self._summary()
        kinds = {place: self._kind(place, summary, before) for place in range(len(self._fields))}
        looked_at = summary["looked_at"]
        bins = self._bins(summary, before)
        categories = self._categories([place for place, kind in kinds.items() if kind is FieldKind.CATEGORY], before)
        return Profile(
            rows=self._sampling.rows if self._sampling.is_sample else looked_at,
            looked_at=looked_at,
            fields=tuple(
                FieldProfile(
                    field=field.name,
                    kind=kinds[place],
                    nulls=looked_at - summary[f"filled_{place}"],
                    distinct=summary[f"distinct_{place}"],
                    **self._range(place, summary),
                    **bins.get(place, {}),
                    categories=categories.get(place, {}),
                )
                for place, field in enumerate(self._fields)
            ),
        )

    def _gather(self) -> None:
        """Put all rows to sum up into one table, so that no pass over them reads more than it needs."""
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(name), type_sql(kind))
            for place, field in enumerate(self._fields)
            for name, kind in _columns(place, field)
        ]
        self._cursor.execute(sql.SQL(_SQL["create_profiled"]).format(columns=sql.SQL(", ").join(columns)))
        arriving = [sql.SQL("t.{}").format(sql.Identifier(field.name)) for field in self._fields]
        query = sql.SQL(_SQL["add_arriving"]).format(values=self._values(arriving))
        self._cursor.execute(query, self._sampling.facts)
        if self._standing.is_there:
            percent = self._sampling.percent if self._sampling.is_sample else sql.Literal(100)
            staying = [self._standing.value(field) for field in self._fields]
            query = sql.SQL(_SQL["add_staying"]).format(
                values=self._values(staying),
                table=self._standing.sampled(percent),
                live=self._standing.live,
                matches=self._standing.matches(sql.SQL("c.key")),
            )
            self._cursor.execute(query)
        if self._extremes:
            ends = {f"v{place}": pa.array([str(end) for end in both]) for place, both in self._extremes.items()}
            copy_in(self._cursor, "extremes", pa.table(ends))

    def _values(self, values: Sequence[sql.Composable]) -> sql.Composed:
        """Return the fields as `profiled` has them."""
        parts: list[sql.Composable] = []
        for field, value in zip(self._fields, values, strict=True):
            if field.type.name in _NUMBERS:
                parts.append(value)
                continue
            text = sql.SQL("{}::text").format(value)
            parts.append(sql.SQL("hashtextextended({}, 0)").format(text))
            if field.type.name is not TypeName.JSON:
                parts.append(
                    sql.SQL("case when length({0}) > {1} then left({0}, {2}) || '…' else {0} end").format(
                        text, LONGEST_VALUE, LONGEST_VALUE - 1
                    )
                )
        return sql.SQL(", ").join(parts)

    def _summary(self) -> DictRow:
        sums: list[sql.Composable] = []
        results: list[sql.Composable] = []
        for place, field in enumerate(self._fields):
            names = {name: sql.Identifier(f"{name}_{place}") for name in ("filled", "distinct", "low", "high", "quantiles")}
            told_apart = sql.Identifier(f"v{place}" if place in self._numbers else f"h{place}")
            sums.append(sql.SQL("count({0}) as {filled}, count(distinct {0}) as {distinct}").format(told_apart, **names))
            results.append(sql.SQL("{filled}, {distinct}").format(**names))
            if place not in self._numbers:
                continue
            sums.append(
                sql.SQL(
                    "least(min({0}), (select min({0}) from extremes)) as {low}, "
                    "greatest(max({0}), (select max({0}) from extremes)) as {high}, "
                    "percentile_disc({1}::double precision[]) within group (order by {0}) as {quantiles}"
                ).format(told_apart, list(_SHARES), **names)
            )
            results.append(
                sql.SQL(
                    "{low}::text as {low}, {high}::text as {high}, {quantiles}::text[] as {quantiles}, "
                    "{least} as {least_name}, {most} as {most_name}, "
                    "array(select {each} from unnest({quantiles}) v) as {floats}"
                ).format(
                    least=_number(field, names["low"]),
                    least_name=sql.Identifier(f"least_{place}"),
                    most=_number(field, names["high"]),
                    most_name=sql.Identifier(f"most_{place}"),
                    each=_number(field, sql.Identifier("v")),
                    floats=sql.Identifier(f"floats_{place}"),
                    **names,
                )
            )
        query = sql.SQL(_SQL["summarize"]).format(sums=sql.SQL(", ").join(sums), results=sql.SQL(", ").join(results))
        row = self._cursor.execute(query).fetchone()
        assert row is not None  # noqa: S101 - an aggregate without groups has one row
        return row

    def _kind(self, place: int, summary: DictRow, before: Mapping[str, FieldProfile]) -> FieldKind:
        """Return how a field is summed up. What was a category stays one: to have many values by now would be a drift."""
        field = self._fields[place]
        if place in self._numbers:
            return FieldKind.NUMBER
        if field.type.name is TypeName.JSON:
            return FieldKind.OTHER
        was = before.get(field.name)
        distinct, filled = summary[f"distinct_{place}"], summary[f"filled_{place}"]
        repeats = 0 < distinct <= min(_MOST_DISTINCT, filled // 2)
        is_category = field.type.name is TypeName.BOOLEAN or repeats or (was is not None and was.kind is FieldKind.CATEGORY)
        return FieldKind.CATEGORY if is_category else FieldKind.OTHER

    def _range(self, place: int, summary: DictRow) -> dict[str, Any]:
        if place not in self._numbers or not summary[f"filled_{place}"]:
            return {}
        values = dict(zip(_SHARES, summary[f"quantiles_{place}"], strict=True))
        return {
            "low": cut(summary[f"low_{place}"]),
            "high": cut(summary[f"high_{place}"]),
            "quantiles": tuple((share, cut(values[share])) for share in _SHOWN),
        }

    def _bins(self, summary: DictRow, before: Mapping[str, FieldProfile]) -> dict[int, dict[str, Any]]:
        """Return histogram and deciles of each number field that has values."""
        edges: dict[int, tuple[Edges, Edges]] = {}
        for place in self._numbers:
            if summary[f"filled_{place}"]:
                deciles = [summary[f"floats_{place}"][each] for each in _DECILES]
                ends = (summary[f"least_{place}"], summary[f"most_{place}"])
                was = before.get(self._fields[place].name)
                edges[place] = (edges_over(was.deciles if was else (), ends, deciles), own_edges(ends, deciles))
        if not edges:
            return {}
        numbers = [
            sql.SQL("({}, width_bucket({x}, {}::double precision[]), width_bucket({x}, {}::double precision[]))").format(
                sql.Literal(place),
                list(over.inner),
                list(own.inner),
                x=_number(self._fields[place], sql.Identifier(f"v{place}")),
            )
            for place, (over, own) in edges.items()
        ]
        filled: dict[int, tuple[list[int], list[int]]] = {
            place: ([0] * (len(over.inner) + 1), [0] * (len(own.inner) + 1)) for place, (over, own) in edges.items()
        }
        for row in self._cursor.execute(sql.SQL(_SQL["fill_bins"]).format(numbers=sql.SQL(", ").join(numbers))):
            over_rows, own_rows = filled[row["place"]]
            over_rows[row["bin"]] += row["rows"]
            own_rows[row["own_bin"]] += row["rows"]
        return {
            place: {"histogram": over.bins(filled[place][0]), "deciles": own.bins(filled[place][1])}
            for place, (over, own) in edges.items()
        }

    def _categories(self, places: Sequence[int], before: Mapping[str, FieldProfile]) -> dict[int, dict[str, int]]:
        """Return how many rows the most frequent values have, and those that were the most frequent in the baseline."""
        if not places:
            return {}
        asked = [
            (place, value)
            for place in places
            if (was := before.get(self._fields[place].name)) is not None
            for value in was.frequent
        ]
        texts = [sql.SQL("({}, {})").format(sql.Literal(place), sql.Identifier(f"v{place}")) for place in places]
        query = sql.SQL(_SQL["count_categories"]).format(texts=sql.SQL(", ").join(texts))
        facts = {
            "most": MOST_CATEGORIES,
            "places": [place for place, _ in asked],
            "values": [value for _, value in asked],
        }
        found: dict[int, dict[str, int]] = defaultdict(dict)
        for row in self._cursor.execute(query, facts):
            found[row["place"]][row["value"]] = row["rows"]
        return found


def cut(text: str | None) -> str | None:
    """Return a value as people are shown it."""
    return text if text is None or len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _columns(place: int, field: FieldSpec) -> list[tuple[str, str]]:
    """Return the columns that `profiled` has for a field."""
    if field.type.name in _NUMBERS:
        return [(f"v{place}", field.type.sql)]
    told_apart = (f"h{place}", "bigint")
    return [told_apart] if field.type.name is TypeName.JSON else [told_apart, (f"v{place}", "text")]


def _number(field: FieldSpec, value: sql.Composable) -> sql.Composed:
    """Return a value as a finite double, whatever it is: NaN and infinity as one beyond all others; null stays null."""
    if field.type.name in _TIMES:
        template = "extract(epoch from {0})::double precision"
    elif field.type.name is TypeName.NUMERIC:  # a double refuses what is too large or too small for it
        template = "case when abs({0}) < 1e-300 then 0 else greatest(least({0}, 1e300), -1e300)::double precision end"
    else:
        template = "{0}::double precision"
    return sql.SQL(f"case when {{0}} is not null then greatest(least({template}, 1e300), -1e300) end").format(value)
