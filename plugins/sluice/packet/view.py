"""Evidence in, what its page shows of it out: bounded, whatever the supplier sends, and in the order it is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sluice.model.base import ObjectKey
from sluice.model.evidence import Drift, Evidence, FieldKind, FieldProfile, ObjectSample, Profile, ShardCount
from sluice.model.ledger import Outcome
from sluice.model.quality import ExpectationResult, Met, Quality
from sluice.model.review import Figures
from sluice.model.rows import Postdated
from sluice.model.spec import SyncSpec
from sluice.packet.charts import Category, Counted, Histogram, History, categories, histogram, history, nulls, others
from sluice.packet.words import edge, is_time, share

MOST_VALUES: Final = 20
"""Fields shown of one object."""
_OBJECTS: Final = 20
_CHANGES: Final = 100
"""Changed fields shown; there may be as many as the table has columns, and the most frequent come first."""
_STATEMENTS: Final = 50
_EXPECTATIONS: Final = 100
_FIELD_SAMPLES: Final = 3
_PLOTS: Final = 24
"""Fields of which both distributions are drawn: those that drifted furthest."""
_FREQUENT: Final = 4
"""Values that stand in a row of the table of fields."""
_SHARES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_COMPARED: Final = frozenset({Outcome.CHANGED, Outcome.REAPPEARED, Outcome.ROLLED_BACK})
"""Outcomes of objects that have values before and after."""


@dataclass(frozen=True)
class Changed:
    """A field that differs in some objects."""

    name: str
    objects: int
    part: float
    """Of the objects whose rows are replaced, from 0 to 1."""
    share: str
    samples: tuple[tuple[ObjectKey, str | None, str | None], ...]


@dataclass(frozen=True)
class Group:
    """Objects of one outcome."""

    outcome: Outcome
    in_all: int
    is_compared: bool
    objects: tuple[ObjectSample, ...]


@dataclass(frozen=True)
class Drifted:
    """A field that has come some way from the last publication, and its two distributions."""

    drift: Drift
    is_over: bool
    histogram: Histogram | None
    categories: list[Category]
    others: Category | None
    nulls: Category | None


@dataclass(frozen=True)
class Summary:
    """One field's profile, as a row of a table."""

    nulls: str
    distinct: int
    low: str | None
    high: str | None
    quantiles: tuple[str | None, ...]
    categories: list[tuple[str, str]]


@dataclass(frozen=True)
class Field:
    """One field of the table, before and now."""

    name: str
    kind: FieldKind
    now: Summary
    before: Summary | None


@dataclass(frozen=True)
class View:
    """All of it."""

    schema_changes: tuple[str, ...]
    schema_changes_left_out: int
    postdated: Postdated | None
    quality: Quality | None
    expectations: list[ExpectationResult]
    """Those that are not met first, then those that could not be checked."""
    expectations_left_out: int
    replaced: int
    changes: list[Changed]
    changes_left_out: int
    groups: list[Group]
    drifts: list[Drifted]
    limit: float
    """The drift that the policy approves by itself."""
    fields: list[Field]
    profile: Profile
    baseline: Profile | None
    shards: list[tuple[ShardCount, History]]
    shards_in_all: int


def view_of(spec: SyncSpec, figures: Figures, evidence: Evidence) -> View:
    """Choose and arrange what is shown."""
    replaced = sum(figures.count(outcome) for outcome in _COMPARED)
    limit = spec.review.auto_approve.drift
    return View(
        schema_changes=evidence.schema_changes[:_STATEMENTS],
        schema_changes_left_out=len(evidence.schema_changes[_STATEMENTS:]),
        postdated=evidence.postdated,
        quality=evidence.quality,
        expectations=_expectations(evidence)[:_EXPECTATIONS],
        expectations_left_out=len(_expectations(evidence)[_EXPECTATIONS:]),
        replaced=replaced,
        changes=[
            Changed(
                name=change.field,
                objects=change.objects,
                part=min(1.0, change.objects / max(replaced, 1)),
                share=share(change.objects, max(replaced, change.objects)),
                samples=change.samples[:_FIELD_SAMPLES],
            )
            for change in evidence.changes[:_CHANGES]
        ],
        changes_left_out=len(evidence.changes[_CHANGES:]),
        groups=list(_groups(figures, evidence.samples)),
        drifts=_drifts(spec, evidence, limit),
        limit=limit,
        fields=_fields(evidence),
        profile=evidence.profile,
        baseline=evidence.baseline,
        shards=[(shard, history(shard)) for shard in evidence.shards],
        shards_in_all=evidence.shards_in_all,
    )


def _expectations(evidence: Evidence) -> list[ExpectationResult]:
    order = (Met.FAILED, Met.NOT_CHECKED, Met.PASSED)
    return [] if evidence.quality is None else sorted(evidence.quality.results, key=lambda result: order.index(result.met))


def _groups(figures: Figures, samples: Sequence[ObjectSample]) -> list[Group]:
    found: dict[Outcome, list[ObjectSample]] = {}
    for sample in samples:
        found.setdefault(sample.outcome, []).append(sample)
    return [
        Group(outcome, max(figures.count(outcome), len(found[outcome])), outcome in _COMPARED, tuple(found[outcome][:_OBJECTS]))
        for outcome in Outcome
        if outcome in found
    ]


def _drifts(spec: SyncSpec, evidence: Evidence, limit: float) -> list[Drifted]:
    now, before = _counted(evidence.profile), _counted(evidence.baseline)
    plotted = [drift.field for drift in evidence.drifts[:_PLOTS] if drift.field in now and drift.field in before]
    return [
        _drifted(spec, drift, limit, now[drift.field], before[drift.field])
        if drift.field in plotted
        else Drifted(drift, drift.value > limit, None, [], None, None)
        for drift in evidence.drifts
    ]


def _drifted(spec: SyncSpec, drift: Drift, limit: float, now: Counted, before: Counted) -> Drifted:
    bars = histogram(now, before, partial(edge, of_time=is_time(spec, drift.field)))
    values = [] if bars else categories(now, before)
    return Drifted(
        drift=drift,
        is_over=drift.value > limit,
        histogram=bars,
        categories=values,
        others=others(values, now, before) if values else None,
        nulls=nulls(now, before),
    )


def _counted(profile: Profile | None) -> dict[str, Counted]:
    return {} if profile is None else {field.field: Counted(field, max(profile.looked_at, 1)) for field in profile.fields}


def _fields(evidence: Evidence) -> list[Field]:
    before = _counted(evidence.baseline)
    return [
        Field(
            name=field.field,
            kind=field.kind,
            now=_summary(field, evidence.profile),
            before=_summary(before[field.field].field, evidence.baseline)
            if evidence.baseline and field.field in before
            else None,
        )
        for field in evidence.profile.fields
    ]


def _summary(field: FieldProfile, profile: Profile) -> Summary:
    quantiles = dict(field.quantiles)
    return Summary(
        nulls=share(field.nulls, profile.looked_at),
        distinct=field.distinct,
        low=field.low,
        high=field.high,
        quantiles=tuple(quantiles.get(part) for part in _SHARES) if quantiles else (),
        categories=[(value, share(rows, profile.looked_at)) for value, rows in list(field.frequent.items())[:_FREQUENT]],
    )
