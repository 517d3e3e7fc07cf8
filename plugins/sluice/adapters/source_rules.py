"""The draft of a sync in; the rules of its source that are broken out."""

from collections.abc import Iterator

from sluice.adapters import file_rules, paging_rules, request_rules, sql_rules, watermark_rules
from sluice.adapters.spec_draft import Draft, known_names
from sluice.adapters.spec_templates import inspect_template
from sluice.adapters.yaml_positions import Path, Problem


def broken_rules(draft: Draft) -> Iterator[Problem]:
    """Yield each rule that does not hold. A part that is wrong in itself is left alone."""
    yield from watermark_rules.broken_rules(draft)
    yield from sql_rules.broken_rules(draft)
    yield from file_rules.broken_rules(draft)
    yield from request_rules.broken_rules(draft)
    if draft.source is not None:
        yield from paging_rules.broken_rules(draft.source, ("source",))
    yield from _templates(draft)


def _templates(draft: Draft) -> Iterator[Problem]:
    """Check what templates use, and that what has to be used is used."""
    source, shards = draft.source, draft.shards
    if source is None:
        return
    known = known_names(draft)
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
