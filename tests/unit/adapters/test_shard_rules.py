"""The rules of how a sync is cut into shards: each mistake told with its line and its mend."""
# ruff: noqa: E501 - a mistake reads better on one line

from pathlib import Path

import pytest

from sluice.adapters.spec_files import SpecFiles

SPEC = """\
sync: demo
stage: content
source:
  kind: rest
  connection: supplier
  path: /items
  query: {part: "{{ shard.USED }}", since: "{{ watermark }}"}
  records: items
  cursor: {path: next, parameter: cursor}
  watermark: changed
shards: SHARDS
object: {key: [id]}
fields:
  - {name: id, type: text}
  - {name: changed, type: timestamptz}
target: {table: items}
"""

LISTED = "{{kind: listed, name: city, value: id, source: {{kind: rest, connection: supplier, path: /cities, {source}}}{more}}}"
USED = {"ranges": "start", "windows": "start", "buckets": "bucket", "listed": "city", "files": "file"}
"""What the templates of the sync see of its shards."""
NO_PAGES = "cursor: {kind: none}"


def listed(source: str = NO_PAGES, more: str = "") -> str:
    """Return the declaration of shards that a list of cities says."""
    return LISTED.format(source=source, more=more)


def problems(tmp_path: Path, shards: str, *, incremental: bool = True) -> list[str]:
    """Return what is wrong with a sync of these shards, from the line on."""
    (tmp_path / "syncs").mkdir(exist_ok=True)
    (tmp_path / "stages.yaml").write_text("stages: {content: {}}")
    spec = SPEC.replace("USED", USED[shards.split("kind: ")[1].partition(",")[0].rstrip("}")])
    if not incremental:
        spec = spec.replace(', since: "{{ watermark }}"', "").replace("  watermark: changed\n", "")
    (tmp_path / "syncs" / "demo.yaml").write_text(spec.replace("SHARDS", shards))
    return [line.split(":", 1)[1] for line in SpecFiles(tmp_path).check("demo")]


SOUND = [
    ("{kind: ranges, start: 1, last: 99, size: 10}", True),
    ("{kind: buckets, count: 16}", True),
    ("{kind: windows, every: 30d, start: 2024-01-01T00:00:00Z}", False),
    ("{kind: windows, every: 1d}", False),
    (listed(), True),
    (listed("cursor: {kind: none}, query: {since: '{{ window.start }}'}"), True),
    (listed(more=", buckets: 8, salt: x"), False),
]


@pytest.mark.parametrize(("shards", "incremental"), SOUND)
def test_each_kind_can_be_declared(tmp_path: Path, shards: str, *, incremental: bool) -> None:
    """With a watermark where each shard holds the same objects tomorrow, without one elsewhere."""
    assert problems(tmp_path, shards, incremental=incremental) == []


MISTAKES = {
    "spans with a watermark": (
        "{kind: windows, every: 1d, start: 2024-01-01T00:00:00Z}",
        "10: source.watermark: does not go with shards.kind: windows, where each span is asked for as a whole: leave this line out and give runs a window, or cut the sync by something else than time",
    ),
    "buckets of a list with a watermark": (
        listed(more=", buckets: 8"),
        "10: source.watermark: does not go with shards.buckets: of a value that is new to a bucket, all would be missed that is below the bucket's watermark; leave out one of the two",
    ),
    "a list with a watermark": (
        listed("cursor: {kind: none}, watermark: changed"),
        "11: shards.source.watermark: the list of shards is always read as a whole: leave this line out",
    ),
    "a list by shard": (
        listed("cursor: {kind: none}, query: {since: '{{ shard.city }}'}"),
        "11: shards.source.query.since: uses the unknown name 'shard.city'; known: window.start, window.end",
    ),
    "a parameter of paging": (
        listed("cursor: {kind: page}, query: {page: '1'}"),
        "11: shards.source.query.page: is set by shards.source.cursor.parameter: leave it out here",
    ),
    "a salt without buckets": (
        listed(more=", salt: x"),
        "11: shards.salt: spreads values over buckets, and there is no shards.buckets",
    ),
    "a salt for the supplier": (
        "{kind: buckets, count: 16, salt: x}",
        "11: shards.salt: is for a table of a SQL source; here the supplier says what is in a bucket",
    ),
    "a column": (
        "{kind: ranges, last: 99, size: 10, column: id}",
        "11: shards.column: is for a table of a SQL source; here the templates say what is asked for",
    ),
    "too many ranges": (
        "{kind: ranges, last: 10000000, size: 10}",
        "11: shards: these are more than 10000 ranges: raise size",
    ),
    "files of an API": (
        "{kind: files}",
        "11: shards.kind: files are shards of a source of kind files, and this one is of kind rest",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("shards", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_told_with_its_mend(tmp_path: Path, shards: str, expected: str) -> None:
    """What cannot work, or would lose objects, is refused before anything runs."""
    assert expected in problems(tmp_path, shards)
