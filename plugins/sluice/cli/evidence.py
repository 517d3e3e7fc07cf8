"""What a person decides a review by, in; tables of it, for people, out."""

from itertools import groupby
from typing import Final

from rich.console import Group, RenderableType

from sluice.cli.output import printable, table
from sluice.model.evidence import Drift, Evidence, FieldChange, ObjectSample, ShardCount
from sluice.model.review import Review

_MOST_KEYS: Final = 20
"""So many objects of an outcome are named; the packet has their fields, too."""


def evidence_drawn(review: Review, evidence: Evidence | None) -> RenderableType:
    """Return statements, changed fields, drift, counts of shards and some objects; or that none are kept, and why not."""
    if evidence is None:
        return printable(
            "no evidence is kept of this review: it was lost, its time is over, or an old release made it", "yellow"
        )
    parts: list[RenderableType] = [printable(f"to the table: {change}") for change in evidence.schema_changes]
    if evidence.postdated is not None:
        parts.append(printable(str(evidence.postdated), "yellow"))
    if evidence.changes:
        parts.append(_changes(evidence.changes))
    if evidence.drifts:
        parts.append(_drifts(evidence.drifts))
    if evidence.shards:
        parts.append(_shards(evidence.shards, evidence.shards_in_all))
    for outcome, samples in groupby(evidence.samples, key=lambda sample: sample.outcome):
        parts.append(printable(_named(list(samples), review.figures.count(outcome))))
    return Group(*parts)


def _changes(changes: tuple[FieldChange, ...]) -> RenderableType:
    rows = [[change.field, change.objects, _example(change)] for change in changes]
    return table(["changed field", "objects", "for example"], rows)


def _example(change: FieldChange) -> str:
    if not change.samples:
        return ""
    key, before, after = change.samples[0]
    return f"{key}: {_value(before)} -> {_value(after)}"


def _drifts(drifts: tuple[Drift, ...]) -> RenderableType:
    rows = [[drift.field, drift.measure.value, f"{drift.value:.3f}"] for drift in drifts]
    return table(["field", "drift since the last publication", "value"], rows)


def _shards(shards: tuple[ShardCount, ...], in_all: int) -> RenderableType:
    rows = [[count.shard, count.objects, ", ".join(f"{number:,}" for number in count.before)] for count in shards]
    more = in_all - len(shards)
    return table(["shard" + (f" (and {more:,} more)" if more > 0 else ""), "objects", "before"], rows)


def _named(samples: list[ObjectSample], objects: int) -> str:
    shown = samples[:_MOST_KEYS]
    more = objects - len(shown)
    return f"{shown[0].outcome}: {', '.join(sample.key for sample in shown)}" + (f", and {more:,} more" if more > 0 else "")


def _value(value: str | None) -> str:
    return "null" if value is None else repr(value)
