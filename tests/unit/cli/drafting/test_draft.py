"""What is written of a draft: valid as it is, whatever a supplier calls its fields."""

import json
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import pytest

from sluice.adapters.spec_files import SpecFiles
from sluice.cli.drafting.asking import drafted_by
from sluice.cli.drafting.choices import FORMATS, Kind, Paging, Shards
from sluice.cli.drafting.look import drafted
from sluice.mapping.proposals import proposals

STAGES = "stages:\n  hotel-content: {}\n"


def kinds() -> list[Any]:
    """Return each kind of source with each way of paging or format, and each kind of sharding."""
    ways = [("rest", "paging", way) for way in get_args(Paging)] + [("files", "format", way) for way in FORMATS]
    ways += [("sql", "table", "Guest List"), ("code", "code", "suppliers.Hotels")]
    return [
        pytest.param(kind, option, way, shards, id=f"{kind}-{way}-{shards}")
        for (kind, option, way), shards in product(ways, get_args(Shards))
        if kind != "files" or shards == "none"
    ]


@pytest.mark.parametrize(("kind", "option", "way", "shards"), kinds())
def test_what_is_written_is_valid_as_it_is(kind: Kind, option: str, way: str, shards: str) -> None:
    """Every kind of source goes with every way of paging and every kind of sharding, as far as they go together at all."""
    is_files = kind == "files"
    can_increment = not is_files and shards != "windows"
    options = {
        "kind": kind,
        option: way,
        "shards": None if is_files else shards,
        "stage": "hotel-content",
        "key": ["id", "rate.code"],
        "version": "updatedAt",
        "watermark": "updatedAt" if can_increment else None,
        "schedule": "@daily",
    }
    draft = drafted_by("guests", options, [], is_there=False)
    with drafted(draft, STAGES) as include:
        spec = SpecFiles(include).sync("guests")
    assert spec.source.kind == kind
    assert (spec.shards.kind if spec.shards else "none") == shards
    assert spec.object.key == ("id", "code")
    assert (spec.object.version, spec.schedule) == ("updated_at", "@daily")
    assert (spec.watermark is not None) is can_increment
    assert getattr(getattr(spec.source, "cursor", None), "kind", None) == (way if kind == "rest" else None)
    if query := getattr(spec.source, "query", None) if kind == "sql" else None:
        assert 'select * from "Guest List"\n' in query


def test_what_was_seen_cannot_break_out_of_its_line() -> None:
    """A supplier's keys stand in quotes, what was found in comments."""
    record = json.dumps({"id": "a\nb: \u2028c", 'a.b": [': "# x", "évil: {": 1}, ensure_ascii=False).encode()
    plain = drafted_by("hotels", {"stage": "hotel-content"}, [], is_there=False)
    draft = replace(plain, seen=tuple(proposals([record])), notes=("a\nb: c",))
    with drafted(draft, STAGES) as include:
        spec = SpecFiles(include).sync("hotels")
    assert {field.paths[0] for field in spec.fields} == {("id",), ('a.b": [',), ("évil: {",)}


def test_no_value_of_a_supplier_is_written() -> None:
    """A spec is committed, and values may be personal: only how often a field has one is told."""
    records = [b'{"id": 4711, "name": "Ada Canary", "vat": null}', b'{"id": 4712, "name": null, "vat": null}']
    plain = drafted_by("hotels", {"stage": "hotel-content"}, [], is_there=False)
    text = replace(plain, seen=tuple(proposals(records))).spec_text
    assert [line.strip() for line in text.splitlines() if line.startswith("  - {")] == [
        "- { name: id, type: integer } # what identifies an object",
        "- { name: name, type: text } # in 1 of 2 records",
        "- { name: vat, type: text } # check: null in all records looked at",
    ]
    assert not any(value in text for value in ("4711", "4712", "Canary"))


def test_keys_that_yaml_or_fields_do_not_take() -> None:
    """A word that YAML reads as something else is quoted; what has no name, as the first column of many a CSV, is left out."""
    record = json.dumps({"no": 1, "on": 2, "null": 3, "": 4, "below": {"": 5, "true": 6}}).encode()
    plain = drafted_by("hotels", {"stage": "hotel-content", "key": ["no"], "version": "on"}, [], is_there=False)
    with drafted(replace(plain, seen=tuple(proposals([record]))), STAGES) as include:
        spec = SpecFiles(include).sync("hotels")
    assert [field.paths[0] for field in spec.fields] == [("no",), ("on",), ("null",), ("below", "true")]
    assert (spec.object.key, spec.object.version) == (("no",), "on")
