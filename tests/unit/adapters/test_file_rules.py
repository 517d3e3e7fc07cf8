"""file_rules: what cannot be meant of a sync of files is said with its line."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.adapters.spec_files import SpecFiles

SPEC: dict[str, Any] = {
    "sync": "hotels",
    "stage": "hotel-content",
    "source": {"kind": "files", "connection": "shop", "files": ["/hotels.jsonl"], "format": "jsonl"},
    "object": {"key": ["id"]},
    "fields": [{"name": "id", "type": "text"}],
    "target": {"table": "hotels"},
}
SPLIT = {"kind": "files", "split": "1MB"}


def problems(folder: Path, source: dict[str, Any], **changes: Any) -> list[str]:
    """Return what is wrong with a spec."""
    (folder / "syncs").mkdir()
    spec = {**SPEC, "source": {**SPEC["source"], **source}, **changes}
    (folder / "syncs/hotels.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    (folder / "stages.yaml").write_text("stages: {hotel-content: {}}\n")
    return SpecFiles(folder).check()


@pytest.mark.parametrize(
    ("source", "changes", "found"),
    [
        ({"files": ["/hotels-*.jsonl"]}, {}, "source.files[0]: uses *, but over HTTP nothing is listed"),
        ({"files": ["/{{ shard.file }}"]}, {}, "source.files[0]: uses the unknown name 'shard.file'"),
        ({"files": ["/{{ shard.file }}"]}, {"shards": SPLIT}, "source.files[0]: uses {{ shard.file }}, but it is what names"),
        ({"bucket": "b", "auth": {"kind": "none"}}, {}, "source.auth: is for HTTP"),
        ({"bucket": "b", "allow_hosts": ["cdn"]}, {}, "source.allow_hosts: is for HTTP"),
        ({"format": "json"}, {"shards": SPLIT}, "shards.split: such files are read as a whole"),
        ({"format": {"kind": "csv"}}, {"shards": SPLIT}, "shards.split: such files are read as a whole"),
        ({"compression": "zstd"}, {"shards": SPLIT}, "shards.split: such files are read as a whole"),
    ],
)
def test_says_what_cannot_be_meant(tmp_path: Path, source: dict[str, Any], changes: dict[str, Any], found: str) -> None:
    """Each rule names the key, and what to do."""
    told = problems(tmp_path, source, **changes)
    assert any(found in problem for problem in told), told


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ({}, {}),
        ({"files": ["/shard.jsonl"]}, {"shards": SPLIT}),
        ({"bucket": "b", "files": ["in/*.csv"], "format": {"kind": "csv", "quote": None}}, {"shards": SPLIT}),
        ({"format": "parquet"}, {"shards": SPLIT}),
        ({"files": ["/{{ shard.region }}.jsonl"]}, {"shards": {"kind": "values", "name": "region", "values": ["a", "b"]}}),
    ],
)
def test_lets_what_can_be_meant_pass(tmp_path: Path, source: dict[str, Any], changes: dict[str, Any]) -> None:
    """Patterns in a bucket, parts of files that can be cut, files named by other shards."""
    assert problems(tmp_path, source, **changes) == []
