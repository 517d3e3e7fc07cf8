"""The draft of a sync in; the rules of how it is cut into shards that are broken out."""

from collections.abc import Iterator

from sluice.adapters import paging_rules
from sluice.adapters.spec_draft import Draft
from sluice.adapters.spec_templates import inspect_template
from sluice.adapters.yaml_positions import Path, Problem
from sluice.model.sharding import BucketShards, ListedShards, RangeShards, WindowShards

_LISTER: Path = ("shards", "source")


def broken_rules(draft: Draft) -> Iterator[Problem]:
    """Yield each rule that does not hold. A part that is wrong in itself is left alone."""
    if draft.shards is None:
        return
    yield from _kind(draft)
    yield from _watermark(draft)
    if isinstance(draft.shards, ListedShards):
        yield from _lister(draft.shards)


def _kind(draft: Draft) -> Iterator[Problem]:
    """Check what is only for some kinds of sources."""
    shards, source = draft.shards, draft.source
    if source is None or shards is None:
        return
    if shards.kind == "files" and source.kind != "files":
        yield Problem(("shards", "kind"), f"files are shards of a source of kind files, and this one is of kind {source.kind}")
    is_table = source.kind == "sql" and source.table is not None
    if isinstance(shards, RangeShards | WindowShards) and shards.column is not None and not is_table:
        yield Problem(("shards", "column"), "is for a table of a SQL source; here the templates say what is asked for")
    if isinstance(shards, BucketShards) and shards.salt and not is_table:
        yield Problem(("shards", "salt"), "is for a table of a SQL source; here the supplier says what is in a bucket")
    if isinstance(shards, ListedShards) and shards.salt and shards.buckets is None:
        yield Problem(("shards", "salt"), "spreads values over buckets, and there is no shards.buckets")


def _watermark(draft: Draft) -> Iterator[Problem]:
    """Check that each shard holds the same objects tomorrow, without which its watermark would say nothing of them."""
    shards = draft.shards
    if draft.source is None or draft.source.watermark is None:
        return
    path: Path = ("source", "watermark")
    if isinstance(shards, WindowShards):
        yield Problem(
            path,
            "does not go with shards.kind: windows, where each span is asked for as a whole: leave this line out and give "
            "runs a window, or cut the sync by something else than time",
        )
    if isinstance(shards, ListedShards) and shards.buckets is not None:
        yield Problem(
            path,
            "does not go with shards.buckets: of a value that is new to a bucket, all would be missed that is below the "
            "bucket's watermark; leave out one of the two",
        )


def _lister(listed: ListedShards) -> Iterator[Problem]:
    """Check the source that lists the shards: it is asked before there are any, and always for the whole list."""
    source = listed.source
    if source.watermark is not None:
        yield Problem((*_LISTER, "watermark"), "the list of shards is always read as a whole: leave this line out")
    yield from paging_rules.broken_rules(source, _LISTER)
    known = {"window": ("start", "end")}
    for place, text in source.templates():
        yield from (Problem((*_LISTER, *place), problem) for problem in inspect_template(text, known).problems)
