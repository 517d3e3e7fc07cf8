"""A field goes in; the SQL that sums its values up goes out, whatever they are.

In the table `profiled`, `v3` is the fourth field of the spec: a number or time as it is, a text cut. `h3` tells its values
apart where they are cut, or are documents or arrays.
"""

from dataclasses import dataclass
from typing import Final

from psycopg import sql

from sluice.adapters.targets.names import type_sql
from sluice.model.evidence import LONGEST_VALUE
from sluice.model.fields import ARRAYS, FieldSpec, TypeName

SHARES: Final = (0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95)
"""The quantiles that are found in one go: those that are shown, and the deciles."""

_TIMES: Final = frozenset({TypeName.DATE, TypeName.TIMESTAMPTZ})
_SHAPED: Final = ARRAYS | {TypeName.JSON}
_NUMBERS: Final = _TIMES | {TypeName.INTEGER, TypeName.BIGINT, TypeName.NUMERIC, TypeName.DOUBLE}


@dataclass(frozen=True)
class Summand:
    """One field of the spec."""

    place: int
    field: FieldSpec

    @property
    def name(self) -> str:
        """The field's name."""
        return self.field.name

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers or times."""
        return self.field.type.name in _NUMBERS

    @property
    def has_text(self) -> bool:
        """Whether its values can be shown as categories."""
        return not self.is_number and self.field.type.name not in _SHAPED

    @property
    def v(self) -> sql.Identifier:
        """The column of its values."""
        return sql.Identifier(f"v{self.place}")

    def columns(self) -> sql.Composable:
        """Return its columns in `profiled`, with their types."""
        if self.is_number:
            return sql.SQL("{} {}").format(self.v, type_sql(self.field.type.sql))
        return sql.SQL(", ").join(
            [sql.SQL("{} bigint").format(self._h), *([sql.SQL("{} text").format(self.v)] if self.has_text else [])]
        )

    def values(self, value: sql.Composable) -> sql.Composable:
        """Return what its columns hold of a value."""
        if self.is_number:
            return value
        # A document need not be written out to be told from others.
        hashed = "jsonb_hash_extended({}, 0)" if self.field.type.name is TypeName.JSON else "hashtextextended({}::text, 0)"
        told_apart = sql.SQL(hashed).format(value)
        if not self.has_text:
            return told_apart
        return sql.SQL(
            "{told_apart}, "
            "case when length({value}::text) > {longest} then left({value}::text, {cut}) || '…' else {value}::text end"
        ).format(told_apart=told_apart, value=value, longest=LONGEST_VALUE, cut=LONGEST_VALUE - 1)

    def sums(self) -> sql.Composable:
        """Return what is summed up of it in one pass over all rows."""
        counts = sql.SQL("count({0}) as {1}, count(distinct {0}) as {2}").format(
            self.v if self.is_number else self._h, self._named("filled"), self._named("distinct")
        )
        if not self.is_number:
            return counts
        return sql.SQL(
            "{counts}, least(min({v}), (select min({v}) from extremes)) as {low}, "
            "greatest(max({v}), (select max({v}) from extremes)) as {high}, "
            "percentile_disc({shares}::double precision[]) within group (order by {v}) as {quantiles}"
        ).format(
            counts=counts,
            v=self.v,
            low=self._named("low"),
            high=self._named("high"),
            shares=list(SHARES),
            quantiles=self._named("quantiles"),
        )

    def results(self) -> sql.Composable:
        """Return what is made of the sums: `ends_3` and `floats_3` are low, high and the quantiles as doubles."""
        counts = sql.SQL("{}, {}").format(self._named("filled"), self._named("distinct"))
        if not self.is_number:
            return counts
        return sql.SQL(
            "{counts}, {low}::text as {low}, {high}::text as {high}, {quantiles}::text[] as {quantiles}, "
            "array[{low_number}, {high_number}] as {ends}, array(select {each} from unnest({quantiles}) as q) as {floats}"
        ).format(
            counts=counts,
            low=self._named("low"),
            high=self._named("high"),
            quantiles=self._named("quantiles"),
            low_number=self.number(self._named("low")),
            high_number=self.number(self._named("high")),
            each=self.number(sql.Identifier("q")),
            ends=self._named("ends"),
            floats=self._named("floats"),
        )

    def number(self, value: sql.Composable) -> sql.Composed:
        """Return a value as a finite double, whatever it is: NaN and infinity as one beyond all others; null stays null."""
        if self.field.type.name in _TIMES:
            template = "extract(epoch from {0})::double precision"
        elif self.field.type.name is TypeName.NUMERIC:  # a double refuses what is too large or too small for it
            template = "case when abs({0}) < 1e-300 then 0 else greatest(least({0}, 1e300), -1e300)::double precision end"
        else:
            template = "{0}::double precision"
        return sql.SQL(f"case when {{0}} is not null then greatest(least({template}, 1e300), -1e300) end").format(value)

    @property
    def _h(self) -> sql.Identifier:
        return sql.Identifier(f"h{self.place}")

    def _named(self, what: str) -> sql.Identifier:
        return sql.Identifier(f"{what}_{self.place}")
