"""The draft of a sync of files in; the rules of its source that are broken out."""

from collections.abc import Iterator

from sluice.adapters.spec_draft import Draft, known_names
from sluice.adapters.spec_templates import inspect_template
from sluice.adapters.yaml_positions import Problem
from sluice.model.source import FilesSource

_AUTH = ("source", "auth")


def broken_rules(draft: Draft) -> Iterator[Problem]:
    """Yield each rule that does not hold. A part that is wrong in itself is left alone."""
    source, shards = draft.source, draft.shards
    if not isinstance(source, FilesSource):
        return
    for number, name in enumerate(source.files):
        if source.bucket is None and "*" in name:
            yield Problem(("source", "files", number), "uses *, but over HTTP nothing is listed: name each file")
        uses = inspect_template(name, known_names(draft)).uses
        if shards is not None and shards.kind == "files" and any(use.startswith("shard.") for use in uses):
            yield Problem(("source", "files", number), "uses {{ shard.file }}, but it is what names the files")
    if source.bucket is not None and source.auth is not None:
        yield Problem(_AUTH, "is for HTTP: what proves who asks S3 are login and password of the connection")
    if source.bucket is not None and source.allow_hosts:
        yield Problem(("source", "allow_hosts"), "is for HTTP: S3 leads nowhere else")
    if shards is not None and shards.kind == "files" and shards.split is not None and not source.can_be_split:
        yield Problem(
            ("shards", "split"),
            "such files are read as a whole: what can be split is jsonl, parquet, and csv with quote: null, not compressed",
        )
