"""The rules of requests: each mistake told with its place and its mend."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.adapters.spec_files import SpecFiles

SOURCE = {"kind": "rest", "connection": "shop", "path": "/hotels", "cursor": {"kind": "none"}}
SHARDED = {"shards": {"kind": "values", "name": "city", "values": ["Paris"]}}


def problems(folder: Path, source: dict[str, Any], **parts: Any) -> list[str]:
    """Return what is wrong with a sync of this source, from the line on."""
    spec = {
        "sync": "hotels",
        "stage": "content",
        "source": SOURCE | source,
        "object": {"key": ["id"]},
        "fields": [{"name": "id", "type": "text"}],
        "target": {"table": "hotels"},
        **parts,
    }
    (folder / "syncs").mkdir()
    (folder / "stages.yaml").write_text("stages: {content: {}}")
    (folder / "syncs/hotels.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    return [line.split(": ", 1)[1] for line in SpecFiles(folder).check("hotels")]


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ({"headers": {"Accept-Language": "en", "X-City": "{{ shard.city }}"}}, SHARDED),
        ({"method": "POST", "body": {"where": [{"city": "{{ shard.city }}", "limit": 5}]}}, SHARDED),
        ({"detail": {"path": "/hotels/{{ record }}"}}, {}),
        ({"detail": {"path": "/hotels/{{ record.self.id }}", "query": {"to": "{{ until }}"}}}, {}),
        ({"detail": {"path": "/hotel", "query": {"id": '{{ record["id"] }}'}}}, {}),
    ],
)
def test_what_is_sound_is_left_alone(tmp_path: Path, source: dict[str, Any], parts: dict[str, Any]) -> None:
    """Values in every place, and records of any shape."""
    assert problems(tmp_path, source, **parts) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"headers": {"Host": "x"}}, "source.headers.Host: is set by who sends the request: leave it out"),
        ({"headers": {"X Y": "x"}}, "source.headers.X Y: is no name of a header"),
        ({"path": "/hotels\n"}, "source.path: '/hotels\\n' has to begin with / and hold no ?, # or control sign"),
        ({"auth": {"kind": "api_key", "header": "X Y"}}, "source.auth.header: 'X Y' is no name of a header"),
        ({"auth": {"kind": "api_key", "header": "Content-Length"}}, "source.auth.header: 'Content-Length' is set by who sends"),
        ({"auth": {"kind": "signed", "key_header": "Host"}}, "source.auth.key_header: 'Host' is set by who sends the request"),
        ({"headers": {"X": "{{ shard.city }}"}}, "source.headers.X: uses the unknown name 'shard.city'"),
        ({"headers": {"X": "{{ record.id }}"}}, "source.headers.X: uses the unknown name 'record.id'"),
        ({"method": "POST", "body": {"a": [{"b": "{{ c"}]}}, "source.body.a[0].b: is no valid template"),
        (
            {"detail": {"path": "/hotels"}},
            "source.detail.path: uses no {{ record }}, nor does the query: all details are alike",
        ),
        (
            {"detail": {"path": "/{{ record.id }}", "query": {"a": "{{ recrod }}"}}},
            "source.detail.query.a: uses the unknown name 'recrod'; known: record, window.start",
        ),
        ({"body": {"a": 1}}, "source: a body needs method: POST"),
        ({"auth": {"kind": "api_key"}}, "source.auth: an API key goes either into a header or into a query parameter"),
        ({"auth": {"kind": "oauth"}}, "source.auth.kind: unknown value 'oauth'; did you mean 'oauth2'?"),
        ({"auth": {"kind": "signed", "by": "sign"}}, "source.auth.by: "),
    ],
)
def test_each_mistake_is_told(tmp_path: Path, source: dict[str, Any], problem: str) -> None:
    """Where it stands, and what is allowed there."""
    (said,) = problems(tmp_path, source)
    assert said.startswith(problem)
