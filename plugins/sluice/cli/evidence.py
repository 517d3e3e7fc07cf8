"""What a person decides a review by, in; tables of it, for people, out."""

from itertools import groupby
from typing import Final

from rich.console import Group, RenderableType

from sluice.checks.expectations import told
from sluice.cli.output import printable, table
from sluice.model.evidence import Drift, Evidence, FieldChange, ObjectSample, ShardCount, VersionCount
from sluice.model.quality import ExpectationResult, Met, Quality
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
    if evidence.quality is not None:
        parts += _quality(evidence.quality)
    if evidence.changes:
        parts.append(_changes(evidence.changes))
    if evidence.drifts:
        parts.append(_drifts(evidence.drifts))
    if evidence.versions:
        parts.append(_versions(evidence.versions))
    if evidence.shards:
        parts.append(_shards(evidence.shards, evidence.shards_in_all))
    for outcome, samples in groupby(evidence.samples, key=lambda sample: sample.outcome):
        parts.append(printable(_named(list(samples), review.figures.count(outcome))))
    return Group(*parts)


def _quality(quality: Quality) -> list[RenderableType]:
    """Return what the suite found, and what that cost; or why it was not run."""
    if quality.not_run is not None or quality.trouble is not None:
        what = f"not run: {quality.not_run}" if quality.not_run is not None else f"could not be run: {quality.trouble}"
        return [printable(f"suite {quality.suite} {what}", "yellow")]
    rows = [[result.label, result.met, result.on_failure, _found(result)] for result in quality.results]
    cost = (
        f"{quality.rows:,} rows, {quality.seconds:.1f} s, {quality.import_seconds:.1f} s of them for loading {quality.engine}"
    )
    return [table([f"expectation of suite {quality.suite}", "met", "if not", "found"], rows), printable(cost)]


def _found(result: ExpectationResult) -> str:
    found = result.why or ("" if result.met is Met.PASSED and not result.unexpected else told(result))
    return found + (f"; {result.rejected:,} objects rejected" if result.rejected else "")


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


def _versions(versions: tuple[VersionCount, ...]) -> RenderableType:
    rows = [
        [str(made.version), made.shards, made.objects, made.created, made.changed, f"{made.changed_share:.1%}"]
        for made in versions
    ]
    return table(["made by transformer", "shards", "objects", "created", "changed", "changed share"], rows)


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
