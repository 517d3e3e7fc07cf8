"""The draft of a sync in; the rules of its tables and queries that are broken out."""

from collections.abc import Iterator

from sluice.adapters.sources.sql.quoting import complaint, misplaced_template
from sluice.adapters.spec_draft import Draft
from sluice.adapters.yaml_positions import Path, Problem
from sluice.model.paths import spell_path
from sluice.model.sharding import ListedShards, RangeShards, WindowShards
from sluice.model.source import SourceSpec, SqlSource


def broken_rules(draft: Draft) -> Iterator[Problem]:
    """Yield each rule that does not hold. A part that is wrong in itself is left alone."""
    yield from _written(draft.source, ("source",))
    if isinstance(draft.shards, ListedShards):
        yield from _written(draft.shards.source, ("shards", "source"))
    if isinstance(draft.source, SqlSource) and draft.source.table is not None:
        yield from _columns(draft, draft.source)


def _written(source: SourceSpec | None, path: Path) -> Iterator[Problem]:
    """Check how a table or a query is written."""
    if not isinstance(source, SqlSource):
        return
    if source.table is not None and source.table.count(".") > 1:
        yield Problem((*path, "table"), f"{source.table!r} has several points: a table is `table` or `schema.table`")
    if source.query is not None and (place := misplaced_template(source.query)) is not None:
        yield Problem((*path, "query"), complaint(place))


def _columns(draft: Draft, source: SqlSource) -> Iterator[Problem]:
    """Check that what a table is asked by stands in columns of it."""
    shards = draft.shards
    if isinstance(shards, RangeShards | WindowShards) and shards.column is None:
        yield Problem(("shards",), f"of a table, {shards.kind} need a column: whose values are cut?")
    for name in source.watermark.fields if source.watermark else ():
        field = draft.declared.get(name)
        path = field.paths[0] if field is not None and field.paths else ()
        if len(path) > 1:
            within = spell_path(path[1:])
            problem = f"{name!r} is {within} within column {path[0]}, and a table is asked by columns: use a query"
            yield Problem(("source", "watermark"), problem)
