"""Values that stand in objects and arrays, found by both ways of reading and by an oracle in plain Python."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from sluice.mapping.reader import MISSES, Reader
from sluice.model.fields import FieldSpec
from sluice.model.paths import EACH, Path
from tests.unit.mapping.workbench import map_records, rows_of, sync_spec


class LeadsNowhere(Exception):
    """The oracle's own: a step into something that has no such steps."""


def at(node: Any, path: Path) -> Any:
    """What stands at a path of a document."""
    if EACH in path:
        first = path.index(EACH)
        array = at(node, path[:first])
        if array is None:
            return None
        if not isinstance(array, list):
            raise LeadsNowhere
        return [value for item in array for value in each(item, path[first + 1 :])]
    for step in path:
        if node is None:
            return None
        if not isinstance(node, list if isinstance(step, int) else dict):
            raise LeadsNowhere
        node = (node[step] if step < len(node) else None) if isinstance(step, int) else node.get(step)
    return node


def each(node: Any, path: Path) -> Iterator[Any]:
    """What stands at a path below one item of an array."""
    found = at(node, path)
    if EACH in path:
        yield from found or ()
    else:
        yield found


def documents(*paths: Path) -> Reader:
    """A reader of what stands at some paths, whatever it is."""
    fields = [{"name": f"f{number}", "path": list(path), "type": "json"} for number, path in enumerate(paths)]
    return Reader([FieldSpec.model_validate(field) for field in fields])


KEYS = st.sampled_from("ab")
LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "é"])
NODES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=2), max_leaves=12
)
RECORDS = st.dictionaries(KEYS, NODES, max_size=2)
PATHS = st.tuples(KEYS, st.lists(KEYS | st.integers(0, 2) | st.just(EACH), max_size=4)).map(lambda path: (path[0], *path[1]))


@given(record=RECORDS, paths=st.lists(PATHS, min_size=1, max_size=4))
@settings(deadline=None, max_examples=120)
def test_paths_lead_where_they_say(record: Any, paths: list[Path]) -> None:
    """The careful way finds what the oracle finds, or says that the way leads nowhere; the fast way agrees or gives up."""
    reader, text = documents(*paths), json.dumps(record)
    values, problems = reader.examine(text.encode())
    for number, path in enumerate(paths):
        told = [problem.error for problem in problems if problem.field == f"f{number}"]
        try:
            expected = at(record, path)
        except LeadsNowhere:
            assert (values[number], told) == (None, ["type"])
            continue
        assert told == []
        found = None if values[number] is None else json.loads(values[number][0])
        assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)
    try:
        fast = reader.fast(Raw(text.encode()))
    except MISSES:
        return
    assert problems == []
    assert [value and value[1] for value in fast] == [value and value[1] for value in values]


HOTEL = '{"id": "1", "rooms": [{"code": "A", "beds": [1, 2], "m2": 1.50}, {"code": null, "beds": null}, {"beds": [3]}, null]}'


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("text", "rooms[0].code", "A"),
        ("text", "rooms[0].m2", "1.50"),
        ("numeric(5,3)", "rooms[0].m2", "1.500"),
        ("text", "rooms[1].code", "None"),
        ("text", "rooms[3].code", "None"),
        ("text", "rooms[4].code", "None"),
        ("integer", "rooms[0].beds[1]", "2"),
        ("integer", "halls[0].beds[1]", "None"),
        ("text[]", "rooms[*].code", "['A', None, None, None]"),
        ("integer[]", "rooms[*].beds[*]", "[1, 2, 3]"),
        ("integer[]", "rooms[*].beds[0]", "[1, None, 3, None]"),
        ("integer[]", "halls[*].beds[*]", "None"),
        ("json", "rooms[*].m2", "[1.50,null,null,null]"),
    ],
)
def test_into_arrays(kind: str, path: str, value: str) -> None:
    """An item by its number, or something of all of them."""
    field = {"name": "value", "type": kind, "path": path}
    (row,) = rows_of(map_records(sync_spec({"id": "text", "value": field}), HOTEL))
    assert str(row["value"]) == value
    with suppress(*MISSES):
        (fast,) = Reader([FieldSpec.model_validate(field)]).fast(Raw(HOTEL.encode()))
        assert (fast is None) == (row["value"] is None)


