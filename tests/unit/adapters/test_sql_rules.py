"""The rules of tables and queries: each mistake told with its line and its mend."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.adapters.sources.sql.quoting import misplaced
from sluice.adapters.spec_files import SpecFiles

TABLE = {"kind": "sql", "connection": "warehouse", "table": "shop.items", "key": ["id"]}
QUERY = {"kind": "sql", "connection": "warehouse", "query": "select * from items", "key": ["id"]}


def problems(folder: Path, source: dict[str, Any], **parts: Any) -> list[str]:
    """Return what is wrong with a sync of this source, from the line on."""
    spec = {
        "sync": "items",
        "stage": "stock",
        "source": source,
        "object": {"key": ["id"]},
        "fields": [
            {"name": "id", "type": "text"},
            {"name": "changed", "type": "timestamptz", "path": parts.pop("path", "changed")},
        ],
        "target": {"table": "items"},
        **parts,
    }
    (folder / "syncs").mkdir()
    (folder / "stages.yaml").write_text("stages: {stock: {}}")
    (folder / "syncs/items.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    return [line.split(": ", 1)[1] for line in SpecFiles(folder).check("items")]


SOUND: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (TABLE, {}),
    (TABLE | {"watermark": "changed"}, {"shards": {"kind": "ranges", "last": 9, "size": 2, "column": "id"}}),
    (TABLE, {"shards": {"kind": "windows", "every": "1d", "column": "changed"}}),
    (TABLE, {"shards": {"kind": "values", "name": "city", "values": ["a"]}}),
    (TABLE, {"shards": {"kind": "buckets", "count": 4, "salt": "s"}}),
    (
        QUERY
        | {"query": "select 'it''s', \"a\" from items where {% if watermark %} changed >= {{ watermark }} {% endif %}"}
        | {"watermark": "changed"},
        {},
    ),
    (TABLE, {"shards": {"kind": "listed", "name": "city", "value": "id", "source": QUERY}}),
]


@pytest.mark.parametrize(("source", "parts"), SOUND)
def test_what_is_sound_is_left_alone(tmp_path: Path, source: dict[str, Any], parts: dict[str, Any]) -> None:
    """A table in every way it can be cut, and a query with quotes of its own."""
    assert problems(tmp_path, source, **parts) == []


UNSOUND: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (TABLE | {"table": "a.b.c"}, {}, "source.table: 'a.b.c' has several points"),
    (QUERY | {"query": "select '{{ window.start }}'"}, {}, "source.query: '…' has a template in quotes or in a comment"),
    (
        TABLE,
        {"shards": {"kind": "listed", "name": "a", "value": "b", "source": QUERY | {"query": "select '{{ window.end }}'"}}},
        "shards.source.query: '…' has a template in quotes",
    ),
    (TABLE, {"shards": {"kind": "ranges", "last": 9, "size": 2}}, "shards: of a table, ranges need a column"),
    (TABLE, {"shards": {"kind": "windows", "every": "1d"}}, "shards: of a table, windows need a column"),
    (TABLE | {"watermark": "changed"}, {"path": "meta.at"}, "source.watermark: 'changed' is at within column meta"),
    (QUERY | {"watermark": "changed"}, {}, "source.watermark: no template of the source uses {{ watermark }}"),
    (QUERY, {"shards": {"kind": "ranges", "last": 9, "size": 2}}, "shards.kind: no template of the source uses"),
]


@pytest.mark.parametrize(("source", "parts", "said"), UNSOUND)
def test_what_is_unsound_is_told(tmp_path: Path, source: dict[str, Any], parts: dict[str, Any], said: str) -> None:
    """With the key it stands at."""
    (problem,) = problems(tmp_path, source, **parts)
    assert problem.startswith(said)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a = ?", None),
        ("a = 'x' and b = ? and c = 'y'", None),
        ("a = 'it''s' || ?", None),
        ("a = '?'", "'…'"),
        ('"?" = 1', '"…"'),
        ("a -- why ?\n= 1", "-- why …"),
        ("/* ? */ a", "/* … */"),
        ("$$ ? $$", "$$ … $$"),
        ("$a$ ' $a$ = ? and 'x' = 'y'", None),
        ("a = ? -- it's", None),
    ],
)
def test_a_mark_is_found_where_no_value_can_be(text: str, found: str | None) -> None:
    """In texts, names, comments and texts between dollars, each of which may look as if it held another."""
    assert misplaced(text, "?") == found
