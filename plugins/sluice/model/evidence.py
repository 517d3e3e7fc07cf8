"""What a person decides by, beyond the counts: changed fields, samples, profiles and drift, counts per shard.

It is computed at review and kept as an artifact (JSON). Everything in it is of the supplier or the table, and thus to be
escaped wherever it is shown.

Values are text, as Postgres spells them; null is None. Beyond `LONGEST_VALUE` characters they are cut, and end with an
ellipsis.

*Drift* compares a field's profile with the one of the last publication. For numbers, dates and times it is the population
stability index over the deciles of the baseline, sum((new - old) * ln(new / old)) of the shares, where shares of nothing
count as one in ten thousand. For categories it is the frequency shift: half the sum of |new - old| over the shares of all
values, from 0 (alike) to 1 (nothing in common). Nulls are a value of their own in both; of fields with many values or documents
their share alone is compared. Profiles of few rows are not compared at all: one object would be a drift. An index
below 0.1 is commonly taken for stable, and one above 0.25 for a change that needs a look (credit scoring practice; Siddiqi,
Credit Risk Scorecards, 2006).
"""

from enum import StrEnum
from typing import Final

from pydantic import Field

from sluice.model.base import Frozen, ObjectKey, ShardKey
from sluice.model.ledger import Outcome
from sluice.model.quality import Quality
from sluice.model.rows import Postdated

LONGEST_VALUE: Final = 200
"""Longer values are cut for people."""

MOST_CATEGORIES: Final = 20
"""So many values of a field are counted by name; and those that were so in the baseline."""


def cut(text: str | None) -> str | None:
    """Return a value as people are shown it."""
    return text if text is None or len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


class ValueChange(Frozen):
    """One field of one object, before and after."""

    field: str
    old: str | None
    new: str | None


class ObjectSample(Frozen):
    """One object of a diff: what of its row would change; a new or deleted one with all its fields."""

    key: ObjectKey
    outcome: Outcome
    shard: ShardKey | None
    old_shard: ShardKey | None = Field(default=None, description="the shard that delivered it before, where it moved")
    old_version: int | None = None
    version: int | None = None
    values: tuple[ValueChange, ...]


class FieldChange(Frozen):
    """How often a field differs between the rows of the table and those that would take their place."""

    field: str
    objects: int = Field(ge=1)
    samples: tuple[tuple[ObjectKey, str | None, str | None], ...] = Field(description="(object, before, after)")


class FieldKind(StrEnum):
    """How the values of a field are summed up."""

    NUMBER = "number"
    """Ordered values: numbers, dates and times. Histogram and quantiles are of seconds since 1970 for the latter."""
    CATEGORY = "category"
    """Few values: text, booleans and uuids that repeat."""
    OTHER = "other"
    """Many values, or documents: nulls and distinct values are counted, no more."""


class Bin(Frozen):
    """Some of a histogram: values from `low` up to, but not with, `high`; the first and the last take all beyond, too."""

    low: float
    high: float
    rows: int


class FieldProfile(Frozen):
    """One field of the table, summed up."""

    field: str
    kind: FieldKind
    nulls: int = Field(ge=0, description="rows without a value, of the rows looked at")
    nulls_in_all: int | None = Field(
        default=None, ge=0, description="of all rows; None: all were looked at, or nothing depends on how many there are"
    )
    distinct: int = Field(ge=0, description="different values, of the rows looked at")
    low: str | None = None
    high: str | None = None
    quantiles: tuple[tuple[float, str], ...] = Field(default=(), description="(share, value): 5, 25, 50, 75 and 95%")
    histogram: tuple[Bin, ...] = Field(default=(), description="deciles of a baseline, equal bins without one")
    deciles: tuple[Bin, ...] = Field(default=(), description="its own ones, over which the next profile is compared with it")
    categories: dict[str, int] = Field(
        default={}, description="rows of the most frequent values, and of those that were so in the baseline"
    )

    @property
    def frequent(self) -> dict[str, int]:
        """The most frequent values alone."""
        return dict(sorted(self.categories.items(), key=lambda item: (-item[1], item[0]))[:MOST_CATEGORIES])


class Profile(Frozen):
    """What the table would hold if this were published, summed up by field."""

    rows: int = Field(ge=0, description="live rows the table would hold")
    looked_at: int = Field(ge=0, description="rows the figures are of; fewer than `rows`: a sample")
    fields: tuple[FieldProfile, ...]

    def nulls_of(self, field: FieldProfile) -> int | None:
        """Return how many of all rows have no value of a field; None: only some were looked at."""
        return field.nulls if self.looked_at == self.rows else field.nulls_in_all


class Measure(StrEnum):
    """How far two profiles of a field are apart."""

    STABILITY_INDEX = "population stability index"
    FREQUENCY_SHIFT = "frequency shift"


class Drift(Frozen):
    """How far a field has come from the last publication."""

    field: str
    measure: Measure
    value: float = Field(ge=0)


class ShardCount(Frozen):
    """How many objects a shard delivered, beside what it delivered before."""

    shard: ShardKey
    objects: int = Field(ge=0)
    before: tuple[int, ...] = Field(description="of the last full runs, newest first; empty: none is known")


class VersionCount(Frozen):
    """What one version of the transformation has made, of a run that has several."""

    version: int
    shards: int = Field(ge=0)
    objects: int = Field(ge=0, description="that it delivered")
    created: int = Field(ge=0)
    changed: int = Field(ge=0)

    @property
    def changed_share(self) -> float:
        """How much of what it delivered and the table holds it would change."""
        known = self.objects - self.created
        return self.changed / known if known else 0.0


class Evidence(Frozen):
    """All of it, of one review."""

    changes: tuple[FieldChange, ...] = Field(description="the most frequent first")
    samples: tuple[ObjectSample, ...] = Field(description="some objects of each outcome, in key order within an outcome")
    profile: Profile
    baseline: Profile | None = Field(description="what the last publication left; None: nothing to compare with")
    drifts: tuple[Drift, ...] = Field(description="the furthest first")
    shards: tuple[ShardCount, ...] = Field(description="those furthest from what they delivered before first, some of them")
    shards_in_all: int = Field(ge=0)
    versions: tuple[VersionCount, ...] = Field(default=(), description="of the transformation, where a canary took part")
    postdated: Postdated | None = Field(default=None, description="records dated after their fetch; None: there are none")
    quality: Quality | None = Field(
        default=None, description="what the sync's suite found; None: it names none, or an older release made this"
    )
    schema_changes: tuple[str, ...] = Field(
        default=(), description="what publication would do to the table itself: each statement, and its reason behind `--`"
    )
