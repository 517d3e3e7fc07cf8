"""Paths of records, and which one a wrong path may have meant."""

import pytest

from sluice.mapping import shapes
from sluice.model.paths import parse_path

RECORDS = [{"id": 1, "geo": {"lat": 2, "lon": None}, "tags": [{"x": 1}]}, {"id": 2, "empty": {}}]


def test_paths_in_records() -> None:
    """All that stands below objects, in order; lists and empty objects are values."""
    assert shapes.paths_in(RECORDS) == [("id",), ("geo", "lat"), ("geo", "lon"), ("tags",), ("empty",)]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("geo.lon", None),
        ("geo", None),
        ("location.LAT", "did you mean `geo.lat`?"),
        ("tag", "did you mean `tags`?"),
        ("price", "no record has `price`"),
        ("id.value", "no record has `id.value`"),
        ("tags[0].x", None),
        ("tags[*].x", None),
        ("tags[1].x", "no record has `tags[1].x`"),
        ("tags[*].y", "no record has `tags[*].y`"),
        ("id[0]", "no record has `id[0]`"),
    ],
)
def test_a_path_that_leads_nowhere(path: str, problem: str | None) -> None:
    """Null is something; what is missing in all records is named, with what ends or is spelled alike."""
    told = shapes.missing(parse_path(path), RECORDS, "record")
    assert told is None if problem is None else problem in (told or "")


def test_records_without_end_are_named_in_part() -> None:
    """A hint stays short whatever the supplier sends."""
    assert shapes.named([{f"x{number}": 1 for number in range(1000)}]).endswith("x39, and 960 more")
    assert shapes.named([7]) == "nothing"
    assert shapes.named([{"x" * 1000: 1}]) == "x" * 100
    assert shapes.named(RECORDS) == "id, geo.lat, geo.lon, tags, empty"


def test_lists_in_an_answer() -> None:
    """Where the records may stand."""
    assert shapes.lists_in({"data": {"items": [{"tags": []}], "n": 1}, "links": [], "x": {}}) == ["data.items", "links"]
    assert shapes.lists_in([]) == [""]
    assert shapes.lists_in(None) == []


def test_what_is_not_json_is_left_out() -> None:
    """A damaged record says nothing about paths."""
    assert shapes.decoded([b'{"a": 1}', b'{"a": NaN}', b"[" * 100_000]) == [{"a": 1}]
