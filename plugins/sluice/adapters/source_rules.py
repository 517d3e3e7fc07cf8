"""The draft of a sync in; the rules of its source, its shards and its watermark that are broken out."""

from collections.abc import Iterator

from sluice.adapters.spec_draft import Draft, undeclared
from sluice.adapters.spec_templates import inspect_template
from sluice.adapters.yaml_positions import Path, Problem
from sluice.model.source import RestSource, SourceSpec
from sluice.model.watermark import WATERMARK_TYPES, WatermarkType


def broken_rules(draft: Draft) -> Iterator[Problem]:
    """Yield each rule that does not hold. A part that is wrong in itself is left alone."""
    yield from _watermark(draft)
    if draft.source is not None:
        yield from taken_parameters(draft.source, ("source",))
    yield from _templates(draft)


def _watermark(draft: Draft) -> Iterator[Problem]:
    """Check the fields that grow with every change."""
    mark = draft.source.watermark if draft.source else None
    for name in mark.fields if mark else ():
        path: Path = ("source", "watermark")
        yield from undeclared(draft, path, name)
        kind = draft.type_of(name)
        if kind is not None and kind not in WATERMARK_TYPES:
            yield Problem(path, f"{name!r} is {kind}, which does not order; allowed: {', '.join(sorted(WATERMARK_TYPES))}")
    if mark is None or mark.lookback is None:
        return
    kind = draft.type_of(mark.fields[0])
    of = mark.type or (WATERMARK_TYPES.get(kind) if kind else None)
    if of is WatermarkType.TEXT:
        yield Problem(("source", "watermark", "lookback"), "nothing can be taken off a text: leave this line out")
    elif of is not None and isinstance(mark.lookback, int) is not (of is WatermarkType.INTEGER):
        allowed = "a whole number" if of is WatermarkType.INTEGER else "a duration such as 15m"
        yield Problem(("source", "watermark", "lookback"), f"the values are of type {of}, so this has to be {allowed}")


def taken_parameters(source: SourceSpec, path: Path) -> Iterator[Problem]:
    """Check that what paging sets is not set by the spec as well; the source stands at `path`."""
    if not isinstance(source, RestSource):
        return
    place = source.cursor.into
    taken = source.query if place == "query" else source.body or {}
    for key, name in source.cursor.parameters():
        if name in taken:
            yield Problem((*path, place, name), f"is set by {'.'.join(map(str, path))}.cursor.{key}: leave it out here")


def _templates(draft: Draft) -> Iterator[Problem]:
    """Check what templates use, and that what has to be used is used."""
    source, shards = draft.source, draft.shards
    if source is None:
        return
    known: dict[str, tuple[str, ...]] = {"window": ("start", "end"), "watermark": (), "until": ()}
    if params := draft.shard_params:
        known = {"shard": params, **known}
    uses: set[str] = set()
    sound = True
    for place, text in source.templates():
        path: Path = ("source", *place)
        report = inspect_template(text, known)
        sound = sound and not report.problems
        uses |= report.uses
        yield from (Problem(path, problem) for problem in report.problems)
        if "watermark" in report.uses and source.watermark is None:
            yield Problem(path, "uses {{ watermark }}, but source.watermark does not say which field that is")
    if not sound or source.kind == "code":
        return
    if source.watermark is not None and "watermark" not in uses and not (source.kind == "sql" and source.table):
        yield Problem(("source", "watermark"), "no template of the source uses {{ watermark }}: every run would fetch all")
    if shards is None or shards.kind == "files" or (source.kind == "sql" and source.table):
        return
    if not any(f"shard.{name}" in uses for name in shards.params):
        named = " or ".join(f"{{{{ shard.{name} }}}}" for name in shards.params)
        yield Problem(("shards", "kind"), f"no template of the source uses {named}: all shards are alike")
