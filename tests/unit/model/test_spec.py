"""The models of a spec: their defaults, and that a pinned copy is the spec."""

from typing import Any

import pytest
from pydantic import ValidationError

from sluice.model.scalars import Limit
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy, StageRegistry

MINIMAL: dict[str, Any] = {
    "sync": "items",
    "stage": "content",
    "source": {"kind": "rest", "connection": "c", "path": "/items", "cursor": {"path": "next", "parameter": "cursor"}},
    "object": {"key": ["id"]},
    "fields": [{"name": "id", "type": "text"}, {"name": "price", "type": "numeric(12, 2)", "path": ["a.b", "c"]}],
    "target": {"table": "items"},
}


def test_a_minimal_spec_is_cautious() -> None:
    """What is not said is the careful choice: a person looks at first loads and deletions, and rows are kept."""
    spec = SyncSpec.model_validate(MINIMAL)
    assert spec.review.first_load == "needs-human"
    assert spec.review.auto_approve.deleted == Limit(count=0)
    assert spec.target.deletes == "soft"
    assert spec.target.connection == "sluice_target"
    assert spec.target.table == "public.items"
    assert not spec.can_increment


def test_a_pinned_spec_is_the_spec() -> None:
    """The JSON of a spec, durations and limits included, is read back as the same spec."""
    spec = SyncSpec.model_validate({**MINIMAL, "review": {"timeout": "36h", "auto_approve": {"created": "0.5%"}}})
    assert SyncSpec.model_validate_json(spec.model_dump_json()) == spec


def test_a_policy_survives_json() -> None:
    """The JSON of a stage's policy is read back as the same policy."""
    registry = StageRegistry(stages={"content": StagePolicy.model_validate({"retry": {"base": "1.5s"}})})
    assert StageRegistry.model_validate_json(registry.model_dump_json()) == registry


def test_paths_and_types_are_parsed() -> None:
    """A list keeps dots in keys, and a type carries its parameters."""
    field = SyncSpec.model_validate(MINIMAL).field("price")
    assert field.paths == (("a.b", "c"),)
    assert field.type.sql == "numeric(12,2)"


def test_a_field_that_is_not_declared_is_an_error() -> None:
    """Asking a spec for an unknown field names it."""
    with pytest.raises(KeyError, match="nope"):
        SyncSpec.model_validate(MINIMAL).field("nope")


def test_a_spec_cannot_be_changed() -> None:
    """A spec is a value: assigning to it is refused."""
    with pytest.raises(ValidationError, match="frozen"):
        SyncSpec.model_validate(MINIMAL).version = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("shards", "uses_window", "tells_absence"),
    [
        ({"kind": "buckets", "count": 2}, False, True),
        ({"kind": "windows", "every": "1d"}, True, False),
        (
            {"kind": "listed", "name": "n", "value": "v", "source": {**MINIMAL["source"], "query": {"q": "{{ window.end }}"}}},
            True,
            True,
        ),
        ({"kind": "listed", "name": "n", "value": "v", "source": MINIMAL["source"]}, False, True),
    ],
)
def test_shards_may_depend_on_a_window(shards: dict[str, Any], *, uses_window: bool, tells_absence: bool) -> None:
    """Spans of time do, and what lists shards may; only spans leave open whether what they lack is gone."""
    spec = SyncSpec.model_validate({**MINIMAL, "shards": shards})
    assert (spec.uses_window, spec.tells_absence) == (uses_window, tells_absence)


@pytest.mark.parametrize(
    ("query", "uses_window", "tells_time_first"),
    [
        ("select * from windows where valid_until > {{ shard.window }} window w as (order by id)", False, False),
        ("select * from items where at >= {{window.start}}", True, False),
        ("select * from items {%- if until %} where at <= {{ until | string }} {%- endif %}", False, True),
        ("select * from items where at >= {{ watermark\n  or window['start'] }}", True, False),
    ],
)
def test_what_a_template_uses_is_no_matter_of_its_text(query: str, *, uses_window: bool, tells_time_first: bool) -> None:
    """A word of the supplier's own language, or a shard's value, may be called like what Sluice knows."""
    source = {"kind": "sql", "connection": "c", "query": query, "key": ["id"]}
    spec = SyncSpec.model_validate({**MINIMAL, "source": source})
    assert (spec.uses_window, spec.source.tells_time_first) == (uses_window, tells_time_first)


@pytest.mark.parametrize(
    ("field", "watermark", "uses_window"),
    [
        ({"type": "timestamptz"}, {}, True),
        ({"type": "date"}, {}, True),
        ({"type": "text"}, {"type": "instant"}, True),
        ({"type": "bigint"}, {}, False),
        ({"type": "text"}, {}, False),
        ({"type": "timestamptz", "format": "epoch_s"}, {}, False),
    ],
)
def test_rows_of_a_table_are_in_a_window_by_their_time(
    field: dict[str, Any], watermark: dict[str, Any], *, uses_window: bool
) -> None:
    """A watermark that is a number or a plain text says nothing of when, and without one nothing does."""
    fields = [*MINIMAL["fields"], {"name": "mark", **field}]
    source = {"kind": "sql", "connection": "c", "table": "items", "key": ["id"]}
    marked = {**source, "watermark": {"fields": ["mark"], **watermark}}
    assert SyncSpec.model_validate({**MINIMAL, "fields": fields, "source": marked}).uses_window is uses_window
    assert not SyncSpec.model_validate({**MINIMAL, "fields": fields, "source": source}).uses_window