@pytest.mark.parametrize(
    ("path", "record", "message"),
    [
        ("rooms[0].code", '{"rooms": {"0": {}}}', 'rooms is not an array but {"0": {}}'),
        ("rooms[0].code", '{"rooms": [1]}', "rooms[0] is not an object but 1"),
        ("rooms[*].code", '{"rooms": [null, {}, [], {}]}', "rooms[2] is not an object but []"),
        ("rooms[*].beds[*]", '{"rooms": [{"beds": []}, {"beds": 7}]}', "rooms[1].beds is not an array but 7"),
        ("rooms[1]", '{"rooms": [NaN, "\\ud800"]}', "a lone surrogate in a text"),
        ("rooms[*]", '{"rooms": [1, NaN]}', "NaN is not JSON"),
    ],
)
def test_a_way_that_leads_nowhere(path: str, record: str, message: str) -> None:
    """It is told up to the step that cannot be taken, by the number of the item."""
    reader = Reader([FieldSpec.model_validate({"name": "value", "type": "json", "path": path})])
    with pytest.raises(MISSES):
        reader.fast(Raw(record.encode()))
    values, (problem,) = reader.examine(record.encode())
    assert values == [None]
    assert message in problem.message


def test_items_beside_a_damaged_one_are_read() -> None:
    """Damage counts where it is."""
    values, problems = documents(("rooms", 0), ("rooms", 1)).examine(b'{"rooms": [1, NaN]}')
    assert (values, [problem.field for problem in problems]) == ([(b"1", b"1"), None], ["f1"])


def pruned(node: dict[str, Any], paths: list[Path]) -> dict[str, Any]:
    """What the oracle leaves of an object."""
    left = {}
    for key, value in node.items():
        below = [
            path[1:] for path in paths if path[0] == key and not any(isinstance(step, int) or step == EACH for step in path)
        ]
        if () in below:
            continue
        if below:
            value = pruned(value, below) if isinstance(value, dict) else {} if value is None else value  # noqa: PLW2901 - the rest
            if value == {}:
                continue
        left[key] = value
    return left


@given(record=RECORDS, paths=st.lists(PATHS, max_size=3))
@settings(deadline=None, max_examples=60)
def test_the_rest_is_all_that_no_other_field_reads(record: Any, paths: list[Path]) -> None:
    """Members at paths of objects are gone, objects that are empty then, too; what is reached through arrays stays."""
    fields = [
        FieldSpec.model_validate({"name": f"f{number}", "path": list(path), "type": "json"})
        for number, path in enumerate(paths)
    ]
    reader = Reader([*fields, FieldSpec.model_validate({"name": "rest", "type": "json", "rest": True})])
    text = json.dumps(record)
    values, _ = reader.examine(text.encode())
    assert json.loads(values[-1][0]) == pruned(record, paths)
    with suppress(*MISSES):
        assert reader.fast(Raw(text.encode()))[-1] == values[-1]


def test_the_rest_is_kept_as_it_is_written() -> None:
    """No number is altered, and where nothing is left there is an empty object."""
    spec = sync_spec({"id": "text", "city": {"type": "text", "path": "at.city"}, "rest": {"type": "json", "rest": True}})
    chunk = map_records(
        spec,
        '{"id": "1", "at": {"city": "x", "lat": 1.50}, "n": 12345678901234567890.10, "n\\u00e9": [1e400, null]}',
        '{"id": "2", "at": {"city": "x"}}',
        '{"id": "3", "at": null, "\\ud800": 1}',
    )
    assert [row["rest"] for row in rows_of(chunk)] == [
        '{"at":{"lat":1.50},"n":12345678901234567890.10,"né":[1e400, null]}',
        "{}",
    ]
    assert [(reject.key, reject.field, reject.error) for reject in chunk.rejects] == [("3", "rest", "encoding")]
